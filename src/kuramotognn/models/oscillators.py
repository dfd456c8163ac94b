"""The Kuramoto family beyond KuramotoGNN itself: the same network with another equation."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import ClassVar, Literal, TypedDict, Unpack

from pydantic import Field
from torch import nn

from kuramotognn.fields import (
    AdaptiveKuramoto,
    Adjacency,
    DelayedKuramoto,
    Kuramoto,
    PhaseField,
    ResidualKuramoto,
    Sakaguchi,
    SecondOrderKuramoto,
    SignedAttention,
    TimeVaryingKuramoto,
)
from kuramotognn.models.continuous import DEFAULT_SOLVER, ContinuousGNN, Encoder, linear_decoder
from kuramotognn.models.kuramoto import AdjacencyName, PhaseSettings, make_adjacency
from kuramotognn.models.settings import ModelInfo
from kuramotognn.models.space import Choice, SearchSpace, Uniform
from kuramotognn.solve import Solver


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


class VariantSettings(PhaseSettings):
    """What the settings below share: options of :class:`PhaseGNN`."""

    adjacency: AdjacencyName = Field("attention", description="Couplings: attention, or constant.")


class ResidualSettings(VariantSettings):
    """Settings of :class:`ResidualKuramotoGNN`."""

    name: Literal["kuramotognn-res"] = "kuramotognn-res"

    @staticmethod
    def constructor() -> Callable[..., nn.Module]:
        """The class these settings are of."""
        return ResidualKuramotoGNN


class SecondOrderSettings(VariantSettings):
    """Settings of :class:`SecondOrderKuramotoGNN`."""

    search_space: ClassVar[SearchSpace] = {
        **PhaseSettings.search_space,
        "model.damping": Uniform(0.2, 4.0),
        "solver.method": Choice(("imex", "heun")),
    }

    name: Literal["kuramotognn-second-order"] = "kuramotognn-second-order"
    damping: float = Field(1.0, ge=0, description="Damping α of the velocities.")

    @staticmethod
    def constructor() -> Callable[..., nn.Module]:
        """The class these settings are of."""
        return SecondOrderKuramotoGNN


class TimeVaryingSettings(VariantSettings):
    """Settings of :class:`TimeVaryingKuramotoGNN`."""

    name: Literal["kuramotognn-tv"] = "kuramotognn-tv"

    @staticmethod
    def constructor() -> Callable[..., nn.Module]:
        """The class these settings are of."""
        return TimeVaryingKuramotoGNN


class LagSettings(VariantSettings):
    """Settings of :class:`SakaguchiGNN`."""

    search_space: ClassVar[SearchSpace] = {**PhaseSettings.search_space, "model.lag": Uniform(-1.0, 1.0)}

    name: Literal["kuramotognn-lag"] = "kuramotognn-lag"
    lag: float = Field(0.3, description="Phase lag λ in radians.")

    @staticmethod
    def constructor() -> Callable[..., nn.Module]:
        """The class these settings are of."""
        return SakaguchiGNN


class DelaySettings(VariantSettings):
    """Settings of :class:`DelayedKuramotoGNN`."""

    search_space: ClassVar[SearchSpace] = {
        **PhaseSettings.search_space,
        "model.delay": Choice((0.5, 1.0, 1.5, 2.0)),
        "solver.step_size": Choice((0.25, 0.5)),
    }

    name: Literal["kuramotognn-delay"] = "kuramotognn-delay"
    delay: float = Field(0.5, ge=0, description="Delay τ of the neighbours' signals, no shorter than a step.")

    @staticmethod
    def constructor() -> Callable[..., nn.Module]:
        """The class these settings are of."""
        return DelayedKuramotoGNN


class AdaptiveSettings(VariantSettings):
    """Settings of :class:`AdaptiveKuramotoGNN`."""

    search_space: ClassVar[SearchSpace] = {**PhaseSettings.search_space, "model.rate": Uniform(0.0, 1.0)}

    name: Literal["kuramotognn-adaptive"] = "kuramotognn-adaptive"
    rate: float = Field(0.1, ge=0, description="Rate ε at which couplings change.")

    @staticmethod
    def constructor() -> Callable[..., nn.Module]:
        """The class these settings are of."""
        return AdaptiveKuramotoGNN


class SignedSettings(PhaseSettings):
    """Settings of :class:`SignedKuramotoGNN`."""

    name: Literal["kuramotognn-signed"] = "kuramotognn-signed"

    @staticmethod
    def constructor() -> Callable[..., nn.Module]:
        """The class these settings are of."""
        return SignedKuramotoGNN


KURAMOTOGNN = "Nguyen et al., AISTATS 2024, arXiv:2311.03260"

MODELS = (
    ModelInfo(
        name="kuramotognn-res",
        settings=ResidualSettings,
        equation="dx_i/dt = ω_i + K Σ_j a_ij sin(x_j − x_i) + R x_i",
        reference=f"{KURAMOTOGNN}, supplement",
        cost="as kuramotognn, and a d × d product a node: O(E d + N d²)",
        use="heterophilic graphs, where a node's own state must count",
        fused="each evaluation's coupling",
    ),
    ModelInfo(
        name="kuramotognn-second-order",
        settings=SecondOrderSettings,
        equation="dx_i/dt = y_i,  dy_i/dt = ω_i + K Σ_j a_ij sin(x_j − x_i) − α y_i,  Y(0) = X(0)",
        reference=f"{KURAMOTOGNN}, supplement (which writes −ω_i)",
        cost="as kuramotognn, with twice the state",
        use="oscillators with inertia; the second-order relative of graphcon. Strong damping gives kuramotognn",
        fused="each evaluation's coupling",
    ),
    ModelInfo(
        name="kuramotognn-tv",
        settings=TimeVaryingSettings,
        equation="dx_i/dt = ω_i + K Σ_j a_ij(X(t)) sin(x_j − x_i)",
        reference=f"{KURAMOTOGNN}, with attention as in GRAND-nl, arXiv:2106.10934",
        cost="kuramotognn's and attention's at every evaluation: O(E d + N d²)",
        use="when the attention at X(0) is not trusted; several times the cost",
        fused="each evaluation's coupling and attention",
    ),
    ModelInfo(
        name="kuramotognn-lag",
        settings=LagSettings,
        equation="dx_i/dt = ω_i + K Σ_j a_ij sin(x_j − x_i − λ)",
        reference="Sakaguchi and Kuramoto, Prog. Theor. Phys. 76 (1986) 576",
        cost="as kuramotognn, and sine and cosine once more",
        use="frustrated synchrony: locked nodes turn slower than their frequencies; λ = 0 is kuramotognn",
        fused="each evaluation",
    ),
    ModelInfo(
        name="kuramotognn-delay",
        settings=DelaySettings,
        equation="dx_i/dt = ω_i + K Σ_j a_ij sin(x_j(t − τ) − x_i(t)),  X(t < 0) = X(0)",
        reference="Yeung and Strogatz, Phys. Rev. Lett. 82 (1999) 648",
        cost="as kuramotognn, and sine and cosine once more; fixed steps no longer than τ",
        use="signals that take time; τ = 0 is kuramotognn",
        fused="each evaluation",
    ),
    ModelInfo(
        name="kuramotognn-adaptive",
        settings=AdaptiveSettings,
        equation="dx_i/dt = ω_i + K Σ_j a_ij sin(x_j − x_i),  da_ij/dt = ε(a_ij(0) mean cos(x_j − x_i) − a_ij)",
        reference="Seliger, Young and Tsimring, Phys. Rev. E 65 (2002) 041906",
        cost="kuramotognn's, and a gather of 2d numbers an edge: O(E d) with E d temporaries",
        use="couplings that follow agreement: edges between nodes out of phase fade; ε = 0 is kuramotognn",
        fused="each evaluation's coupling, not the change of the couplings",
    ),
    ModelInfo(
        name="kuramotognn-signed",
        settings=SignedSettings,
        equation="dx_i/dt = ω_i + K Σ_j α_ij κ_ij sin(x_j − x_i),  κ_ij = sign(w_ij) tanh(b + ⟨P x_i, Q x_j⟩/√d)",
        reference=f"{KURAMOTOGNN}, supplement: individual couplings, attraction and repulsion",
        cost="as kuramotognn",
        use="heterophilic graphs, negative edge weights, cluster synchrony; κ = 1 is kuramotognn",
        fused="whole flow in one operator",
    ),
)
