"""KuramotoGNN, and its flow alone as a layer for other models."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Literal, TypeAlias

from pydantic import Field, field_validator
from torch import nn

from kuramotognn.checks import check_choice, check_positive
from kuramotognn.fields import Adjacency, Attention, Interaction, Kuramoto, RandomWalk
from kuramotognn.graph import Graph, as_graph
from kuramotognn.models.continuous import DEFAULT_SOLVER, ContinuousGNN, Encoder, linear_decoder
from kuramotognn.models.settings import FlowSettings, ModelInfo
from kuramotognn.models.space import Choice, LogUniform, SearchSpace, Uniform
from kuramotognn.solve import Solver, integrate
from kuramotognn.typing import EdgeIndex, EdgeWeight, Nodes

AdjacencyName: TypeAlias = Literal["attention", "random-walk"]


class KuramotoConv(nn.Module):
    r"""The Kuramoto flow as a graph layer: phases in, phases after ``time`` out, same width.

    .. math::
        \dot x_i = x_i(0) + K \sum_j a_{ij} \sin(x_j - x_i)

    from `"From Coupled Oscillators to Graph Neural Networks" <https://arxiv.org/abs/2311.03260>`_.

    Args:
        channels: width ``d`` of the node states.
        time: how long to flow; the depth.
        coupling: the strength ``K``, positive.
        adjacency: ``"attention"`` taken once at the input, or the constant ``"random-walk"``.
        heads: attention heads.
        attention_channels: total width of queries and keys, a multiple of ``heads``; ``channels`` unless given.
        interaction: ``"exact"``, or the supplement's approximation ``"local-order"``.
        solver: how to integrate.

    Shapes:
        - **input:** node features ``[N, d]``, edge indices ``[2, E]``, edge weights ``[E]`` *(optional)*
        - **output:** node features ``[N, d]``
    """

    def __init__(
        self,
        channels: int,
        *,
        time: float = 1.0,
        coupling: float = 1.0,
        adjacency: AdjacencyName = "attention",
        heads: int = 4,
        attention_channels: int | None = None,
        interaction: Interaction = "exact",
        solver: Solver = DEFAULT_SOLVER,
    ) -> None:
        super().__init__()
        check_positive("time", time)
        self.field = Kuramoto(
            make_adjacency(adjacency, channels, heads, attention_channels), coupling=coupling, interaction=interaction
        )
        self.time = time
        self.solver = solver

    def reset_parameters(self) -> None:
        """Draw the attention's projections anew."""
        self.field.reset_parameters()

    def forward(self, x: Nodes, edge_index: EdgeIndex | Graph, edge_weight: EdgeWeight | None = None) -> Nodes:
        """Let the phases ``x`` flow along the edges."""
        dynamics = self.field(x, as_graph(edge_index, x.size(0), edge_weight, x))
        return integrate(dynamics, x, self.time, self.solver).final

    def extra_repr(self) -> str:
        """Shown by ``print(model)``."""
        return f"time={self.time}, solver={self.solver}"


