"""Fields: learnable right-hand sides of the differential equation whose flow is a model's depth."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import torch
from torch import Tensor, nn

from kuramotognn.fields.coupling import Adjacency, Couplings
from kuramotognn.graph import Graph
from kuramotognn.kernels import CoupledSystem
from kuramotognn.typing import Nodes

Gradient: TypeAlias = Literal["attached", "detached"]
GRADIENTS: tuple[Gradient, ...] = ("attached", "detached")
"""Whether gradients flow through a constant term that is made of ``x(0)``."""
Velocity: TypeAlias = Callable[[float | Tensor, Nodes], Nodes]
"""A right-hand side ``f(t, x)``."""


class Dynamics(ABC):
    """A right-hand side ``f(t, x)`` with everything but time and state fixed: what a solver integrates.

    It is independent of solvers, labels and decoders.
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
        """The nodes' ``x`` in states ``[..., *state]``: ``[..., N, d]``."""
        return states


@dataclass(frozen=True, eq=False)
class FunctionDynamics(Dynamics):
    """Any function ``f(t, x)`` as dynamics.

    Attributes:
        velocity: the function.
        parameters: the tensors it depends on besides ``x``; only adjoint solvers need them.
    """

    velocity: Velocity
    parameters: tuple[Tensor, ...] = ()

    def __call__(self, t: float | Tensor, x: Nodes) -> Nodes:
        """The velocity of the state ``x``."""
        return self.velocity(t, x)

    def tensors(self) -> tuple[Tensor, ...]:
        """The parameters that were given."""
        return self.parameters


@dataclass(frozen=True, eq=False)
class CoupledDynamics(Dynamics):
    r""":math:`\dot x_i = u_i + K \sum_j a_{ij} \sin(x_j - x_i)`, or :math:`u_i + \alpha (\sum_j a_{ij} x_j - x_i)`.

    Attributes:
        couplings: the couplings ``a``.
        source: ``[N, d]`` the constant term: natural frequencies ``ω``, or a source.
        strength: ``K`` or ``α``; a tensor ``[]`` when it is learnt.
        linear: linear coupling instead of sines.
    """

    couplings: Couplings
    source: Nodes
    strength: float | Tensor = 1.0
    linear: bool = False

    def __call__(self, t: float | Tensor, x: Nodes) -> Nodes:
        """The velocity of the state ``x``."""
        return self._system(self.couplings.at(x))(x)

    def tensors(self) -> tuple[Tensor, ...]:
        """Couplings, constant term and a learnt strength."""
        strength = (self.strength,) if isinstance(self.strength, Tensor) else ()
        return (*self.couplings.tensors(), self.source, *strength)

    def coupled(self) -> CoupledSystem | None:
        """The whole right-hand side, unless the couplings vary with the state."""
        return None if self.couplings.constant is None else self._system(self.couplings.constant)

    def _system(self, a: Tensor) -> CoupledSystem:
        return CoupledSystem(self.couplings.pattern, a, self.source, self.strength, self.linear)


@dataclass(frozen=True, eq=False)
class SecondOrderDynamics(Dynamics):
    r""":math:`\dot x = g(y),\ \dot y = f(t, x, y)` on the state ``[x | y]`` ``[N, 2d]``, with :math:`y(0) = x(0)`.

    Attributes:
        acceleration: the function ``f``.
        parameters: the tensors that ``f`` and ``g`` depend on besides ``x`` and ``y``.
        rate: the function ``g``; the identity unless given.
        after_step: applied to the state, or to positions and velocities, at the start and after each step of a
            fixed-step method: an elementwise function such as dropout.
    """

    acceleration: Callable[[float | Tensor, Nodes, Nodes], Nodes]
    parameters: tuple[Tensor, ...] = ()
    rate: Callable[[Nodes], Nodes] | None = None
    after_step: Callable[[Nodes], Nodes] | None = None

    def __call__(self, t: float | Tensor, x: Nodes) -> Nodes:
        """The velocity of the state ``[x | y]``."""
        position, velocity = x.chunk(2, dim=-1)
        return torch.cat([self.position_rate(velocity), self.acceleration(t, position, velocity)], dim=-1)

    def position_rate(self, y: Nodes) -> Nodes:
        """The velocity of the positions: ``y``, unless ``rate`` is given."""
        return y if self.rate is None else self.rate(y)

    def tensors(self) -> tuple[Tensor, ...]:
        """The parameters that were given."""
        return self.parameters

    def start(self, x0: Nodes) -> Nodes:
        """``[x0 | x0]``: velocities start like positions, as GraphCON's do."""
        state = torch.cat([x0, x0], dim=-1)
        return state if self.after_step is None else self.after_step(state)

    def nodes(self, states: Tensor) -> Nodes:
        """The positions."""
        return states.chunk(2, dim=-1)[0]


@dataclass(frozen=True, eq=False)
class DelayedDynamics(Dynamics):
    r""":math:`\dot x = f(t, x(t), x(t - \tau))`, with :math:`x(t) = x(0)` before time 0.

    A fixed-step solver keeps the past states and passes them on.

    Attributes:
        velocity: the function ``f``.
        delay: the time ``τ``, positive.
        parameters: the tensors ``f`` depends on besides the states.
    """

    velocity: Callable[[float | Tensor, Nodes, Nodes], Nodes]
    delay: float
    parameters: tuple[Tensor, ...] = ()

    def __call__(self, t: float | Tensor, x: Nodes) -> Nodes:
        """Raises TypeError: a delayed system needs its past state."""
        raise TypeError("delayed dynamics need the past state; integrate them, or call velocity(t, x, past)")

    def tensors(self) -> tuple[Tensor, ...]:
        """The parameters that were given."""
        return self.parameters


class Field(nn.Module, ABC):
    """A learnable right-hand side. Called with the initial state and the graph, it gives the :class:`Dynamics`.

    Args:
        adjacency: gives the couplings.
        time_varying: take the couplings from the state at every evaluation instead of once at ``x(0)``.
    """

    def __init__(self, adjacency: Adjacency, *, time_varying: bool = False) -> None:
        super().__init__()
        self.adjacency = adjacency
        self.time_varying = time_varying

    def forward(self, x0: Nodes, graph: Graph) -> Dynamics:
        """The dynamics that start from ``x0`` on ``graph``."""
        return self.dynamics(x0, Couplings.of(self.adjacency, x0, graph, time_varying=self.time_varying))

    @property
    def separable(self) -> bool:
        """Whether channels do not act on each other once the couplings are known, so that processes may share them."""
        return False

    @abstractmethod
    def dynamics(self, x0: Nodes, couplings: Couplings) -> Dynamics:
        """The dynamics that start from ``x0`` with these couplings."""

    def reset_parameters(self) -> None:
        """Reset the learnable parameters."""
        self.adjacency.reset_parameters()
