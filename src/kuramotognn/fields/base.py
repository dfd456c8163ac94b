"""What a field is: the right-hand side of the differential equation whose flow is a model's depth."""

from __future__ import annotations

from abc import ABC, abstractmethod

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


class Field(nn.Module, ABC):
    """A learnable right-hand side: given the initial state and the graph, it settles the :class:`Dynamics`."""

    @abstractmethod
    def forward(self, x0: Nodes, graph: Graph) -> Dynamics:
        """The dynamics that start from ``x0`` on ``graph``."""

    @abstractmethod
    def reset_parameters(self) -> None:
        """Draw the learnable parameters anew."""
