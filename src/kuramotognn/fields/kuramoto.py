"""The Kuramoto model on a graph, and what an equation of the Kuramoto family is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Literal, TypeAlias

from torch import Tensor, nn

from kuramotognn.checks import check_choice, check_positive
from kuramotognn.fields.base import (
    GRADIENTS,
    CoupledDynamics,
    Dynamics,
    Field,
    FunctionDynamics,
    Gradient,
    Velocity,
)
from kuramotognn.fields.coupling import Adjacency, Couplings
from kuramotognn.kernels import kuramoto_local_order
from kuramotognn.typing import Nodes

Interaction: TypeAlias = Literal["exact", "local-order"]
INTERACTIONS: tuple[Interaction, ...] = ("exact", "local-order")


class Equation(nn.Module, ABC):
    """An equation of coupled phases; its parameters are settings of the model that uses it.

    A subclass may learn parameters of its own. Where it needs the width of the phases, its first parameter is
    ``channels``.

    Attributes:
        separable: whether the velocity of a channel depends on no other channel.
    """

    separable: ClassVar[bool] = False

    @abstractmethod
    def forward(self, omega: Nodes, couplings: Couplings, strength: float) -> Dynamics | Velocity:
        """The right-hand side: dynamics, or a function ``f(t, x)``.

        Args:
            omega: ``[N, d]`` natural frequencies.
            couplings: the couplings ``a_ij``.
            strength: the coupling strength ``K``.
        """

    def reset_parameters(self) -> None:
        """Reset the learnable parameters."""


class Kuramoto(Equation):
    r"""Coupled oscillators.

    .. math::
        \dot x_i = \omega_i + K \sum_j a_{ij} \sin(x_j - x_i)

    from `"From Coupled Oscillators to Graph Neural Networks: Reducing Over-smoothing via a Kuramoto Model-based
    Approach" <https://arxiv.org/abs/2311.03260>`_.

    Args:
        interaction: ``"exact"``, or ``"local-order"``, the approximation of the paper's supplement.
    """

    separable: ClassVar[bool] = True

    def __init__(self, interaction: Interaction = "exact") -> None:
        super().__init__()
        check_choice("interaction", interaction, INTERACTIONS)
        self.interaction: Interaction = interaction

    def forward(self, omega: Nodes, couplings: Couplings, strength: float) -> Dynamics:
        """The dynamics with these frequencies and couplings."""
        if self.interaction == "exact":
            return CoupledDynamics(couplings, omega, strength)

        def velocity(t: float | Tensor, x: Nodes) -> Nodes:
            return omega + strength * kuramoto_local_order(couplings.pattern, couplings.at(x), x)

        return FunctionDynamics(velocity, (omega, *couplings.tensors()))

    def extra_repr(self) -> str:
        """Options shown by ``print(model)``."""
        return f"interaction={self.interaction!r}"


class PhaseField(Field):
    r"""Phases with an equation of the Kuramoto family and natural frequencies :math:`\Omega = X(0)`.

    Args:
        adjacency: gives the couplings.
        equation: the equation; :class:`Kuramoto` unless given.
        coupling: the coupling strength ``K``, positive.
        frequencies: whether gradients flow through the natural frequencies (``"attached"``) or through ``X(0)`` alone
            (``"detached"``).
        time_varying: take the couplings from the state at every evaluation instead of once at ``X(0)``.
    """

    def __init__(
        self,
        adjacency: Adjacency,
        equation: Equation | None = None,
        *,
        coupling: float = 1.0,
        frequencies: Gradient = "attached",
        time_varying: bool = False,
    ) -> None:
        super().__init__(adjacency, time_varying=time_varying)
        check_positive("coupling", coupling)
        check_choice("frequencies", frequencies, GRADIENTS)
        self.equation = Kuramoto() if equation is None else equation
        self.coupling = coupling
        self.frequencies: Gradient = frequencies

    @property
    def separable(self) -> bool:
        """As the equation is, unless the attention at each evaluation takes all channels."""
        return self.equation.separable and not self.time_varying

    def dynamics(self, x0: Nodes, couplings: Couplings) -> Dynamics:
        """The equation with natural frequencies ``x0``."""
        omega = x0.detach() if self.frequencies == "detached" else x0
        found = self.equation(omega, couplings, self.coupling)
        if isinstance(found, Dynamics):
            return found
        return FunctionDynamics(found, (omega, *couplings.tensors(), *self.equation.parameters()))

    def reset_parameters(self) -> None:
        """Reset couplings and equation."""
        super().reset_parameters()
        self.equation.reset_parameters()

    def extra_repr(self) -> str:
        """Options shown by ``print(model)``."""
        return f"coupling={self.coupling}, time_varying={self.time_varying}"
