"""GRAND: graph neural diffusion, linear and not, and with sources at the labelled nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field
from torch import nn

from kuramotognn.fields import Diffusion, Source
from kuramotognn.models.continuous import DEFAULT_SOLVER, ContinuousGNN, Encoder, linear_decoder
from kuramotognn.models.kuramoto import AdjacencyName, make_adjacency
from kuramotognn.models.settings import FlowSettings, ModelInfo
from kuramotognn.models.space import Choice, LogUniform, SearchSpace, Uniform
from kuramotognn.solve import Solver


class GRAND(ContinuousGNN):
    r"""Graph neural diffusion.

    .. math::
        \dot x = \alpha (A - I)\, x + u, \qquad x(0) = \psi(V), \qquad y = D\, x(T) + b

    with :math:`\alpha` learnt and the source :math:`u` one of (see :class:`~kuramotognn.Diffusion`)

    - ``"initial"``: :math:`\beta\, x(0)`, :math:`\beta` learnt: GRAND-l, or GRAND-nl if ``time_varying``, from
      `"GRAND: Graph Neural Diffusion" <https://arxiv.org/abs/2106.10934>`_;
    - ``"labelled"``: :math:`x_i(0)` less its mean over the training nodes, at the training nodes alone: GRAND++, from
      `"GRAND++: Graph Neural Diffusion with A Source Term" <https://openreview.net/forum?id=EMxu-dzvJk>`_;
      :func:`~kuramotognn.fit` tells the model which they are;
    - ``"none"``.

    Args:
        in_channels: width ``F`` of the node features.
        hidden_channels: width ``d`` of the state.
        out_channels: number of classes.
        time: integration time ``T``, the depth.
        source: which constant term.
        time_varying: attention of the state at every evaluation instead of once at ``x(0)``.
        source_dropout: dropout on labelled sources while training (see :class:`~kuramotognn.Diffusion`).
        adjacency: ``"attention"``, or the constant ``"random-walk"``.
        heads: attention heads, averaged.
        attention_channels: total width of queries and keys, a multiple of ``heads``; ``hidden_channels`` unless given.
        input_dropout: dropout on the features.
        dropout: dropout on the final state, before the decoder.
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
        time: float = 1.0,
        source: Source = "initial",
        time_varying: bool = False,
        source_dropout: float = 0.0,
        adjacency: AdjacencyName = "attention",
        heads: int = 4,
        attention_channels: int | None = None,
        input_dropout: float = 0.0,
        dropout: float = 0.0,
        solver: Solver = DEFAULT_SOLVER,
    ) -> None:
        couplings = make_adjacency(adjacency, hidden_channels, heads, attention_channels)
        super().__init__(
            Encoder(in_channels, hidden_channels, dropout=input_dropout),
            Diffusion(couplings, source=source, time_varying=time_varying, source_dropout=source_dropout),
            linear_decoder(hidden_channels, out_channels, dropout),
            time=time,
            solver=solver,
        )


class DiffusionSettings(FlowSettings):
    """What the settings of all kinds of :class:`GRAND` share."""

    search_space: ClassVar[SearchSpace] = {
        "data.normalisation": Choice(("none", "row-sum")),
        "data.self_loops": Choice((False, True)),
        "model.hidden_channels": Choice((64, 96, 128)),
        "model.time": LogUniform(0.2, 20.0),
        "model.heads": Choice((1, 2, 4, 8)),
        "model.input_dropout": Uniform(0.2, 0.8),
        "model.dropout": Uniform(0.0, 0.7),
        "solver.step_size": Choice((0.25, 0.5, 1.0)),
        "training.optimiser": Choice(("adam", "adamax", "rmsprop")),
        "training.learning_rate": LogUniform(0.002, 0.03),
        "training.weight_decay": LogUniform(0.005, 0.2),
    }
    variant: ClassVar[Mapping[str, Any]] = {}

    heads: int = Field(4, ge=1, description="Attention heads.")
    attention_channels: int | None = Field(
        None, ge=1, description="Total width of queries and keys (default: hidden-channels)."
    )

    @staticmethod
    def constructor() -> Callable[..., nn.Module]:
        """The class these settings are of."""
        return GRAND

    @classmethod
    def fixed(cls) -> Mapping[str, Any]:
        """Which kind of GRAND."""
        return {"time_varying": False, "source_dropout": 0.0, **cls.variant}


