"""Damped oscillators on a graph: the field of GraphCON."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from kuramotognn.checks import check_choice, check_dropout, check_not_negative
from kuramotognn.features import dropout
from kuramotognn.fields.base import GRADIENTS, Field, Gradient, SecondOrderDynamics
from kuramotognn.fields.coupling import Adjacency, Couplings
from kuramotognn.kernels import spmm
from kuramotognn.typing import Nodes

Residual: TypeAlias = Literal["none", "linear", "composed", "difference"]
OscillatorSource: TypeAlias = Literal["none", "added", "mixed"]
RESIDUALS: tuple[Residual, ...] = ("none", "linear", "composed", "difference")
OSCILLATOR_SOURCES: tuple[OscillatorSource, ...] = ("none", "added", "mixed")


class DampedOscillators(Field):
    r"""Graph-coupled damped oscillators, forced by a convolution of their neighbours.

    .. math::
        \dot x = y, \qquad \dot y = \sigma(A\, x W^\top + b + r(x)) - \gamma x - \alpha y + \beta\, x(0), \qquad
        y(0) = x(0)

    from `"Graph-Coupled Oscillator Networks" <https://arxiv.org/abs/2202.02296>`_ with a graph convolution as its
    coupling. The residual :math:`r`, which the KuramotoGNN paper calls ``-res``, is one of

    - ``"none"``;
    - ``"linear"``: :math:`x R^\top`;
    - ``"composed"``: :math:`-(x W^\top) R^\top - c`, version 1 of that paper's code for heterophilic graphs;
    - ``"difference"``: :math:`-x W^\top + x R^\top + c`, version 2 of it.

    The source is one of

    - ``"none"``;
    - ``"added"``: :math:`\beta\, x(0)`, :math:`\beta` learnt from zero;
    - ``"mixed"``, as in that paper's code for citation graphs: :math:`\dot y = (1 - \beta)\, f + \beta\, x(0)` with the
      acceleration :math:`f` above, and :math:`\dot x = (1 - \delta)\, \varepsilon\, y + \delta\, x(0)`; the numbers
      :math:`\beta, \delta, \varepsilon \in (0, 1)` are learnt, from 1/2.

    Args:
        channels: width ``d`` of the positions.
        adjacency: gives the couplings.
        transform: learn ``W`` and ``b``; the identity otherwise.
        residual: which residual.
        activation: the function ``σ``.
        stiffness: the number ``γ``, at least 0.
        damping: the number ``α``, at least 0.
        source: which source.
        source_gradient: whether gradients flow through the source (``"attached"``) or not (``"detached"``).
        step_dropout: dropout on positions and velocities at the start and after every step, while training.
        time_varying: take the couplings from the state at every evaluation instead of once at ``x(0)``.
    """

    def __init__(
        self,
        channels: int,
        adjacency: Adjacency,
        *,
        transform: bool = True,
        residual: Residual = "none",
        activation: Callable[[Tensor], Tensor] = F.relu,
        stiffness: float = 1.0,
        damping: float = 1.0,
        source: OscillatorSource = "none",
        source_gradient: Gradient = "attached",
        step_dropout: float = 0.0,
        time_varying: bool = False,
    ) -> None:
        super().__init__(adjacency, time_varying=time_varying)
        check_choice("residual", residual, RESIDUALS)
        check_choice("source", source, OSCILLATOR_SOURCES)
        check_choice("source_gradient", source_gradient, GRADIENTS)
        check_not_negative("stiffness", stiffness)
        check_not_negative("damping", damping)
        check_dropout("step_dropout", step_dropout)
        if residual in ("composed", "difference") and not transform:
            raise ValueError(f"residual {residual!r} needs the transform W; set transform or take another residual")
        self.transform = nn.Linear(channels, channels) if transform else None
        self.residual_form: Residual = residual
        self.residual = None if residual == "none" else nn.Linear(channels, channels, bias=residual != "linear")
        self.activation, self.stiffness, self.damping = activation, stiffness, damping
        self.source: OscillatorSource = source
        self.source_gradient: Gradient = source_gradient
        self.step_dropout = step_dropout
        self.beta = None if source == "none" else nn.Parameter(torch.zeros(()))
        self.delta, self.epsilon = (
            (nn.Parameter(torch.zeros(())) if source == "mixed" else None) for _ in ("delta", "epsilon")
        )

    def reset_parameters(self) -> None:
        """Reset couplings and transforms; start without an added source."""
        super().reset_parameters()
        for linear in (self.transform, self.residual):
            if linear is not None:
                linear.reset_parameters()
        for number in (self.beta, self.delta, self.epsilon):
            if number is not None:
                nn.init.zeros_(number)

    def dynamics(self, x0: Nodes, couplings: Couplings) -> SecondOrderDynamics:
        """The damped oscillators that start from ``x0``."""
        known = x0.detach() if self.source_gradient == "detached" else x0
        own = [parameter for name, parameter in self.named_parameters() if not name.startswith("adjacency.")]

        def acceleration(t: float | Tensor, x: Nodes, y: Nodes) -> Nodes:
            force = self.activation(self._messages(x, couplings))
            force = torch.add(torch.add(force, x, alpha=-self.stiffness), y, alpha=-self.damping)
            if self.beta is None:
                return force
            return force + self.beta * known if self.source == "added" else force.lerp(known, self.beta.sigmoid())

        def rate(y: Nodes) -> Nodes:
            assert self.delta is not None
            assert self.epsilon is not None
            return (self.epsilon.sigmoid() * y).lerp(known, self.delta.sigmoid())

        return SecondOrderDynamics(
            acceleration,
            (*couplings.tensors(), *own, known),
            rate if self.source == "mixed" else None,
            self._thin if self.training and self.step_dropout else None,
        )

    def _thin(self, state: Nodes) -> Nodes:
        return dropout(state, self.step_dropout, self.training)

    def _messages(self, x: Nodes, couplings: Couplings) -> Nodes:
        h = x if self.transform is None else x @ self.transform.weight.T
        messages = spmm(couplings.pattern, couplings.at(x), h.contiguous())
        if self.transform is not None:
            messages = messages + self.transform.bias
        if self.residual is None:
            return messages
        residual: Nodes = -self.residual(h) if self.residual_form == "composed" else self.residual(x)
        return messages + residual - (h if self.residual_form == "difference" else 0)

    def extra_repr(self) -> str:
        """Options shown by ``print(model)``."""
        name = getattr(self.activation, "__name__", repr(self.activation))
        varying = ", time_varying=True" if self.time_varying else ""
        return f"activation={name}, stiffness={self.stiffness}, damping={self.damping}{varying}"
