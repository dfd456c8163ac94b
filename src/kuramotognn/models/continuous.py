"""Continuous-depth graph networks: encoder, flow of a field, decoder."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeAlias

import torch
import torch.nn.functional as F
from torch import nn

from kuramotognn.checks import check_choice, check_dropout, check_positive
from kuramotognn.features import Dropout, Features, affine, as_features, check_width, dropout
from kuramotognn.fields import (
    Adjacency,
    Attention,
    Couplings,
    Dynamics,
    Field,
    Normalise,
    RandomWalk,
    Score,
    SignedAttention,
    Squash,
    SymmetricWalk,
    WeightInit,
)
from kuramotognn.graph import Graph, SparseAdjacency, as_graph
from kuramotognn.models.distributed import Distributed
from kuramotognn.models.explain import LAYER, explained_layer, masked_weight
from kuramotognn.solve import EvaluationCounter, Solution, integrate
from kuramotognn.solver import Solver
from kuramotognn.typing import EdgeIndex, EdgeWeight, Index, Logits, Nodes, PositiveFloat, PositiveInt, Probability

Edges: TypeAlias = EdgeIndex | SparseAdjacency | Graph
"""Edges as models take them; see :func:`kuramotognn.graph.as_graph`."""
AttentionWeights: TypeAlias = tuple[EdgeIndex, EdgeWeight]
"""Edges and their couplings, as PyG's layers return them for ``return_attention_weights=True``."""
AdjacencyName: TypeAlias = Literal["attention", "signed-attention", "random-walk", "symmetric"]
EncoderKind: TypeAlias = Literal["linear", "mlp"]
Rectifier: TypeAlias = Literal["none", "relu"]


class Encoder(nn.Module):
    r"""The initial state of the nodes, for dense or sparse features: :math:`\psi(V) = V M^\top + b` after dropout.

    Args:
        in_channels: width ``F`` of the features.
        channels: width ``d`` of the state.
        dropout: probability of dropping an input entry.
        hidden_dropout: dropout between the layers of ``mlp``.
        kind: ``"linear"``, or ``"mlp"``: two residual layers :math:`x + W \mathrm{relu}(x)` behind it, with dropout.
        activation: ``"relu"`` of the result, or ``"none"``.
        batch_norm: normalise each channel over the nodes.
        phase_range: clamp the result to this interval.
    """

    def __init__(
        self,
        in_channels: int,
        channels: int,
        *,
        dropout: float = 0.0,
        hidden_dropout: float = 0.0,
        kind: EncoderKind = "linear",
        activation: Rectifier = "none",
        batch_norm: bool = False,
        phase_range: tuple[float, float] | None = None,
    ) -> None:
        super().__init__()
        check_dropout("input_dropout", dropout)
        check_choice("encoder", kind, ("linear", "mlp"))
        check_choice("encoder_activation", activation, ("none", "relu"))
        if phase_range is not None and not phase_range[0] < phase_range[1]:
            raise ValueError(f"phase_range must be an interval (low, high) with low < high, got {phase_range}")
        self.linear = nn.Linear(in_channels, channels)
        self.layers = nn.ModuleList(nn.Linear(channels, channels) for _ in range(2 if kind == "mlp" else 0))
        self.norm = nn.BatchNorm1d(channels) if batch_norm else None
        self.dropout, self.hidden_dropout = dropout, hidden_dropout
        self.activation, self.phase_range = activation, phase_range

    def reset_parameters(self) -> None:
        """Reset weights and biases."""
        reset_children(self)

    def forward(self, x: Features) -> Nodes:
        """Encode ``[N, F]`` features as ``[N, d]`` states."""
        check_width(x, self.linear.in_features)
        x0 = affine(dropout(x, self.dropout, self.training), self.linear.weight, self.linear.bias)
        for number, layer in enumerate(self.layers):
            x0 = dropout(x0, self.hidden_dropout, self.training) if number == 0 else x0
            x0 = dropout(x0 + layer(F.relu(x0)), self.hidden_dropout, self.training)
        x0 = F.relu(x0) if self.activation == "relu" else x0
        x0 = x0 if self.norm is None else self.norm(x0)
        return x0 if self.phase_range is None else x0.clamp(*self.phase_range)

    def extra_repr(self) -> str:
        """Options shown by ``print(model)``."""
        return f"dropout={self.dropout}, activation={self.activation!r}, phase_range={self.phase_range}"


