"""Spread a model over the processes of a group."""

from __future__ import annotations

from typing import Literal, TypeAlias, TypeVar

import torch
import torch.distributed as dist
from torch import nn

from kuramotognn._version import __version__
from kuramotognn.checks import check_choice
from kuramotognn.models.continuous import ContinuousGNN
from kuramotognn.models.discrete import DiscreteGNN
from kuramotognn.parallel.channels import ChannelParallel
from kuramotognn.parallel.distributed_model import check_equal
from kuramotognn.parallel.exchange import Ranks
from kuramotognn.parallel.nodes import NodeParallel

Model = TypeVar("Model", bound=nn.Module)
How: TypeAlias = Literal["auto", "channels", "nodes"]
HOWS: tuple[How, ...] = ("auto", "channels", "nodes")


def distribute(model: Model, group: dist.ProcessGroup | None = None, *, how: How = "auto") -> Model:
    """Spread ``model`` over the processes of a group, and return it.

    All processes of the group call this, then call the model, :func:`~kuramotognn.fit` or
    :func:`~kuramotognn.predict` with the same features, graph and generator state. Each gets what one process would
    get: logits of all nodes, and after ``backward`` the gradients of all parameters. Parameters and their names do not
    change; those of rank 0 are copied to the others.

    Args:
        model: one of this library.
        group: the processes; torch's default group unless given.
        how: spread the ``channels`` of the state, the ``nodes`` of the graph, or channels where they do not act on each
            other (``auto``).
    """
    check_choice("how", how, HOWS)
    if not isinstance(model, ContinuousGNN | DiscreteGNN):
        raise ValueError(f"only models of this library can be spread over ranks, got {type(model).__name__}")
    ranks = Ranks(group)
    check_equal(ranks, "the version", f"kuramotognn {__version__}, torch {torch.__version__}")
    check_equal(ranks, "the model", repr(model))
    _check_model(model)
    channels = ChannelParallel.possible(model)
    if how == "channels" and not channels:
        raise ValueError(f"channels of {type(model).__name__} act on each other; spread its nodes over the ranks")
    spread = ChannelParallel if channels and how != "nodes" else NodeParallel
    model.distributed = spread(model, ranks)  # type: ignore[arg-type]
    with torch.no_grad():
        for tensor in (*model.parameters(), *model.buffers()):
            dist.broadcast(tensor, group_src=0, group=group)
    return model


def _check_model(model: ContinuousGNN | DiscreteGNN) -> None:
    if any(isinstance(module, nn.modules.batchnorm._BatchNorm) for module in model.modules()):
        raise ValueError("batch normalisation needs all nodes in one process; leave it out, or start one rank")
    if isinstance(model, ContinuousGNN) and model.solver.adaptive:
        raise ValueError(
            f"{model.solver.method} adapts its steps to the whole state; over several ranks take euler or rk4"
        )
