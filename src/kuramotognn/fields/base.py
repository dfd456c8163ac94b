"""What a field is: the right-hand side of the differential equation whose flow is a model's depth."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from kuramotognn.graph import Graph
from kuramotognn.kernels import CoupledSystem
from kuramotognn.typing import Nodes


class Dynamics(ABC):
    """A right-hand side ``f(t, x)`` with everything but time and state settled: what a solver integrates.

    It knows nothing of solvers, labels or decoders.
    """

    @abstractmethod
    def __call__(self, t: float | Tensor, x: Nodes) -> Nodes:
        """The velocity of the state ``x`` at time ``t``."""

    @abstractmethod
    def tensors(self) -> tuple[Tensor, ...]:
        """The tensors ``f`` depends on besides ``x``: an adjoint solver must return their gradients."""

    def coupled(self) -> CoupledSystem | None:
        """The same right-hand side in the form that fused kernels integrate, where it has that form."""
        return None

    def start(self, x0: Nodes) -> Tensor:
        """The state at time 0: ``x0`` itself, unless more than the nodes' ``x`` evolves."""
        return x0

    def nodes(self, states: Tensor) -> Nodes:
        """What belongs to ``x`` in states ``[..., *state]``: ``[..., N, d]``."""
        return states


class SecondOrderDynamics(Dynamics):
    r""":math:`\dot x = y,\ \dot y = f(t, x, y)` on the state ``[x | y]`` ``[N, 2d]``, with :math:`y(0) = x(0)`."""

    @abstractmethod
    def acceleration(self, t: float | Tensor, x: Nodes, y: Nodes) -> Nodes:
        """The change of the velocities ``y`` at time ``t``."""

    def __call__(self, t: float | Tensor, x: Nodes) -> Nodes:
        """The velocity of the state ``[x | y]``."""
        position, velocity = x.chunk(2, dim=-1)
        return torch.cat([velocity, self.acceleration(t, position, velocity)], dim=-1)

    def start(self, x0: Nodes) -> Nodes:
        """``[x0 | x0]``: velocities start like positions, as GraphCON's do."""
        return torch.cat([x0, x0], dim=-1)

    def nodes(self, states: Tensor) -> Nodes:
        """The positions."""
        return states.chunk(2, dim=-1)[0]


class DelayedDynamics(Dynamics):
    r""":math:`\dot x = f(t, x(t), x(t - \tau))`, with :math:`x(t) = x(0)` before time 0.

    A fixed-step solver keeps the past and passes it on.

    Attributes:
        delay: how far back, ``τ``, positive.
    """

    delay: float

    @abstractmethod
    def velocity(self, t: float | Tensor, x: Nodes, past: Nodes) -> Nodes:
        """The velocity of the state ``x`` at time ``t`` whose value at ``t - delay`` was ``past``."""

    def __call__(self, t: float | Tensor, x: Nodes) -> Nodes:
        """Refused: the present alone does not settle the velocity."""
        raise TypeError(f"{type(self).__name__} depends on its past; integrate it, or call velocity(t, x, past)")


class Field(nn.Module, ABC):
    """A learnable right-hand side: given the initial state and the graph, it settles the :class:`Dynamics`."""

    @abstractmethod
    def forward(self, x0: Nodes, graph: Graph) -> Dynamics:
        """The dynamics that start from ``x0`` on ``graph``."""

    @abstractmethod
    def reset_parameters(self) -> None:
        """Draw the learnable parameters anew."""
