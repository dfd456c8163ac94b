"""Diffusion on a graph: what the Kuramoto model becomes for small phases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from kuramotognn.checks import check_choice, check_dropout
from kuramotognn.fields.base import Dynamics, Field
from kuramotognn.fields.coupling import Adjacency
from kuramotognn.graph import Graph
from kuramotognn.kernels import CoupledSystem
from kuramotognn.typing import Index, Nodes

Source: TypeAlias = Literal["initial", "labelled", "none"]
SOURCES: tuple[Source, ...] = ("initial", "labelled", "none")


@dataclass(frozen=True, eq=False)
class DiffusionDynamics(Dynamics):
    r""":math:`\dot x = \alpha (A - I) x + u` with couplings, strength and source settled."""

    system: CoupledSystem

    def __call__(self, t: float | Tensor, x: Nodes) -> Nodes:
        """The velocity of the state ``x``."""
        return self.system(x)

    def tensors(self) -> tuple[Tensor, ...]:
        """Couplings, source and strength."""
        strength = self.system.strength
        return (self.system.a, self.system.drive, *([strength] if isinstance(strength, Tensor) else []))

    def coupled(self) -> CoupledSystem:
        """The whole right-hand side."""
        return self.system


@dataclass(frozen=True, eq=False)
class TimeVaryingDiffusionDynamics(Dynamics):
    r""":math:`\dot x = \alpha (A(x) - I) x + u` with the couplings taken anew from the state at every evaluation.

    Not one linear system, so no operator integrates it whole; attention and right-hand side are fused one by one.
    """

    adjacency: Adjacency
    graph: Graph
    drive: Nodes
    strength: Tensor

    def __call__(self, t: float | Tensor, x: Nodes) -> Nodes:
        """The velocity of the state ``x``."""
        a = self.adjacency(x, self.graph)
        return CoupledSystem(self.graph.pattern, a, self.drive, self.strength, linear=True)(x)

    def tensors(self) -> tuple[Tensor, ...]:
        """Source, strength and what the couplings learn."""
        return (self.drive, self.strength, *self.adjacency.parameters())


class Diffusion(Field):
    r"""Graph diffusion with a source.

    .. math::
        \dot x = \alpha (A - I)\, x + u

    from `"GRAND: Graph Neural Diffusion" <https://arxiv.org/abs/2106.10934>`_ as its code writes it: :math:`\alpha` is
    the logistic function of a learnt number. The source is one of

    - ``"initial"``: :math:`u = \beta\, x(0)`, where :math:`\beta` is learnt and starts at zero;
    - ``"labelled"``: :math:`u_i = x_i(0) - \frac{1}{|I|} \sum_{j \in I} x_j(0)` for the nodes :math:`i \in I` that
      have a label for training, 0 for all others, from `"GRAND++: Graph Neural Diffusion with A Source Term"
      <https://openreview.net/forum?id=EMxu-dzvJk>`_. The sources add to zero. They are the training nodes, no others;
      :func:`~kuramotognn.fit` tells them by :meth:`set_training_nodes`, and they are saved with the parameters;
    - ``"none"``.

    Args:
        adjacency: where the couplings come from.
        source: which constant term.
        time_varying: take the couplings from the state at every evaluation (GRAND-nl) instead of once at ``x(0)``.
        source_dropout: while training, silence each labelled source with this probability and strengthen the others.
            Not in the paper: a source that hears itself all the way makes the loss at the training nodes too easy.
    """

    training_nodes: Tensor

    def __init__(
        self,
        adjacency: Adjacency,
        *,
        source: Source = "initial",
        time_varying: bool = False,
        source_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        check_choice("source", source, SOURCES)
        check_dropout("source_dropout", source_dropout)
        self.adjacency = adjacency
        self.source: Source = source
        self.time_varying = time_varying
        self.source_dropout = source_dropout
        self.alpha = nn.Parameter(torch.zeros(()))
        self.beta = nn.Parameter(torch.zeros(())) if source == "initial" else None
        if source == "labelled":
            self.register_buffer("training_nodes", torch.empty(0, dtype=torch.long))

    def reset_parameters(self) -> None:
        """Draw the parameters of the couplings anew and start with equal pull and no source."""
        self.adjacency.reset_parameters()
        nn.init.zeros_(self.alpha)
        if self.beta is not None:
            nn.init.zeros_(self.beta)

    def set_training_nodes(self, nodes: Index) -> None:
        """Let these nodes, and no others, be the labelled ones; other sources have no use for them."""
        if self.source == "labelled":
            self.training_nodes = torch.unique(nodes).to(self.training_nodes.device)

    def forward(self, x0: Nodes, graph: Graph) -> Dynamics:
        """Settle the source, and the couplings unless they vary."""
        drive, strength = self._drive(x0), self.alpha.sigmoid()
        if self.time_varying:
            return TimeVaryingDiffusionDynamics(self.adjacency, graph, drive, strength)
        a = self.adjacency(x0, graph)
        return DiffusionDynamics(CoupledSystem(graph.pattern, a, drive, strength, linear=True))

    def _drive(self, x0: Nodes) -> Nodes:
        if self.beta is not None:
            return self.beta * x0
        if self.source == "none":
            return torch.zeros_like(x0)
        self._check_training_nodes(x0.size(0))
        labelled = x0.index_select(0, self.training_nodes)
        heard = F.dropout(labelled.new_ones(labelled.size(0), 1), self.source_dropout, self.training)
        return torch.zeros_like(x0).index_copy(0, self.training_nodes, heard * (labelled - labelled.mean(dim=0)))

    def _check_training_nodes(self, num_nodes: int) -> None:
        if not self.training_nodes.numel():
            raise ValueError(
                "the source is the labelled nodes, and none is known yet; train with fit, load trained parameters, or "
                "call set_training_nodes with them"
            )
        if (last := int(self.training_nodes[-1])) >= num_nodes:
            raise ValueError(
                f"the labelled nodes go up to number {last}, but the graph has {num_nodes} nodes; "
                "call set_training_nodes with those of this graph"
            )

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        # How many nodes are labelled is not known before.
        if (saved := state_dict.get(f"{prefix}training_nodes")) is not None and self.source == "labelled":
            self.training_nodes = self.training_nodes.new_empty(saved.shape)
        super()._load_from_state_dict(state_dict, prefix, *args)

    def extra_repr(self) -> str:
        """Shown by ``print(model)``."""
        return f"source={self.source!r}, time_varying={self.time_varying}"
