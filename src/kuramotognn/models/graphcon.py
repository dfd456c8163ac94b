"""GraphCON: graph-coupled damped oscillators."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal, TypeAlias

import torch
from pydantic import Field
from torch import Tensor, nn

from kuramotognn.checks import check_choice
from kuramotognn.fields import Adjacency, Attention, DampedOscillators, SymmetricWalk
from kuramotognn.models.continuous import ContinuousGNN, Encoder, linear_decoder
from kuramotognn.models.settings import FlowSettings, ModelInfo
from kuramotognn.models.space import Choice, LogUniform, SearchSpace, Uniform
from kuramotognn.solve import Solver

Convolution: TypeAlias = Literal["gcn", "attention", "attention-at-every-time"]
ActivationName: TypeAlias = Literal["relu", "tanh", "identity"]
CONVOLUTIONS: tuple[Convolution, ...] = ("gcn", "attention", "attention-at-every-time")
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "tanh": torch.tanh,
    "identity": nn.Identity(),
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


class GraphCONSettings(FlowSettings):
    """Settings of :class:`GraphCON`."""

    search_space: ClassVar[SearchSpace] = {
        "data.normalisation": Choice(("none", "row-sum")),
        "data.self_loops": Choice((False, True)),
        "model.hidden_channels": Choice((64, 96, 128)),
        "model.time": Choice((2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0)),
        "model.convolution": Choice(("gcn", "attention")),
        "model.activation": Choice(("relu", "tanh", "identity")),
        "model.transform": Choice((False, True)),
        "model.source": Choice((False, True)),
        "model.stiffness": Uniform(0.5, 1.5),
        "model.damping": Uniform(0.2, 1.5),
        "model.input_dropout": Uniform(0.2, 0.8),
        "model.dropout": Uniform(0.0, 0.7),
        "solver.method": Choice(("imex",)),
        "solver.step_size": Choice((0.5, 1.0)),
        "training.optimiser": Choice(("adam", "adamax", "rmsprop")),
        "training.learning_rate": LogUniform(0.002, 0.03),
        "training.weight_decay": LogUniform(0.005, 0.3),
    }

    name: Literal["graphcon"] = "graphcon"
    convolution: Convolution = Field("gcn", description="What neighbours send: GCN's, or attention.")
    heads: int = Field(4, ge=1, description="Attention heads.")
    attention_channels: int | None = Field(
        None, ge=1, description="Total width of queries and keys (default: hidden-channels)."
    )
    activation: ActivationName = Field("relu", description="The function σ.")
    transform: bool = Field(True, description="Learn a linear map W of the state inside σ.")
    source: bool = Field(False, description="Add β x(0), β learnt.")
    stiffness: float = Field(1.0, ge=0, description="Pull γ towards zero.")
    damping: float = Field(1.0, ge=0, description="Damping α of the velocities.")

    @staticmethod
    def constructor() -> Callable[..., nn.Module]:
        """The class these settings are of."""
        return GraphCON

    @classmethod
    def fixed(cls) -> Mapping[str, Any]:
        """Without the residual transform."""
        return {"residual": False}


class GraphCONResSettings(GraphCONSettings):
    """Settings of :class:`GraphCON` with the residual transform."""

    name: Literal["graphcon-res"] = "graphcon-res"  # type: ignore[assignment]

    @classmethod
    def fixed(cls) -> Mapping[str, Any]:
        """With the residual transform."""
        return {"residual": True}


MODELS = (
    ModelInfo(
        name="graphcon",
        settings=GraphCONSettings,
        equation="dx/dt = y,  dy/dt = σ(A x W) − γ x − α y (+ β x(0)),  Y(0) = X(0)",
        reference="Rusch et al., ICML 2022, arXiv:2202.02296",
        cost="one sparse product of width d, and with W a d × d product a node: O(E d + N d²)",
        use="the oscillator baseline: damped waves do not blur; solver.method = imex is the paper's step",
        fused="each evaluation's sparse product, and attention",
    ),
    ModelInfo(
        name="graphcon-res",
        settings=GraphCONResSettings,
        equation="dx/dt = y,  dy/dt = σ(A x W + x R) − γ x − α y (+ β x(0)),  Y(0) = X(0)",
        reference="Rusch et al., ICML 2022, its code for heterophilic graphs",
        cost="as graphcon, and another d × d product a node",
        use="heterophilic graphs, where a node's own state must count",
        fused="each evaluation's sparse product, and attention",
    ),
)
