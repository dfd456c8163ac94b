"""The Kuramoto model on a graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from torch import Tensor

from kuramotognn.checks import check_choice, check_positive
from kuramotognn.fields.base import Dynamics, Field
from kuramotognn.fields.coupling import Adjacency
from kuramotognn.graph import Graph, Pattern
from kuramotognn.kernels import CoupledSystem, kuramoto_local_order
from kuramotognn.typing import EdgeWeight, Nodes

Interaction: TypeAlias = Literal["exact", "local-order"]
INTERACTIONS: tuple[Interaction, ...] = ("exact", "local-order")


@dataclass(frozen=True, eq=False)
class KuramotoDynamics(Dynamics):
    r""":math:`\dot x_i = \omega_i + K \sum_j a_{ij} \sin(x_j - x_i)` with couplings and frequencies settled."""

    pattern: Pattern
    a: EdgeWeight
    omega: Nodes
    coupling: float
    interaction: Interaction = "exact"

    def __call__(self, t: float | Tensor, x: Nodes) -> Nodes:
        """The velocity of the phases ``x``."""
        if self.interaction == "local-order":
            return self.omega + self.coupling * kuramoto_local_order(self.pattern, self.a, x)
        return self._exact(x)

    def tensors(self) -> tuple[Tensor, ...]:
        """Couplings and natural frequencies."""
        return (self.a, self.omega)

    def coupled(self) -> CoupledSystem | None:
        """The whole right-hand side, unless it is the approximation."""
        return self._exact if self.interaction == "exact" else None

    @property
    def _exact(self) -> CoupledSystem:
        return CoupledSystem(self.pattern, self.a, self.omega, self.coupling)


class PhaseField(Field):
    """What all Kuramoto fields have: couplings that an adjacency gives, and their strength.

    Args:
        adjacency: where the couplings come from.
        coupling: the strength ``K``, positive.
    """

    def __init__(self, adjacency: Adjacency, *, coupling: float = 1.0) -> None:
        super().__init__()
        check_positive("coupling", coupling)
        self.adjacency = adjacency
        self.coupling = coupling

    def reset_parameters(self) -> None:
        """Draw the parameters of the couplings anew."""
        self.adjacency.reset_parameters()

    def extra_repr(self) -> str:
        """Shown by ``print(model)``."""
        return f"coupling={self.coupling}"


class Kuramoto(PhaseField):
    r"""Coupled oscillators with natural frequencies equal to their initial phases.

    .. math::
        \dot x_i = \omega_i + K \sum_j a_{ij} \sin(x_j - x_i), \qquad \Omega = X(0)

    from `"From Coupled Oscillators to Graph Neural Networks: Reducing Over-smoothing via a Kuramoto Model-based
    Approach" <https://arxiv.org/abs/2311.03260>`_. The couplings :math:`a_{ij}` are taken once, at ``X(0)``.

    Args:
        adjacency: where the couplings come from.
        coupling: the strength ``K``, positive.
        interaction: ``"exact"``, or the supplement's approximation ``"local-order"``
            (see :func:`kuramotognn.kernels.kuramoto_local_order`).
    """

    def __init__(self, adjacency: Adjacency, *, coupling: float = 1.0, interaction: Interaction = "exact") -> None:
        super().__init__(adjacency, coupling=coupling)
        check_choice("interaction", interaction, INTERACTIONS)
        self.interaction: Interaction = interaction

    def forward(self, x0: Nodes, graph: Graph) -> KuramotoDynamics:
        """Freeze the couplings at ``x0`` and take ``x0`` as natural frequencies."""
        return KuramotoDynamics(graph.pattern, self.adjacency(x0, graph), x0, self.coupling, self.interaction)

    def extra_repr(self) -> str:
        """Shown by ``print(model)``."""
        return f"{super().extra_repr()}, interaction={self.interaction!r}"
