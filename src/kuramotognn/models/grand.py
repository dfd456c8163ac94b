"""GRAND: graph neural diffusion, linear and not, and with sources at the labelled nodes."""

from __future__ import annotations

from functools import partial
from typing import Any

from kuramotognn.fields import Diffusion, Gradient, Source
from kuramotognn.models.continuous import ContinuousGNN
from kuramotognn.typing import PositiveInt, Probability


class GRAND(ContinuousGNN):
    r"""Graph neural diffusion.

    .. math::
        \dot x = \alpha (A - I)\, x + u, \qquad x(0) = \psi(V), \qquad y = D\, x(T) + b

    with :math:`\alpha` learnt and the source :math:`u` one of (see :class:`~kuramotognn.Diffusion`)

    - ``"initial"``: :math:`\beta\, x(0)`, :math:`\beta` learnt: GRAND-l, or GRAND-nl if ``time_varying``, from
      `"GRAND: Graph Neural Diffusion" <https://arxiv.org/abs/2106.10934>`_;
    - ``"labelled"``: :math:`x_i(0)` less its mean over the training nodes, at the training nodes alone: GRAND++, from
      `"GRAND++: Graph Neural Diffusion with A Source Term" <https://openreview.net/forum?id=EMxu-dzvJk>`_;
      :func:`~kuramotognn.fit` sets the training nodes;
    - ``"none"``.

    Args:
        in_channels: width ``F`` of the node features.
        hidden_channels: width ``d`` of the state.
        out_channels: number of classes.
        source: which constant term.
        source_dropout: dropout on labelled sources while training; the paper has none.
        source_gradient: ``attached``, or ``detached`` as in the authors' code: no gradient through the source.
        **options: those of :class:`ContinuousGNN` and :class:`~kuramotognn.models.GraphFlow`.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: PositiveInt,
        out_channels: int,
        *,
        source: Source = "initial",
        source_dropout: Probability = 0.5,
        source_gradient: Gradient = "attached",
        **options: Any,
    ) -> None:
        field = partial(Diffusion, source=source, source_dropout=source_dropout, source_gradient=source_gradient)
        super().__init__(in_channels, hidden_channels, out_channels, field, **options)
