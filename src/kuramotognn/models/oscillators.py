"""GraphCON, and the Kuramoto family beyond KuramotoGNN itself."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal, TypeAlias, TypedDict, Unpack

import torch
from torch import Tensor

from kuramotognn.checks import check_choice
from kuramotognn.fields import (
    AdaptiveKuramoto,
    Adjacency,
    Attention,
    DampedOscillators,
    DelayedKuramoto,
    Kuramoto,
    PhaseField,
    ResidualKuramoto,
    Sakaguchi,
    SecondOrderKuramoto,
    SignedAttention,
    SymmetricWalk,
    TimeVaryingKuramoto,
)
from kuramotognn.models.continuous import DEFAULT_SOLVER, ContinuousGNN, Encoder, linear_decoder
from kuramotognn.models.kuramoto import AdjacencyName, make_adjacency
from kuramotognn.solve import Solver

Convolution: TypeAlias = Literal["gcn", "attention", "attention-at-every-time"]
ActivationName: TypeAlias = Literal["relu", "tanh", "identity"]
CONVOLUTIONS: tuple[Convolution, ...] = ("gcn", "attention", "attention-at-every-time")
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "tanh": torch.tanh,
    "identity": torch.nn.Identity(),
}


class GraphCON(ContinuousGNN):
    r"""The graph-coupled oscillator network.

    .. math::
        \dot x = y, \qquad \dot y = \sigma(A\, x W^\top + b) - \gamma x - \alpha y, \qquad X(0) = Y(0) = \psi(V), \qquad
        z = D\, x(T) + c

    from `"Graph-Coupled Oscillator Networks" <https://arxiv.org/abs/2202.02296>`_. The default solver is the paper's
    step, ``imex``; any other integrates the same equation.

    Args:
        in_channels: width ``F`` of the node features.
        hidden_channels: width ``d`` of the positions.
        out_channels: number of classes.
        time: integration time ``T``; with steps of 1, the number of the paper's layers.
        convolution: ``A``: ``"gcn"``, symmetrically normalised with self-loops; ``"attention"`` frozen at ``X(0)``; or
            ``"attention-at-every-time"``.
        heads: attention heads, averaged.
        attention_channels: total width of queries and keys, a multiple of ``heads``; ``hidden_channels`` unless given.
        activation: ``σ``: ``"relu"`` as in the paper, ``"tanh"`` or ``"identity"``.
        transform: learn ``W`` and ``b``; the identity otherwise.
        residual: add the residual transform :math:`x R^\top` inside ``σ``: GraphCON-res.
        source: add :math:`\beta x(0)` to :math:`\dot y`, ``β`` learnt from zero. The authors' code for citation graphs
            has a source like this, ``activation="identity"`` and no transform.
        stiffness: the number ``γ``, at least 0.
        damping: the number ``α``, at least 0.
        input_dropout: dropout on the features.
        dropout: dropout on the final positions, before the decoder.
        solver: how to integrate.

    Shapes:
        - **input:** features ``[N, F]`` dense or sparse, edge indices ``[2, E]``, edge weights ``[E]`` *(optional)*
        - **output:** logits ``[N, out_channels]``
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        time: float = 4.0,
        convolution: Convolution = "gcn",
        heads: int = 4,
        attention_channels: int | None = None,
        activation: ActivationName = "relu",
        transform: bool = True,
        residual: bool = False,
        source: bool = False,
        stiffness: float = 1.0,
        damping: float = 1.0,
        input_dropout: float = 0.0,
        dropout: float = 0.0,
        solver: Solver = Solver("imex", step_size=1.0),  # noqa: B008 -- frozen
    ) -> None:
        check_choice("convolution", convolution, CONVOLUTIONS)
        check_choice("activation", activation, ACTIVATIONS)
        adjacency: Adjacency = (
            SymmetricWalk()
            if convolution == "gcn"
            else Attention(hidden_channels, heads=heads, width=attention_channels)
        )
        super().__init__(
            Encoder(in_channels, hidden_channels, dropout=input_dropout),
            DampedOscillators(
                hidden_channels,
                adjacency,
                time_varying=convolution == "attention-at-every-time",
                transform=transform,
                residual=residual,
                activation=ACTIVATIONS[activation],
                stiffness=stiffness,
                damping=damping,
                source=source,
            ),
            linear_decoder(hidden_channels, out_channels, dropout),
            time=time,
            solver=solver,
        )


