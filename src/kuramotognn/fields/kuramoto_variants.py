"""Equations of the Kuramoto family beyond the classical one: residual, inertia, lag, delay and adaptive couplings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from kuramotognn.checks import check_finite, check_not_negative
from kuramotognn.fields.base import CoupledDynamics, DelayedDynamics, Dynamics, FunctionDynamics, SecondOrderDynamics
from kuramotognn.fields.coupling import Couplings
from kuramotognn.fields.kuramoto import Equation
from kuramotognn.graph import Pattern
from kuramotognn.kernels import CoupledSystem
from kuramotognn.typing import EdgeWeight, Nodes, NonNegativeFloat


class ResidualKuramoto(Equation):
    r"""The Kuramoto equation with a linear transform of the state.

    .. math::
        \dot x_i = \omega_i + K \sum_j a_{ij} \sin(x_j - x_i) + R\, x_i

    the ``-res`` of the table on heterophilic graphs in `arXiv:2311.03260 <https://arxiv.org/abs/2311.03260>`_. The
    paper calls it a trick similar to GraphCON's; GraphCON's code adds a linear transform of the state to the messages
    of the neighbours. ``R`` is learnt and starts at zero.

    Args:
        channels: width ``d`` of the phases.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.residual = nn.Parameter(torch.zeros(channels, channels))

    def reset_parameters(self) -> None:
        """Start without a residual."""
        nn.init.zeros_(self.residual)

    def forward(self, omega: Nodes, couplings: Couplings, strength: float) -> Dynamics:
        """The dynamics with these frequencies and couplings."""
        kuramoto, residual = CoupledDynamics(couplings, omega, strength), self.residual
        return FunctionDynamics(lambda t, x: kuramoto(t, x) + x @ residual.T, (*kuramoto.tensors(), residual))


class SecondOrderKuramoto(Equation):
    r"""Oscillators with inertia and damping.

    .. math::
        \dot x_i = y_i, \qquad \dot y_i = \omega_i + K \sum_j a_{ij} \sin(x_j - x_i) - \alpha y_i, \qquad Y(0) = X(0)

    the second-order model of the supplement of `arXiv:2311.03260 <https://arxiv.org/abs/2311.03260>`_ and of
    `"Synchronization in complex networks of phase oscillators: A survey"
    <https://doi.org/10.1016/j.automatica.2014.04.012>`_. The supplement writes :math:`-\omega_i` and no ``K``; here the
    sign is the survey's, so that strong damping gives the classical equation, slowed down by ``α``.

    Args:
        damping: damping ``α`` of the velocities, at least 0.
    """

    separable: ClassVar[bool] = True

    def __init__(self, damping: NonNegativeFloat = 1.0) -> None:
        super().__init__()
        check_not_negative("damping", damping)
        self.damping = damping

    def forward(self, omega: Nodes, couplings: Couplings, strength: float) -> Dynamics:
        """The dynamics with these frequencies and couplings."""
        kuramoto, damping = CoupledDynamics(couplings, omega, strength), self.damping

        def acceleration(t: float | Tensor, x: Nodes, y: Nodes) -> Nodes:
            return torch.sub(kuramoto(t, x.contiguous()), y, alpha=damping)

        return SecondOrderDynamics(acceleration, kuramoto.tensors())

    def extra_repr(self) -> str:
        """Options shown by ``print(model)``."""
        return f"damping={self.damping}"


class Sakaguchi(Equation):
    r"""The Kuramoto equation with a phase lag.

    .. math::
        \dot x_i = \omega_i + K \sum_j a_{ij} \sin(x_j - x_i - \lambda)

    from `"A Soluble Active Rotater Model Showing Phase Transitions via Mutual Entertainment"
    <https://doi.org/10.1143/PTP.76.576>`_ (Sakaguchi and Kuramoto, 1986). In phase, every node turns at
    :math:`\omega - K \sin\lambda`; beyond :math:`|\lambda| = \pi/2` neighbours repel. Lag 0 is the classical equation.

    Args:
        lag: phase lag ``λ`` in radians.
    """

    separable: ClassVar[bool] = True

    def __init__(self, lag: float = 0.3) -> None:
        super().__init__()
        check_finite("lag", lag)
        self.lag = lag

    def forward(self, omega: Nodes, couplings: Couplings, strength: float) -> Dynamics:
        """The dynamics with these frequencies and couplings."""
        if not self.lag:
            return CoupledDynamics(couplings, omega, strength)
        lag, velocity = self.lag, _two_moments(omega, couplings, strength)
        return FunctionDynamics(lambda t, x: velocity(x, x + lag), (omega, *couplings.tensors()))

    def extra_repr(self) -> str:
        """Options shown by ``print(model)``."""
        return f"lag={self.lag}"


