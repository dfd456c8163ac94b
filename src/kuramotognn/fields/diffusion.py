"""Linear diffusion on a graph: what the Kuramoto model becomes for small phases."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from kuramotognn.fields.base import Dynamics, Field
from kuramotognn.fields.coupling import Adjacency
from kuramotognn.graph import Graph
from kuramotognn.kernels import CoupledSystem
from kuramotognn.typing import Nodes


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


class Diffusion(Field):
    r"""Graph diffusion, with the initial state as a source.

    .. math::
        \dot x = \alpha (A - I)\, x + \beta\, x(0)

    from `"GRAND: Graph Neural Diffusion" <https://arxiv.org/abs/2106.10934>`_ as its code writes it: :math:`\alpha` is
    the logistic function of a learnt number, :math:`\beta` is learnt and starts at zero. Without ``source`` there is no
    second term.

    Args:
        adjacency: where the couplings come from.
        source: add :math:`\beta x(0)`.
    """

    def __init__(self, adjacency: Adjacency, *, source: bool = True) -> None:
        super().__init__()
        self.adjacency = adjacency
        self.alpha = nn.Parameter(torch.zeros(()))
        self.beta = nn.Parameter(torch.zeros(())) if source else None

    def reset_parameters(self) -> None:
        """Draw the parameters of the couplings anew and start with equal pull and no source."""
        self.adjacency.reset_parameters()
        nn.init.zeros_(self.alpha)
        if self.beta is not None:
            nn.init.zeros_(self.beta)

    def forward(self, x0: Nodes, graph: Graph) -> DiffusionDynamics:
        """Freeze the couplings at ``x0``."""
        drive = torch.zeros_like(x0) if self.beta is None else self.beta * x0
        a = self.adjacency(x0, graph)
        return DiffusionDynamics(CoupledSystem(graph.pattern, a, drive, self.alpha.sigmoid(), linear=True))