class PhaseOptions(TypedDict, total=False):
    """Keywords that the constructors below share with :class:`~kuramotognn.KuramotoGNN`."""

    time: float
    coupling: float
    adjacency: AdjacencyName
    heads: int
    attention_channels: int | None
    input_dropout: float
    dropout: float
    phase_range: tuple[float, float] | None
    solver: Solver


class PhaseGNN(ContinuousGNN):
    """KuramotoGNN with another equation: what the constructors below share.

    Called and shaped like :class:`~kuramotognn.KuramotoGNN`, whose options it has; ``interaction`` is always exact.

    Args:
        in_channels: width ``F`` of the node features.
        hidden_channels: width ``d`` of the phases.
        out_channels: number of classes.
        make_field: called with the adjacency and ``coupling=``, gives the equation.
        time: integration time ``T``, the depth.
        coupling: the strength ``K``, positive.
        adjacency: ``"attention"`` at ``X(0)``, the constant ``"random-walk"``, or a module that gives the couplings.
        heads: attention heads, averaged.
        attention_channels: total width of queries and keys, a multiple of ``heads``; ``hidden_channels`` unless given.
        input_dropout: dropout on the features.
        dropout: dropout on the final phases, before the decoder.
        phase_range: clamp ``X(0)`` to this interval; the authors' public code uses ``(0, π)``, the paper nothing.
        solver: how to integrate.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        make_field: Callable[..., PhaseField],
        *,
        time: float = 1.0,
        coupling: float = 1.0,
        adjacency: AdjacencyName | Adjacency = "attention",
        heads: int = 4,
        attention_channels: int | None = None,
        input_dropout: float = 0.0,
        dropout: float = 0.0,
        phase_range: tuple[float, float] | None = None,
        solver: Solver = DEFAULT_SOLVER,
    ) -> None:
        if not isinstance(adjacency, Adjacency):
            adjacency = make_adjacency(adjacency, hidden_channels, heads, attention_channels)
        super().__init__(
            Encoder(in_channels, hidden_channels, dropout=input_dropout, phase_range=phase_range),
            make_field(adjacency, coupling=coupling),
            linear_decoder(hidden_channels, out_channels, dropout),
            time=time,
            solver=solver,
        )


class ResidualKuramotoGNN(PhaseGNN):
    r"""KuramotoGNN-res: :math:`\dot x_i = \omega_i + K \sum_j a_{ij} \sin(x_j - x_i) + R x_i`, ``R`` learnt from zero.

    See :class:`~kuramotognn.fields.ResidualKuramoto` for the equation and :class:`PhaseGNN` for all options.
    """

    def __init__(
        self, in_channels: int, hidden_channels: int, out_channels: int, **options: Unpack[PhaseOptions]
    ) -> None:
        field = partial(ResidualKuramoto, hidden_channels)
        super().__init__(in_channels, hidden_channels, out_channels, field, **options)


class SecondOrderKuramotoGNN(PhaseGNN):
    r"""Oscillators with inertia: :math:`\ddot x_i = \omega_i + K \sum_j a_{ij} \sin(x_j - x_i) - \alpha \dot x_i`.

    See :class:`~kuramotognn.fields.SecondOrderKuramoto` for the equation and :class:`PhaseGNN` for all options; the
    solver may be ``imex``.

    Args:
        damping: the number ``α``, at least 0.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        damping: float = 1.0,
        **options: Unpack[PhaseOptions],
    ) -> None:
        field = partial(SecondOrderKuramoto, damping=damping)
        super().__init__(in_channels, hidden_channels, out_channels, field, **options)


