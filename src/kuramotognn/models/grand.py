"""GRAND: graph neural diffusion."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field
from torch import nn

from kuramotognn.fields import Diffusion
from kuramotognn.models.continuous import DEFAULT_SOLVER, ContinuousGNN, Encoder, linear_decoder
from kuramotognn.models.kuramoto import AdjacencyName, make_adjacency
from kuramotognn.models.settings import FlowSettings, ModelInfo
from kuramotognn.models.space import Choice, LogUniform, SearchSpace, Uniform
from kuramotognn.solve import Solver


class GRAND(ContinuousGNN):
    r"""Graph neural diffusion.

    .. math::
        \dot x = \alpha (A - I)\, x + \beta\, x(0), \qquad x(0) = \psi(V), \qquad y = D\, x(T) + b

    from `"GRAND: Graph Neural Diffusion" <https://arxiv.org/abs/2106.10934>`_; :math:`\alpha` and :math:`\beta` are
    learnt (see :class:`~kuramotognn.Diffusion`).

    Args:
        in_channels: width ``F`` of the node features.
        hidden_channels: width ``d`` of the state.
        out_channels: number of classes.
        time: integration time ``T``, the depth.
        source: add :math:`\beta x(0)`.
        adjacency: ``"attention"`` frozen at ``x(0)``, or the constant ``"random-walk"``.
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
        source: bool = True,
        adjacency: AdjacencyName = "attention",
        heads: int = 4,
        attention_channels: int | None = None,
        input_dropout: float = 0.0,
        dropout: float = 0.0,
        solver: Solver = DEFAULT_SOLVER,
    ) -> None:
        super().__init__(
            Encoder(in_channels, hidden_channels, dropout=input_dropout),
            Diffusion(make_adjacency(adjacency, hidden_channels, heads, attention_channels), source=source),
            linear_decoder(hidden_channels, out_channels, dropout),
            time=time,
            solver=solver,
        )


class GrandSettings(FlowSettings):
    """Settings of :class:`GRAND` with the initial state as a source."""

    search_space: ClassVar[SearchSpace] = {
        "data.normalisation": Choice(("none", "row-sum")),
        "data.self_loops": Choice((False, True)),
        "model.hidden_channels": Choice((64, 96, 128)),
        "model.time": Uniform(1.0, 20.0),
        "model.heads": Choice((1, 2, 4, 8)),
        "model.input_dropout": Uniform(0.2, 0.8),
        "model.dropout": Uniform(0.0, 0.7),
        "solver.step_size": Choice((0.25, 0.5, 1.0)),
        "training.optimiser": Choice(("adam", "adamax", "rmsprop")),
        "training.learning_rate": LogUniform(0.002, 0.03),
        "training.weight_decay": LogUniform(0.005, 0.2),
    }

    name: Literal["grand-l"] = "grand-l"
    adjacency: AdjacencyName = Field("attention", description="Couplings: attention at x(0), or constant.")
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
        """With x(0)."""
        return {"source": True}


class GrandWithoutSourceSettings(GrandSettings):
    """Settings of :class:`GRAND` without a source."""

    name: Literal["grand-l-no-x0"] = "grand-l-no-x0"  # type: ignore[assignment]

    @classmethod
    def fixed(cls) -> Mapping[str, Any]:
        """Without x(0)."""
        return {"source": False}


MODELS = (
    ModelInfo(
        name="grand-l",
        settings=GrandSettings,
        equation="dx/dt = α(A − I)x + β x(0)",
        reference="Chamberlain et al., ICML 2021, arXiv:2106.10934",
        cost="one sparse product of width d: O(E d)",
        use="the linear baseline; what KuramotoGNN becomes for small phases",
        fused="whole flow in one operator",
    ),
    ModelInfo(
        name="grand-l-no-x0",
        settings=GrandWithoutSourceSettings,
        equation="dx/dt = α(A − I)x",
        reference="Chamberlain et al., ICML 2021, arXiv:2106.10934",
        cost="one sparse product of width d: O(E d)",
        use="to see over-smoothing: all nodes of a connected graph converge to one state",
        fused="whole flow in one operator",
    ),
)