class DelayedKuramoto(Equation):
    r"""The Kuramoto equation with delayed signals.

    .. math::
        \dot x_i(t) = \omega_i + K \sum_j a_{ij} \sin(x_j(t - \tau) - x_i(t)), \qquad X(t) = X(0) \text{ for } t < 0

    from `"Time Delay in the Kuramoto Model of Coupled Oscillators" <https://doi.org/10.1103/PhysRevLett.82.648>`_
    (Yeung and Strogatz, 1999). A self-loop couples a node to its own past. The fixed-step solver keeps the past: steps
    must be no longer than the delay, and gradients are exact through it. Delay 0 is the classical equation.

    Args:
        delay: delay ``τ`` of the neighbours' phases, 0 or no shorter than a step.
    """

    separable: ClassVar[bool] = True

    def __init__(self, delay: NonNegativeFloat = 0.5) -> None:
        super().__init__()
        check_not_negative("delay", delay)
        self.delay = delay

    def forward(self, omega: Nodes, couplings: Couplings, strength: float) -> Dynamics:
        """The dynamics with these frequencies and couplings."""
        if not self.delay:
            return CoupledDynamics(couplings, omega, strength)
        velocity = _two_moments(omega, couplings, strength)
        return DelayedDynamics(lambda t, x, past: velocity(past, x), self.delay, (omega, *couplings.tensors()))

    def extra_repr(self) -> str:
        """Options shown by ``print(model)``."""
        return f"delay={self.delay}"


def _two_moments(omega: Nodes, couplings: Couplings, strength: float) -> Callable[[Nodes, Nodes], Nodes]:
    r"""The velocity :math:`\omega_i + K \sum_j a_{ij} \sin(p_j - q_i)` of neighbours' phases ``p`` and own ones ``q``.

    Two copies of the nodes, of which the second is coupled to the first, make it an evaluation like any other: one
    fused sparse product, :math:`\cos q_i (A \sin P)_i - \sin q_i (A \cos P)_i`.
    """
    source = torch.cat([torch.zeros_like(omega), omega])
    pattern = couplings.pattern.bipartite

    def velocity(neighbours: Nodes, own: Nodes) -> Nodes:
        system = CoupledSystem(pattern, couplings.at(own), source, strength)
        return system(torch.cat([neighbours, own]))[len(own) :]

    return velocity


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
    strength: float
    rate: float

    def __call__(self, t: float | Tensor, x: Tensor) -> Tensor:
        """The velocity of phases and couplings."""
        phases, a = self.nodes(x), self.couplings(x)
        turn = CoupledSystem(self.pattern, a, self.omega, self.strength)(phases)
        adapt = self.rate * (self.a0 * self._agreement(phases) - a)
        return torch.cat([turn.flatten(), adapt])

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


class AdaptiveKuramoto(Equation):
    r"""The Kuramoto equation with couplings that adapt along the flow: they grow in phase and fade out of phase.

    .. math::
        \dot x_i = \omega_i + K \sum_j a_{ij} \sin(x_j - x_i), \qquad
        \dot a_{ij} = \varepsilon \big( a_{ij}(0)\, \overline{\cos(x_j - x_i)} - a_{ij} \big)

    the Hebbian rule of `"Plasticity and learning in a network of coupled phase oscillators"
    <https://doi.org/10.1103/PhysRevE.65.041906>`_ (Seliger, Young and Tsimring, 2002), with the cosine's mean over
    channels and the initial coupling for its learning strength: :math:`|a_{ij}(t)| \le |a_{ij}(0)|` throughout. Rate 0
    is the classical equation.

    Args:
        rate: rate ``ε`` at which couplings change, at least 0.
    """

    def __init__(self, rate: NonNegativeFloat = 0.1) -> None:
        super().__init__()
        check_not_negative("rate", rate)
        self.rate = rate

    def forward(self, omega: Nodes, couplings: Couplings, strength: float) -> Dynamics:
        """The dynamics with these frequencies and initial couplings."""
        if not self.rate:
            return CoupledDynamics(couplings, omega, strength)
        if couplings.constant is None:
            raise ValueError("adaptive couplings follow their own equation; leave out time_varying")
        return AdaptiveKuramotoDynamics(couplings.pattern, couplings.constant, omega, strength, self.rate)

    def extra_repr(self) -> str:
        """Options shown by ``print(model)``."""
        return f"rate={self.rate}"