class GraphFlow(nn.Module):
    """The flow of a field over ``[0, time]``.

    Args:
        channels: width ``d`` of the state.
        make_field: called with the adjacency and ``time_varying=``, gives the right-hand side.
        time: integration time ``T``, the depth.
        adjacency: the couplings: ``attention``, ``signed-attention`` (edges may repel), or constant ones:
            ``random-walk`` (rows sum to one) and ``symmetric`` (of graph convolutions, with self-loops). A module that
            gives couplings may be passed as well.
        heads: attention heads, averaged.
        attention_channels: total width of queries and keys, a multiple of the heads (default: the width of the state).
        attention_score: similarity of states: ``scaled-dot``, ``cosine``, ``pearson`` or ``exp-kernel``; the last three
            as in the authors' code for some data sets (see :class:`~kuramotognn.Attention`).
        attention_squash: ``softmax``, or ``squareplus`` as in the authors' code.
        attention_normalise: couplings sum to one over each ``row``, or over each ``column`` as in the authors' code.
        attention_init: initial weights of queries and keys: ``uniform``, or ``constant`` as in the authors' code.
        time_varying: take the attention from the state at every evaluation instead of once at ``x(0)``.
        solver: how to integrate.

    Attributes:
        evaluations: evaluations of the right-hand side in the last call.
        counter: the same, and those of its gradient with an adjoint solver.
    """

    def __init__(
        self,
        channels: int,
        make_field: Callable[..., Field],
        *,
        time: PositiveFloat = 8.0,
        adjacency: AdjacencyName | Adjacency = "attention",
        heads: PositiveInt = 4,
        attention_channels: PositiveInt | None = None,
        attention_score: Score = "scaled-dot",
        attention_squash: Squash = "softmax",
        attention_normalise: Normalise = "row",
        attention_init: WeightInit = "uniform",
        time_varying: bool = False,
        solver: Solver = Solver(),  # noqa: B008 -- frozen
    ) -> None:
        super().__init__()
        check_positive("time", time)
        if not isinstance(adjacency, Adjacency):
            unusual = {"score": attention_score, "squash": attention_squash, "normalise": attention_normalise}
            options = {"heads": heads, "width": attention_channels, "init": attention_init, **unusual}
            adjacency = make_adjacency(adjacency, channels, **options)
        self.field = make_field(adjacency, time_varying=time_varying)
        self.time = time
        self.solver = solver
        self.evaluations = 0
        self.counter = EvaluationCounter()

    def reset_parameters(self) -> None:
        """Reset every learnable parameter."""
        reset_children(self)

    def integrate(
        self, x0: Nodes, edges: Edges, edge_weight: EdgeWeight | None, save_at: Sequence[float] | None = None
    ) -> Solution:
        """The states along the flow from ``x0``, at ``save_at`` or at ``time`` alone; in float32 under autocast."""
        if torch.is_autocast_enabled(x0.device.type):
            with torch.autocast(x0.device.type, enabled=False):
                return self.integrate(x0.float(), edges, edge_weight, save_at)
        return self.solve(self.field(x0, self._graph(x0, edges, edge_weight)), x0, save_at)

    def solve(self, dynamics: Dynamics, x0: Nodes, save_at: Sequence[float] | None = None) -> Solution:
        """The states that ``dynamics`` gives from ``x0``, at ``save_at`` or at ``time`` alone."""
        # Times beyond the model's own are reached by the same steps.
        times = math.ceil(max([self.time, *(save_at or ())]) / self.time * (1 - 1e-9))
        solver, end = self.solver.repeated(self.time, times), times * self.time
        solution = integrate(dynamics, dynamics.start(x0), end, solver, save_at=save_at, counter=self.counter)
        self.evaluations = solution.nfe
        return replace(solution, ys=dynamics.nodes(solution.ys))

    def attention_weights(self, x0: Nodes, edges: Edges, edge_weight: EdgeWeight | None) -> AttentionWeights:
        """The couplings at ``x0``, each with its edge."""
        adjacency: Adjacency = self.field.adjacency
        graph = adjacency.support(self._graph(x0, edges, edge_weight))
        return graph.edge_index, Couplings.of(adjacency, x0, graph).at(x0)

    def _graph(self, x0: Nodes, edges: Edges, edge_weight: EdgeWeight | None) -> Graph:
        if x0.dtype not in (torch.float32, torch.float64):
            raise ValueError(f"flows are computed in float32 or float64, got {x0.dtype}; convert model and x to float")
        edge_weight = masked_weight(self, edges, edge_weight, x0)
        return as_graph(edges, x0.size(0), edge_weight, x0)

    def named_modules(
        self, memo: set[nn.Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, nn.Module]]:
        """All modules, and where PyG is loaded one that its explainers set edge masks on."""
        listed = memo is not None and self in memo
        yield from super().named_modules(memo, prefix, remove_duplicate)
        if not listed and (layer := explained_layer(self)) is not None:
            yield f"{prefix}{'.' if prefix else ''}{LAYER}", layer

    def extra_repr(self) -> str:
        """Options shown by ``print(model)``."""
        return f"time={self.time}, solver={self.solver}"