class GrandSettings(DiffusionSettings):
    """Settings of :class:`GRAND` with the initial state as a source."""

    variant: ClassVar[Mapping[str, Any]] = {"source": "initial"}
    name: Literal["grand-l"] = "grand-l"
    adjacency: AdjacencyName = Field("attention", description="Couplings: attention at x(0), or constant.")


class GrandWithoutSourceSettings(DiffusionSettings):
    """Settings of :class:`GRAND` without a source."""

    variant: ClassVar[Mapping[str, Any]] = {"source": "none"}
    name: Literal["grand-l-no-x0"] = "grand-l-no-x0"
    adjacency: AdjacencyName = Field("attention", description="Couplings: attention at x(0), or constant.")


class GrandNonlinearSettings(DiffusionSettings):
    """Settings of :class:`GRAND` with attention at every time."""

    variant: ClassVar[Mapping[str, Any]] = {"source": "initial", "time_varying": True, "adjacency": "attention"}
    name: Literal["grand-nl"] = "grand-nl"


class GrandPlusPlusSettings(DiffusionSettings):
    """Settings of :class:`GRAND` with sources at the labelled nodes."""

    search_space: ClassVar[SearchSpace] = {
        **DiffusionSettings.search_space,
        "model.source_dropout": Uniform(0.0, 0.8),
    }
    name: Literal["grand++"] = "grand++"
    adjacency: AdjacencyName = Field("attention", description="Couplings: attention at x(0), or constant.")
    source_dropout: float = Field(0.5, ge=0, lt=1, description="Dropout on the sources; the paper has none.")

    @classmethod
    def fixed(cls) -> Mapping[str, Any]:
        """Which kind of GRAND."""
        return {"time_varying": False, "source": "labelled"}


_GRAND = "Chamberlain et al., ICML 2021, arXiv:2106.10934"

MODELS = (
    ModelInfo(
        name="grand-l",
        settings=GrandSettings,
        equation="dx/dt = α(A − I)x + β x(0)",
        reference=_GRAND,
        cost="one sparse product of width d: O(E d)",
        use="the linear baseline; what KuramotoGNN becomes for small phases",
        fused="whole flow in one operator",
    ),
    ModelInfo(
        name="grand-l-no-x0",
        settings=GrandWithoutSourceSettings,
        equation="dx/dt = α(A − I)x",
        reference=_GRAND,
        cost="one sparse product of width d: O(E d)",
        use="to see over-smoothing: all nodes of a connected graph converge to one state",
        fused="whole flow in one operator",
    ),
    ModelInfo(
        name="grand-nl",
        settings=GrandNonlinearSettings,
        equation="dx/dt = α(A(x(t)) − I)x + β x(0)",
        reference=_GRAND,
        cost="queries and keys O(N d²), attention and one sparse product O(E d)",
        use="when neighbourhoods should change as features diffuse; several times the cost of grand-l",
        fused="attention and right-hand side of each evaluation; steps in torch",
    ),
    ModelInfo(
        name="grand++",
        settings=GrandPlusPlusSettings,
        equation="dx/dt = α(A − I)x + u,  u_i = x_i(0) − mean_{j ∈ I} x_j(0) at training nodes i ∈ I, else 0",
        reference="Thorpe et al., ICLR 2022, openreview EMxu-dzvJk",
        cost="one sparse product of width d: O(E d)",
        use="few labels on one fixed graph: the labelled nodes keep feeding their features into the flow",
        fused="whole flow in one operator",
    ),
)
