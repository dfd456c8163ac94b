"""GraphCON: graph-coupled damped oscillators."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor, nn

from kuramotognn.checks import check_choice
from kuramotognn.fields import Adjacency, DampedOscillators, Gradient, OscillatorSource, Residual
from kuramotognn.models.continuous import AdjacencyName, ContinuousGNN
from kuramotognn.solver import Solver
from kuramotognn.typing import NonNegativeFloat, PositiveInt, Probability

ActivationName: TypeAlias = Literal["relu", "tanh", "identity"]
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "tanh": torch.tanh,
    "identity": nn.Identity(),
}


class GraphCON(ContinuousGNN):
    r"""The graph-coupled oscillator network.

    .. math::
        \dot x = y, \qquad \dot y = \sigma(A\, x W^\top + b) - \gamma x - \alpha y, \qquad X(0) = Y(0) = \psi(V), \qquad
        z = D\, x(T) + c

    from `"Graph-Coupled Oscillator Networks" <https://arxiv.org/abs/2202.02296>`_. The default solver is the paper's
    step, ``imex``; any other integrates the same equation. With steps of 1 the time is the number of the paper's
    layers.

    Args:
        in_channels: width ``F`` of the node features.
        hidden_channels: width ``d`` of the positions.
        out_channels: number of classes.
        adjacency: the couplings: ``symmetric`` for the paper's GraphCON-GCN, or one of :class:`GraphFlow`'s.
        activation: the function ``σ``; ``relu`` in the paper.
        transform: learn the linear map ``W`` and ``b`` inside ``σ``.
        residual: a learnt transform of the state inside ``σ``: ``linear``, or ``composed`` or ``difference``, versions
            1 and 2 of the authors' code for heterophilic graphs (see :class:`~kuramotognn.DampedOscillators`).
        source: ``added``, ``β x(0)`` in the velocities' equation with ``β`` learnt from zero; or ``mixed``, the gated
            sources of the authors' code for citation graphs, which has no activation and no transform.
        source_gradient: ``attached``, or ``detached`` as in the authors' code: no gradient through the source.
        stiffness: the number ``γ``.
        damping: damping ``α`` of the velocities.
        step_dropout: dropout on positions and velocities after every step, as in the authors' code.
        solver: how to integrate.
        **options: those of :class:`ContinuousGNN` and :class:`~kuramotognn.models.GraphFlow`.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: PositiveInt,
        out_channels: int,
        *,
        adjacency: AdjacencyName | Adjacency = "symmetric",
        activation: ActivationName = "relu",
        transform: bool = True,
        residual: Residual = "none",
        source: OscillatorSource = "none",
        source_gradient: Gradient = "attached",
        stiffness: NonNegativeFloat = 1.0,
        damping: NonNegativeFloat = 1.0,
        step_dropout: Probability = 0.0,
        solver: Solver = Solver("imex", step_size=1.0),  # noqa: B008 -- frozen
        **options: Any,
    ) -> None:
        check_choice("activation", activation, ACTIVATIONS)
        field = partial(
            DampedOscillators,
            hidden_channels,
            transform=transform,
            residual=residual,
            activation=ACTIVATIONS[activation],
            stiffness=stiffness,
            damping=damping,
            source=source,
            source_gradient=source_gradient,
            step_dropout=step_dropout,
        )
        options = options | {"adjacency": adjacency, "solver": solver}
        super().__init__(in_channels, hidden_channels, out_channels, field, **options)