class ContinuousGNN(GraphFlow):
    """A graph network whose depth is the flow of a field over ``[0, time]``.

    Called as PyG models are: ``model(x, edge_index[, edge_weight])``; a :class:`~kuramotognn.Graph` built once may
    stand in place of ``edge_index``.

    Args:
        in_channels: width ``F`` of the node features.
        hidden_channels: width ``d`` of the state.
        out_channels: number of classes.
        make_field: called with the adjacency and ``time_varying=``, gives the right-hand side.
        input_dropout: dropout on the features.
        dropout: dropout on the final state, before the decoder.
        encoder: ``linear``, or ``mlp`` with two more residual layers.
        encoder_activation: ``relu`` behind the encoder, as in GraphCON's code, or ``none``.
        decoder_activation: ``relu`` before the decoder, as in the authors' code, or ``none``.
        batch_norm: batch normalisation before the flow, as in the authors' code for some data sets.
        phase_range: clamp ``X(0)`` to this interval; the authors' code uses 0 3.14159, the paper nothing.
        **flow: options of :class:`GraphFlow`.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: PositiveInt,
        out_channels: int,
        make_field: Callable[..., Field],
        *,
        input_dropout: Probability = 0.5,
        dropout: Probability = 0.5,
        encoder: EncoderKind = "linear",
        encoder_activation: Rectifier = "none",
        decoder_activation: Rectifier = "none",
        batch_norm: bool = False,
        phase_range: tuple[float, float] | None = None,
        **flow: Any,
    ) -> None:
        check_dropout("dropout", dropout)
        check_choice("decoder_activation", decoder_activation, ("none", "relu"))
        first = Encoder(
            in_channels,
            hidden_channels,
            dropout=input_dropout,
            hidden_dropout=dropout,
            kind=encoder,
            activation=encoder_activation,
            batch_norm=batch_norm,
            phase_range=phase_range,
        )
        super().__init__(hidden_channels, make_field, **flow)
        self.in_channels, self.hidden_channels, self.out_channels = in_channels, hidden_channels, out_channels
        self.distributed: Distributed | None = None
        self.encoder = first
        rectifier = [nn.ReLU()] if decoder_activation == "relu" else []
        self.decoder = nn.Sequential(*rectifier, Dropout(dropout), nn.Linear(hidden_channels, out_channels))

    def forward(
        self,
        x: Features,
        edge_index: Edges,
        edge_weight: EdgeWeight | None = None,
        *,
        nodes: Index | None = None,
        return_attention_weights: bool = False,
    ) -> Logits | tuple[Logits, AttentionWeights]:
        """Predict for every node, or for some.

        Args:
            x: ``[N, F]`` features: a dense or sparse tensor, :class:`~kuramotognn.SparseFeatures`, or
                :class:`~kuramotognn.MappedFeatures` on disk.
            edge_index: ``[2, E]`` edges from row 0 to row 1, a sparse transposed adjacency, or a ready graph.
            edge_weight: ``[E]`` weights.
            nodes: decode these nodes only; all of them take part in the flow.
            return_attention_weights: return the couplings at ``X(0)`` as well, with their edges.
        """
        if self.distributed is not None:
            if return_attention_weights:
                raise ValueError("attention weights are for one process; call a copy of the model with them")
            return self.distributed.logits(x, edge_index, edge_weight, nodes)
        x0 = self.encoder(as_features(x))
        final = self.integrate(x0, edge_index, edge_weight).final
        logits: Logits = self.decoder(final if nodes is None else final.index_select(0, nodes))
        return (logits, self.attention_weights(x0, edge_index, edge_weight)) if return_attention_weights else logits

    def flow(
        self,
        x: Features,
        edge_index: Edges,
        edge_weight: EdgeWeight | None = None,
        *,
        save_at: Sequence[float] | None = None,
    ) -> Solution:
        """The hidden states along the flow, at ``save_at`` or at ``time`` alone."""
        if self.distributed is not None:
            return self.distributed.flow(x, edge_index, edge_weight, save_at)
        return self.integrate(self.encoder(as_features(x)), edge_index, edge_weight, save_at)

    def logits_along(
        self, x: Features, edge_index: Edges, edge_weight: EdgeWeight | None = None, *, save_at: Sequence[float]
    ) -> list[Logits]:
        """Predictions for every node from the states at each time of ``save_at``."""
        if self.distributed is not None:
            return self.distributed.logits_along(x, edge_index, edge_weight, save_at)
        return [self.decoder(state) for state in self.flow(x, edge_index, edge_weight, save_at=save_at).ys]


def make_adjacency(name: AdjacencyName, channels: int, **attention: Any) -> Adjacency:
    """The adjacency of this name, with the options of its attention."""
    check_choice("adjacency", name, ("attention", "signed-attention", "random-walk", "symmetric"))
    if name in ("random-walk", "symmetric"):
        return RandomWalk() if name == "random-walk" else SymmetricWalk()
    return (Attention if name == "attention" else SignedAttention)(channels, **attention)


def reset_children(module: nn.Module) -> None:
    """Reset the learnable parameters of the modules in ``module``, those in containers as well."""
    for child in module.children():
        if callable(reset := getattr(child, "reset_parameters", None)):
            reset()
        else:
            reset_children(child)