class KuramotoGNN(ContinuousGNN):
    r"""The Kuramoto graph neural network: oscillators that synchronise in frequency instead of blurring.

    .. math::
        \dot x_i = \omega_i + K \sum_j a_{ij} \sin(x_j - x_i), \qquad X(0) = \Omega = \psi(V), \qquad
        y = D\, x(T) + b

    from `"From Coupled Oscillators to Graph Neural Networks: Reducing Over-smoothing via a Kuramoto Model-based
    Approach" <https://arxiv.org/abs/2311.03260>`_.

    Args:
        in_channels: width ``F`` of the node features.
        hidden_channels: width ``d`` of the phases.
        out_channels: number of classes.
        time: integration time ``T``, the depth.
        coupling: the strength ``K``, positive.
        adjacency: ``"attention"`` frozen at ``X(0)``, or the constant ``"random-walk"``.
        heads: attention heads, averaged.
        attention_channels: total width of queries and keys, a multiple of ``heads``; ``hidden_channels`` unless given.
        interaction: ``"exact"``, or the supplement's approximation ``"local-order"``.
        input_dropout: dropout on the features.
        dropout: dropout on the final phases, before the decoder.
        phase_range: clamp ``X(0)`` to this interval; the authors' public code uses ``(0, π)``, the paper nothing.
        solver: how to integrate.

    Shapes:
        - **input:** features ``[N, F]`` dense or sparse, edge indices ``[2, E]``, edge weights ``[E]`` *(optional)*
        - **output:** logits ``[N, out_channels]``

    Example:
        >>> model = KuramotoGNN(1433, 64, 7, time=8.0, coupling=1.5)
        >>> logits = model(data.x, data.edge_index)  # doctest: +SKIP
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        time: float = 1.0,
        coupling: float = 1.0,
        adjacency: AdjacencyName = "attention",
        heads: int = 4,
        attention_channels: int | None = None,
        interaction: Interaction = "exact",
        input_dropout: float = 0.0,
        dropout: float = 0.0,
        phase_range: tuple[float, float] | None = None,
        solver: Solver = DEFAULT_SOLVER,
    ) -> None:
        super().__init__(
            Encoder(in_channels, hidden_channels, dropout=input_dropout, phase_range=phase_range),
            Kuramoto(
                make_adjacency(adjacency, hidden_channels, heads, attention_channels),
                coupling=coupling,
                interaction=interaction,
            ),
            linear_decoder(hidden_channels, out_channels, dropout),
            time=time,
            solver=solver,
        )


def make_adjacency(name: AdjacencyName, channels: int, heads: int, width: int | None) -> Adjacency:
    """Look up where couplings come from."""
    check_choice("adjacency", name, ("attention", "random-walk"))
    return Attention(channels, heads=heads, width=width) if name == "attention" else RandomWalk()


class PhaseSettings(FlowSettings):
    """What all models of phase oscillators share."""

    search_space: ClassVar[SearchSpace] = {
        "data.normalisation": Choice(("none", "row-sum")),
        "data.self_loops": Choice((False, True)),
        "model.hidden_channels": Choice((64, 96, 128)),
        "model.time": LogUniform(0.2, 20.0),  # Heterophilic graphs want little of it.
        "model.coupling": LogUniform(0.1, 3.0),
        "model.heads": Choice((1, 2, 4, 8)),
        "model.input_dropout": Uniform(0.2, 0.8),
        "model.dropout": Uniform(0.0, 0.7),
        "model.phase_range": Choice((None, (0.0, 3.14159))),
        "solver.step_size": Choice((0.25, 0.5, 1.0)),
        "training.optimiser": Choice(("adam", "adamax", "rmsprop")),
        "training.learning_rate": LogUniform(0.002, 0.03),
        "training.weight_decay": LogUniform(0.005, 0.3),
    }

    coupling: float = Field(1.0, gt=0, description="Coupling strength K.")
    heads: int = Field(4, ge=1, description="Attention heads.")
    attention_channels: int | None = Field(
        None, ge=1, description="Total width of queries and keys (default: hidden-channels)."
    )
    phase_range: tuple[float, float] | None = Field(
        None, description="Clamp X(0) to this interval; the authors' code uses 0 3.14159."
    )

    @field_validator("phase_range", mode="before")
    @classmethod
    def _pair(cls, value: object) -> object:
        return tuple(value) if isinstance(value, list) else value  # TOML has lists only


class KuramotoSettings(PhaseSettings):
    """Settings of :class:`KuramotoGNN`."""

    name: Literal["kuramotognn"] = "kuramotognn"
    adjacency: AdjacencyName = Field("attention", description="Couplings: attention at X(0), or constant.")
    interaction: Interaction = Field("exact", description="Exact sine coupling, or the supplement's approximation.")

    @staticmethod
    def constructor() -> Callable[..., nn.Module]:
        """The class these settings are of."""
        return KuramotoGNN


MODELS = (
    ModelInfo(
        name="kuramotognn",
        settings=KuramotoSettings,
        equation="dx_i/dt = ω_i + K Σ_j a_ij sin(x_j − x_i),  X(0) = Ω",
        reference="Nguyen et al., AISTATS 2024, arXiv:2311.03260",
        cost="one sparse product of width 2d, sine and cosine once a node and channel: O(E d)",
        use="deep flows: nodes synchronise in frequency and stay apart in phase; the default",
        fused="whole flow in one operator (interaction = exact)",
    ),
)