class TimeVaryingKuramotoGNN(PhaseGNN):
    r"""Attention at every time: :math:`\dot x_i = \omega_i + K \sum_j a_{ij}(X(t)) \sin(x_j - x_i)`.

    See :class:`~kuramotognn.fields.TimeVaryingKuramoto` for the equation and :class:`PhaseGNN` for all options.
    """

    def __init__(
        self, in_channels: int, hidden_channels: int, out_channels: int, **options: Unpack[PhaseOptions]
    ) -> None:
        super().__init__(in_channels, hidden_channels, out_channels, TimeVaryingKuramoto, **options)


class SakaguchiGNN(PhaseGNN):
    r"""Phase lag: :math:`\dot x_i = \omega_i + K \sum_j a_{ij} \sin(x_j - x_i - \lambda)`.

    See :class:`~kuramotognn.fields.Sakaguchi` for the equation and :class:`PhaseGNN` for all options.

    Args:
        lag: the angle ``λ`` in radians.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        lag: float = 0.3,
        **options: Unpack[PhaseOptions],
    ) -> None:
        super().__init__(in_channels, hidden_channels, out_channels, partial(Sakaguchi, lag=lag), **options)


class DelayedKuramotoGNN(PhaseGNN):
    r"""Signals take time: :math:`\dot x_i = \omega_i + K \sum_j a_{ij} \sin(x_j(t - \tau) - x_i(t))`.

    See :class:`~kuramotognn.fields.DelayedKuramoto` for the equation and :class:`PhaseGNN` for all options; the solver
    takes fixed steps no longer than the delay.

    Args:
        delay: the time ``τ``, at least 0.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        delay: float = 0.5,
        **options: Unpack[PhaseOptions],
    ) -> None:
        super().__init__(in_channels, hidden_channels, out_channels, partial(DelayedKuramoto, delay=delay), **options)


class AdaptiveKuramotoGNN(PhaseGNN):
    r"""Adaptive couplings: :math:`\dot a_{ij} = \varepsilon (a_{ij}(0) \overline{\cos(x_j - x_i)} - a_{ij})`.

    See :class:`~kuramotognn.fields.AdaptiveKuramoto` for the equation and :class:`PhaseGNN` for all options.

    Args:
        rate: the number ``ε``, at least 0.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        rate: float = 0.1,
        **options: Unpack[PhaseOptions],
    ) -> None:
        super().__init__(in_channels, hidden_channels, out_channels, partial(AdaptiveKuramoto, rate=rate), **options)


class SignedKuramotoGNN(PhaseGNN):
    r"""Edges that attract or repel: :math:`a_{ij} = \alpha_{ij} \kappa_{ij}`, :math:`\kappa_{ij} \in (-1, 1)` learnt.

    See :class:`~kuramotognn.fields.SignedAttention` for the couplings and :class:`PhaseGNN` for the other options.
    Negative edge weights are welcome here: they turn the sign of their edge.

    Args:
        heads: attention heads, averaged.
        attention_channels: total width of queries and keys, a multiple of ``heads``; ``hidden_channels`` unless given.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        heads: int = 4,
        attention_channels: int | None = None,
        time: float = 1.0,
        coupling: float = 1.0,
        input_dropout: float = 0.0,
        dropout: float = 0.0,
        phase_range: tuple[float, float] | None = None,
        solver: Solver = DEFAULT_SOLVER,
    ) -> None:
        super().__init__(
            in_channels,
            hidden_channels,
            out_channels,
            Kuramoto,
            time=time,
            coupling=coupling,
            adjacency=SignedAttention(hidden_channels, heads=heads, width=attention_channels),
            input_dropout=input_dropout,
            dropout=dropout,
            phase_range=phase_range,
            solver=solver,
        )
