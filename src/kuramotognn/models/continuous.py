"""Continuous-depth graph networks: encoder, flow of a field, decoder."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from kuramotognn.checks import check_dropout, check_positive
from kuramotognn.features import Dropout, Features, affine, as_features, dropout
from kuramotognn.fields import Field
from kuramotognn.graph import Graph, as_graph
from kuramotognn.solve import Solution, Solver, integrate
from kuramotognn.typing import EdgeIndex, EdgeWeight, Index, Logits, Nodes

DEFAULT_SOLVER = Solver("euler", step_size=0.5)


class Encoder(nn.Module):
    r"""The affine map :math:`\psi(V) = V M^\top + b` after dropout on the input, for dense or sparse features.

    Args:
        in_channels: width ``F`` of the features.
        channels: width ``d`` of the state.
        dropout: probability of dropping an input entry.
        phase_range: clamp the result to this interval, as the authors' public code does with ``(0, π)``; the paper
            does not, and neither does the default.
    """

    def __init__(
        self, in_channels: int, channels: int, *, dropout: float = 0.0, phase_range: tuple[float, float] | None = None
    ) -> None:
        super().__init__()
        check_dropout("input_dropout", dropout)
        if phase_range is not None and not phase_range[0] < phase_range[1]:
            raise ValueError(f"phase_range must be an interval (low, high) with low < high, got {phase_range}")
        self.linear = nn.Linear(in_channels, channels)
        self.dropout = dropout
        self.phase_range = phase_range

    def reset_parameters(self) -> None:
        """Draw weight and bias anew."""
        self.linear.reset_parameters()

    def forward(self, x: Features) -> Nodes:
        """Encode ``[N, F]`` features as ``[N, d]`` states."""
        if x.shape[1:] != (self.linear.in_features,):
            raise ValueError(f"x must have shape [N, {self.linear.in_features}], got {list(x.shape)}")
        x0 = affine(dropout(x, self.dropout, self.training), self.linear.weight, self.linear.bias)
        return x0 if self.phase_range is None else x0.clamp(*self.phase_range)

    def extra_repr(self) -> str:
        """Shown by ``print(model)``."""
        return f"dropout={self.dropout}, phase_range={self.phase_range}"


class ContinuousGNN(nn.Module):
    """A graph network whose depth is the flow of a field over ``[0, time]``.

    Called as PyG models are: ``model(x, edge_index[, edge_weight])``; a :class:`~kuramotognn.Graph` built once may
    stand in place of ``edge_index``.

    Args:
        encoder: features ``[N, F]`` to the initial state ``[N, d]``.
        field: the right-hand side.
        decoder: the final state to what is predicted.
        time: how long to flow.
        solver: how to integrate.

    Attributes:
        evaluations: evaluations of the right-hand side in the last call.
    """

    def __init__(self, encoder: Encoder, field: Field, decoder: nn.Module, *, time: float, solver: Solver) -> None:
        super().__init__()
        check_positive("time", time)
        self.encoder = encoder
        self.field = field
        self.decoder = decoder
        self.time = time
        self.solver = solver
        self.evaluations = 0

    def reset_parameters(self) -> None:
        """Draw every learnable parameter anew."""
        for module in (self.encoder, self.field, *self.decoder.modules()):
            reset = getattr(module, "reset_parameters", None)
            if callable(reset):
                reset()

    def forward(
        self,
        x: Features,
        edge_index: EdgeIndex | Graph,
        edge_weight: EdgeWeight | None = None,
        *,
        nodes: Index | None = None,
    ) -> Logits:
        """Predict for every node, or for some.

        Args:
            x: ``[N, F]`` features: a dense or sparse tensor, or :class:`~kuramotognn.SparseFeatures`.
            edge_index: ``[2, E]`` edges from row 0 to row 1, or a ready graph.
            edge_weight: ``[E]`` non-negative weights.
            nodes: decode these nodes only; all of them take part in the flow.
        """
        final = self.flow(x, edge_index, edge_weight).final
        logits: Logits = self.decoder(final if nodes is None else final.index_select(0, nodes))
        return logits

    def flow(
        self,
        x: Features,
        edge_index: EdgeIndex | Graph,
        edge_weight: EdgeWeight | None = None,
        *,
        save_at: Sequence[float] | None = None,
    ) -> Solution:
        """The hidden states along the flow, at ``save_at`` or at ``time`` alone."""
        x0 = self.encoder(as_features(x))
        graph = as_graph(edge_index, x0.size(0), edge_weight, x0)
        dynamics = self.field(x0, graph)
        solution = integrate(dynamics, dynamics.start(x0), self.time, self.solver, save_at=save_at)
        self.evaluations = solution.nfe
        return Solution(solution.ts, dynamics.nodes(solution.ys), solution.nfe)

    def extra_repr(self) -> str:
        """Shown by ``print(model)``."""
        return f"time={self.time}, solver={self.solver}"


def linear_decoder(channels: int, out_channels: int, dropout: float) -> nn.Sequential:
    """Dropout, then an affine map from the final state to the classes."""
    check_dropout("dropout", dropout)
    return nn.Sequential(Dropout(dropout), nn.Linear(channels, out_channels))


def count_parameters(model: nn.Module) -> int:
    """How many numbers training adjusts."""
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
