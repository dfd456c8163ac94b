"""First-order variants of the Kuramoto field: residual, time-varying, lagged, delayed and adaptive coupling."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor, nn

from kuramotognn.checks import check_not_negative
from kuramotognn.fields.base import DelayedDynamics, Dynamics
from kuramotognn.fields.coupling import Adjacency
from kuramotognn.fields.kuramoto import KuramotoDynamics, PhaseField
from kuramotognn.graph import Graph, Pattern
from kuramotognn.kernels import CoupledSystem
from kuramotognn.typing import EdgeWeight, Nodes


@dataclass(frozen=True, eq=False)
class Listening:
    r"""The velocity :math:`\omega_i + K \sum_j a_{ij} \sin(p_j - q_i)` for others' phases ``p`` and one's own ``q``.

    Two copies of the nodes, of which the second listens to the first, make it an evaluation like any other: one fused
    sparse product, :math:`\cos q_i (A \sin P)_i - \sin q_i (A \cos P)_i`.
    """

    pattern: Pattern
    a: EdgeWeight
    omega: Nodes
    coupling: float

    def tensors(self) -> tuple[Tensor, ...]:
        """Couplings and natural frequencies."""
        return (self.a, self.omega)

    def _turn(self, others: Nodes, own: Nodes) -> Nodes:
        return self._system(torch.cat([others, own]))[len(own) :]

    @cached_property
    def _system(self) -> CoupledSystem:
        drive = torch.cat([torch.zeros_like(self.omega), self.omega])
        return CoupledSystem(self.pattern.across, self.a, drive, self.coupling)


@dataclass(frozen=True, eq=False)
class ResidualKuramotoDynamics(Dynamics):
    r""":math:`\dot x_i = \omega_i + K \sum_j a_{ij} \sin(x_j - x_i) + R x_i` with couplings and frequencies settled."""

    system: CoupledSystem
    residual: Tensor

    def __call__(self, t: float | Tensor, x: Nodes) -> Nodes:
        """The velocity of the phases ``x``."""
        return self.system(x) + x @ self.residual.T

    def tensors(self) -> tuple[Tensor, ...]:
        """Couplings, natural frequencies and the residual transform."""
        return (self.system.a, self.system.drive, self.residual)


class ResidualKuramoto(PhaseField):
    r"""The Kuramoto field with a linear transform of the state.

    .. math::
        \dot x_i = \omega_i + K \sum_j a_{ij} \sin(x_j - x_i) + R\, x_i, \qquad \Omega = X(0)

    the ``-res`` of the table on heterophilic graphs in `arXiv:2311.03260 <https://arxiv.org/abs/2311.03260>`_. The
    paper says that it is a trick similar to GraphCON's and no more; GraphCON's code adds a linear transform of the
    state to what the neighbours send. ``R`` is learnt and starts at zero: the field starts as KuramotoGNN's.

    Args:
        channels: width ``d`` of the phases.
        adjacency: where the couplings come from.
        coupling: the strength ``K``, positive.
    """

    def __init__(self, channels: int, adjacency: Adjacency, *, coupling: float = 1.0) -> None:
        super().__init__(adjacency, coupling=coupling)
        self.residual = nn.Parameter(torch.zeros(channels, channels))

    def reset_parameters(self) -> None:
        """Draw the parameters of the couplings anew and start without a residual."""
        super().reset_parameters()
        nn.init.zeros_(self.residual)

    def forward(self, x0: Nodes, graph: Graph) -> ResidualKuramotoDynamics:
        """Freeze the couplings at ``x0`` and take ``x0`` as natural frequencies."""
        system = CoupledSystem(graph.pattern, self.adjacency(x0, graph), x0, self.coupling)
        return ResidualKuramotoDynamics(system, self.residual)


@dataclass(frozen=True, eq=False)
class TimeVaryingKuramotoDynamics(Dynamics):
    r""":math:`\dot x_i = \omega_i + K \sum_j a_{ij}(x) \sin(x_j - x_i)` with frequencies settled."""

    adjacency: Adjacency
    graph: Graph
    omega: Nodes
    coupling: float

    def __call__(self, t: float | Tensor, x: Nodes) -> Nodes:
        """The velocity of the phases ``x``."""
        return CoupledSystem(self.graph.pattern, self.adjacency(x, self.graph), self.omega, self.coupling)(x)

    def tensors(self) -> tuple[Tensor, ...]:
        """The parameters of the couplings, the edge weights and the natural frequencies."""
        return (*self.adjacency.parameters(), self.graph.weight, self.omega)


class TimeVaryingKuramoto(PhaseField):
    r"""The Kuramoto field with couplings taken at every time.

    .. math::
        \dot x_i = \omega_i + K \sum_j a_{ij}(X(t)) \sin(x_j - x_i), \qquad \Omega = X(0)

    to KuramotoGNN (`arXiv:2311.03260 <https://arxiv.org/abs/2311.03260>`_) what GRAND-nl is to GRAND-l
    (`arXiv:2106.10934 <https://arxiv.org/abs/2106.10934>`_).
    """

    def forward(self, x0: Nodes, graph: Graph) -> TimeVaryingKuramotoDynamics:
        """Take ``x0`` as natural frequencies."""
        return TimeVaryingKuramotoDynamics(self.adjacency, graph, x0, self.coupling)


@dataclass(frozen=True, eq=False)
class SakaguchiDynamics(Listening, Dynamics):
    r""":math:`\dot x_i = \omega_i + K \sum_j a_{ij} \sin(x_j - x_i - \lambda)`, all but ``x`` settled."""

    lag: float

    def __call__(self, t: float | Tensor, x: Nodes) -> Nodes:
        """The velocity of the phases ``x``."""
        return self._turn(x, x + self.lag)


class Sakaguchi(PhaseField):
    r"""The Kuramoto field with a phase lag.

    .. math::
        \dot x_i = \omega_i + K \sum_j a_{ij} \sin(x_j - x_i - \lambda), \qquad \Omega = X(0)

    from `"A Soluble Active Rotater Model Showing Phase Transitions via Mutual Entertainment"
    <https://doi.org/10.1143/PTP.76.576>`_ (Sakaguchi and Kuramoto, 1986). In phase, every node turns at
    :math:`\omega - K \sin\lambda`; beyond :math:`|\lambda| = \pi/2` neighbours repel. Lag 0 is KuramotoGNN.

    Args:
        adjacency: where the couplings come from.
        coupling: the strength ``K``, positive.
        lag: the angle ``λ`` in radians.
    """

    def __init__(self, adjacency: Adjacency, *, coupling: float = 1.0, lag: float = 0.0) -> None:
        super().__init__(adjacency, coupling=coupling)
        if not math.isfinite(lag):
            raise ValueError(f"lag must be a finite angle in radians, got {lag}")
        self.lag = lag

    def forward(self, x0: Nodes, graph: Graph) -> SakaguchiDynamics | KuramotoDynamics:
        """Freeze the couplings at ``x0`` and take ``x0`` as natural frequencies."""
        operands = graph.pattern, self.adjacency(x0, graph), x0, self.coupling
        return SakaguchiDynamics(*operands, self.lag) if self.lag else KuramotoDynamics(*operands)

    def extra_repr(self) -> str:
        """Shown by ``print(model)``."""
        return f"{super().extra_repr()}, lag={self.lag}"


@dataclass(frozen=True, eq=False)
class DelayedKuramotoDynamics(Listening, DelayedDynamics):
    r""":math:`\dot x_i = \omega_i + K \sum_j a_{ij} \sin(x_j(t - \tau) - x_i(t))`, all but ``x`` settled."""

    delay: float

    def velocity(self, t: float | Tensor, x: Nodes, past: Nodes) -> Nodes:
        """The velocity of the phases ``x`` that were ``past`` before the delay."""
        return self._turn(past, x)


class DelayedKuramoto(PhaseField):
    r"""The Kuramoto field whose signals take time.

    .. math::
        \dot x_i(t) = \omega_i + K \sum_j a_{ij} \sin(x_j(t - \tau) - x_i(t)), \qquad
        \Omega = X(0), \quad X(t) = X(0) \text{ for } t < 0

    from `"Time Delay in the Kuramoto Model of Coupled Oscillators" <https://doi.org/10.1103/PhysRevLett.82.648>`_
    (Yeung and Strogatz, 1999). A self-loop listens to its own past. The fixed-step solver keeps the past: steps must be
    no longer than the delay, and gradients are exact through it. Delay 0 is KuramotoGNN.

    Args:
        adjacency: where the couplings come from.
        coupling: the strength ``K``, positive.
        delay: the time ``τ``, at least 0.
    """

    def __init__(self, adjacency: Adjacency, *, coupling: float = 1.0, delay: float = 0.0) -> None:
        super().__init__(adjacency, coupling=coupling)
        check_not_negative("delay", delay)
        self.delay = delay

    def forward(self, x0: Nodes, graph: Graph) -> DelayedKuramotoDynamics | KuramotoDynamics:
        """Freeze the couplings at ``x0`` and take ``x0`` as natural frequencies."""
        operands = graph.pattern, self.adjacency(x0, graph), x0, self.coupling
        return DelayedKuramotoDynamics(*operands, self.delay) if self.delay else KuramotoDynamics(*operands)

    def extra_repr(self) -> str:
        """Shown by ``print(model)``."""
        return f"{super().extra_repr()}, delay={self.delay}"


@dataclass(frozen=True, eq=False)
class AdaptiveKuramotoDynamics(Dynamics):
    r"""Phases and couplings that change each other, on the flat state ``[x | a]`` of ``N · d + E`` numbers.

    .. math::
        \dot x_i = \omega_i + K \sum_j a_{ij} \sin(x_j - x_i), \qquad
        \dot a_{ij} = \varepsilon \Big( a_{ij}(0)\, \frac{1}{d} \sum_{c=1}^d \cos(x_j^c - x_i^c) - a_{ij} \Big)
    """

    pattern: Pattern
    a0: EdgeWeight
    omega: Nodes
    coupling: float
    rate: float

    def __call__(self, t: float | Tensor, x: Tensor) -> Tensor:
        """The velocity of phases and couplings."""
        phases, a = self.nodes(x), self.couplings(x)
        turn = CoupledSystem(self.pattern, a, self.omega, self.coupling)(phases)
        learn = self.rate * (self.a0 * self._agreement(phases) - a)
        return torch.cat([turn.flatten(), learn])

    def tensors(self) -> tuple[Tensor, ...]:
        """Initial couplings and natural frequencies."""
        return (self.a0, self.omega)

    def start(self, x0: Nodes) -> Tensor:
        """Phases ``x0`` and the initial couplings."""
        return torch.cat([x0.flatten(), self.a0])

    def nodes(self, states: Tensor) -> Nodes:
        """The phases."""
        return states[..., : self.omega.numel()].reshape(*states.shape[:-1], *self.omega.shape)

    def couplings(self, states: Tensor) -> EdgeWeight:
        """The couplings ``[..., E]``."""
        return states[..., self.omega.numel() :]

    def _agreement(self, x: Nodes) -> EdgeWeight:
        phasors = torch.cat([x.cos(), x.sin()], dim=-1)
        return (self.pattern.of_row(phasors) * self.pattern.of_col(phasors)).sum(dim=-1) / max(x.size(-1), 1)


class AdaptiveKuramoto(PhaseField):
    r"""The Kuramoto field whose couplings learn along the flow: nodes in phase tie closer, nodes out of phase part.

    .. math::
        \dot x_i = \omega_i + K \sum_j a_{ij} \sin(x_j - x_i), \qquad
        \dot a_{ij} = \varepsilon \big( a_{ij}(0)\, \overline{\cos(x_j - x_i)} - a_{ij} \big), \qquad \Omega = X(0)

    the Hebbian rule of `"Plasticity and learning in a network of coupled phase oscillators"
    <https://doi.org/10.1103/PhysRevE.65.041906>`_ (Seliger, Young and Tsimring, 2002), with the cosine's mean over
    channels and the initial coupling for its learning strength: :math:`|a_{ij}(t)| \le |a_{ij}(0)|` throughout. Rate 0
    is KuramotoGNN.

    Args:
        adjacency: where the couplings start.
        coupling: the strength ``K``, positive.
        rate: the number ``ε``, at least 0.
    """

    def __init__(self, adjacency: Adjacency, *, coupling: float = 1.0, rate: float = 0.0) -> None:
        super().__init__(adjacency, coupling=coupling)
        check_not_negative("rate", rate)
        self.rate = rate

    def forward(self, x0: Nodes, graph: Graph) -> AdaptiveKuramotoDynamics | KuramotoDynamics:
        """Take the initial couplings at ``x0`` and ``x0`` as natural frequencies."""
        operands = graph.pattern, self.adjacency(x0, graph), x0, self.coupling
        return AdaptiveKuramotoDynamics(*operands, self.rate) if self.rate else KuramotoDynamics(*operands)

    def extra_repr(self) -> str:
        """Shown by ``print(model)``."""
        return f"{super().extra_repr()}, rate={self.rate}"
