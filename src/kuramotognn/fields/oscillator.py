"""Second-order fields: damped oscillators on a graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from kuramotognn.checks import check_not_negative
from kuramotognn.fields.base import Field, SecondOrderDynamics
from kuramotognn.fields.coupling import Adjacency
from kuramotognn.fields.kuramoto import PhaseField
from kuramotognn.graph import Graph, Pattern
from kuramotognn.kernels import CoupledSystem, spmm
from kuramotognn.typing import EdgeWeight, Nodes


@dataclass(frozen=True, eq=False)
class DampedOscillatorDynamics(SecondOrderDynamics):
    r""":math:`\ddot x = \sigma(A x W^\top + b + x R^\top) - \gamma x - \alpha \dot x + u`, with all but ``x`` settled.

    Attributes:
        pattern: the graph's pattern.
        couplings: ``A`` as a function of the positions; a constant one, or attention at every time.
        own: ``[N, 1]`` diagonal that is added to ``A``, or none.
        transform: ``W`` ``[d, d]`` and ``b`` ``[d]``, or none.
        residual: ``R`` ``[d, d]``, or none.
        activation: the function ``σ``.
        stiffness: the number ``γ``.
        damping: the number ``α``.
        source: the constant ``u`` ``[N, d]``, or none.
        parameters: what ``couplings`` depends on.
    """

    pattern: Pattern
    couplings: Callable[[Nodes], EdgeWeight]
    own: Tensor | None
    transform: tuple[Tensor, Tensor] | None
    residual: Tensor | None
    activation: Callable[[Tensor], Tensor]
    stiffness: float
    damping: float
    source: Nodes | None
    parameters: tuple[Tensor, ...]

    def acceleration(self, t: float | Tensor, x: Nodes, y: Nodes) -> Nodes:
        """The force on the positions ``x`` with velocities ``y``."""
        force = torch.add(self.activation(self._pull(x)), x, alpha=-self.stiffness).sub(y, alpha=self.damping)
        return force if self.source is None else force + self.source

    def tensors(self) -> tuple[Tensor, ...]:
        """Couplings, transforms and source."""
        optional = (self.own, *(self.transform or ()), self.residual, self.source)
        return (*self.parameters, *(tensor for tensor in optional if tensor is not None))

    def _pull(self, x: Nodes) -> Nodes:
        h = x if self.transform is None else x @ self.transform[0].T
        pull = spmm(self.pattern, self.couplings(x), h.contiguous())
        if self.own is not None:
            pull = torch.addcmul(pull, self.own, h)
        if self.transform is not None:
            pull = pull + self.transform[1]
        return pull if self.residual is None else pull + x @ self.residual.T


class DampedOscillators(Field):
    r"""Graph-coupled damped oscillators, forced by a convolution of their neighbours.

    .. math::
        \dot x = y, \qquad \dot y = \sigma(A\, x W^\top + b + x R^\top) - \gamma x - \alpha y + \beta\, x(0), \qquad
        y(0) = x(0)

    from `"Graph-Coupled Oscillator Networks" <https://arxiv.org/abs/2202.02296>`_ with a graph convolution as its
    coupling. :math:`R` is the residual transform of that paper's code for heterophilic graphs, which the KuramotoGNN
    paper calls ``-res``. :math:`\beta` is learnt and starts at zero; the authors' code for citation graphs has such a
    source, and neither ``W`` nor ``σ``.

    Args:
        channels: width ``d`` of the positions.
        adjacency: where the couplings come from.
        time_varying: take the couplings at ``x(t)`` instead of once at ``x(0)``.
        transform: learn ``W`` and ``b``; the identity otherwise.
        residual: learn ``R``; none otherwise.
        activation: the function ``σ``.
        stiffness: the number ``γ``, at least 0.
        damping: the number ``α``, at least 0.
        source: learn ``β``; none otherwise.
    """

    def __init__(
        self,
        channels: int,
        adjacency: Adjacency,
        *,
        time_varying: bool = False,
        transform: bool = True,
        residual: bool = False,
        activation: Callable[[Tensor], Tensor] = F.relu,
        stiffness: float = 1.0,
        damping: float = 1.0,
        source: bool = False,
    ) -> None:
        super().__init__()
        check_not_negative("stiffness", stiffness)
        check_not_negative("damping", damping)
        self.adjacency = adjacency
        self.time_varying = time_varying
        self.transform = nn.Linear(channels, channels) if transform else None
        self.residual = nn.Linear(channels, channels, bias=False) if residual else None
        self.activation = activation
        self.stiffness = stiffness
        self.damping = damping
        self.beta = nn.Parameter(torch.zeros(())) if source else None

    def reset_parameters(self) -> None:
        """Draw couplings and transforms anew and start without a source."""
        self.adjacency.reset_parameters()
        for linear in (self.transform, self.residual):
            if linear is not None:
                linear.reset_parameters()
        if self.beta is not None:
            nn.init.zeros_(self.beta)

    def forward(self, x0: Nodes, graph: Graph) -> DampedOscillatorDynamics:
        """Settle everything but positions and velocities."""
        frozen = None if self.time_varying else self.adjacency(x0, graph)
        return DampedOscillatorDynamics(
            graph.pattern,
            partial(self.adjacency, graph=graph) if frozen is None else lambda x: frozen,
            self.adjacency.own(graph),
            None if self.transform is None else (self.transform.weight, self.transform.bias),
            None if self.residual is None else self.residual.weight,
            self.activation,
            self.stiffness,
            self.damping,
            None if self.beta is None else self.beta * x0,
            (*self.adjacency.parameters(), graph.weight) if frozen is None else (frozen,),
        )

    def extra_repr(self) -> str:
        """Shown by ``print(model)``."""
        name = getattr(self.activation, "__name__", repr(self.activation))
        varying = ", time_varying=True" if self.time_varying else ""
        return f"activation={name}, stiffness={self.stiffness}, damping={self.damping}{varying}"


@dataclass(frozen=True, eq=False)
class SecondOrderKuramotoDynamics(SecondOrderDynamics):
    r""":math:`\ddot x_i = \omega_i + K \sum_j a_{ij} \sin(x_j - x_i) - \alpha \dot x_i`, all but ``x`` settled."""

    system: CoupledSystem
    damping: float

    def acceleration(self, t: float | Tensor, x: Nodes, y: Nodes) -> Nodes:
        """The change of the velocities ``y`` at phases ``x``."""
        return torch.sub(self.system(x.contiguous()), y, alpha=self.damping)

    def tensors(self) -> tuple[Tensor, ...]:
        """Couplings and natural frequencies."""
        return (self.system.a, self.system.drive)


class SecondOrderKuramoto(PhaseField):
    r"""Oscillators with inertia and damping.

    .. math::
        \dot x_i = y_i, \qquad \dot y_i = \omega_i + K \sum_j a_{ij} \sin(x_j - x_i) - \alpha y_i, \qquad
        \Omega = X(0) = Y(0)

    the second-order model of the supplement of `arXiv:2311.03260 <https://arxiv.org/abs/2311.03260>`_ and of
    `"Synchronization in complex networks of phase oscillators: A survey"
    <https://doi.org/10.1016/j.automatica.2014.04.012>`_. The supplement writes :math:`-\omega_i` and no ``K``; here the
    sign is the survey's, so that strong damping gives back KuramotoGNN, slowed down by ``α``.

    Args:
        adjacency: where the couplings come from.
        coupling: the strength ``K``, positive.
        damping: the number ``α``, at least 0.
    """

    def __init__(self, adjacency: Adjacency, *, coupling: float = 1.0, damping: float = 1.0) -> None:
        super().__init__(adjacency, coupling=coupling)
        check_not_negative("damping", damping)
        self.damping = damping

    def forward(self, x0: Nodes, graph: Graph) -> SecondOrderKuramotoDynamics:
        """Freeze the couplings at ``x0`` and take ``x0`` as natural frequencies."""
        system = CoupledSystem(graph.pattern, self.adjacency(x0, graph), x0, self.coupling)
        return SecondOrderKuramotoDynamics(system, self.damping)

    def extra_repr(self) -> str:
        """Shown by ``print(model)``."""
        return f"{super().extra_repr()}, damping={self.damping}"
