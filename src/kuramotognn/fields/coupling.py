r"""How strongly a node is coupled to each of its neighbours: the matrix :math:`A = [a_{ij}]`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from kuramotognn.graph import Graph, Pattern
from kuramotognn.kernels import row_normalise
from kuramotognn.typing import EdgeWeight, Nodes


@dataclass(frozen=True, eq=False)
class Couplings:
    """The couplings of a flow: constant, or a function of the state.

    Attributes:
        pattern: where ``A`` may be non-zero.
        constant: ``[E]`` the couplings, where they do not change along the flow.
        of_state: gives them for a state, where they do.
        parameters: the tensors that ``of_state`` depends on.
    """

    pattern: Pattern
    constant: EdgeWeight | None
    of_state: Callable[[Nodes], EdgeWeight] | None = None
    parameters: tuple[Tensor, ...] = ()

    @staticmethod
    def of(adjacency: Adjacency, x0: Nodes, graph: Graph, *, time_varying: bool = False) -> Couplings:
        """The couplings that ``adjacency`` gives at ``x0``, or at every state."""
        graph = adjacency.support(graph)
        if not time_varying:
            return Couplings(graph.pattern, adjacency(x0, graph))
        parameters = (*adjacency.parameters(), graph.weight)
        return Couplings(graph.pattern, None, partial(adjacency, graph=graph), parameters)

    def at(self, x: Nodes) -> EdgeWeight:
        """The couplings ``[E]`` at the state ``x``."""
        if self.constant is not None:
            return self.constant
        assert self.of_state is not None
        return self.of_state(x)

    def tensors(self) -> tuple[Tensor, ...]:
        """The tensors that the couplings depend on besides the state."""
        return self.parameters if self.constant is None else (self.constant,)


class Adjacency(nn.Module, ABC):
    """Gives one coupling per edge; the couplings of a row sum to one, or are all zero for an isolated node.

    The exceptions say so: :class:`SymmetricWalk` and :class:`SignedAttention`.
    """

    @abstractmethod
    def forward(self, x: Nodes, graph: Graph) -> EdgeWeight:
        """The couplings ``a_ij`` for states ``x``, in the order of the graph's edges."""

    def support(self, graph: Graph) -> Graph:
        """The graph whose edges have couplings: ``graph`` itself, unless self-loops are added."""
        return graph

    def reset_parameters(self) -> None:
        """Reset the learnable parameters."""
        for child in self.children():
            child.reset_parameters()  # type: ignore[operator]


class RandomWalk(Adjacency):
    r"""The constant coupling :math:`a_{ij} = w_{ij} / \sum_k w_{ik}`."""

    def forward(self, x: Nodes, graph: Graph) -> EdgeWeight:
        """The couplings ``[E]``; they do not depend on ``x``."""
        check_weights(graph)
        return row_normalise(graph.pattern, graph.weight)


class SymmetricWalk(Adjacency):
    r"""The constant coupling of graph convolutions, :math:`a_{ij} = \hat w_{ij} / \sqrt{\hat d_i \hat d_j}`.

    :math:`\hat w` are the weights with a self-loop of weight 1 at every node that has none, :math:`\hat d_i = \sum_j
    \hat w_{ij}`; from `"Semi-Supervised Classification with Graph Convolutional Networks"
    <https://arxiv.org/abs/1609.02907>`_. Rows do not sum to one.
    """

    def support(self, graph: Graph) -> Graph:
        """The graph with self-loops."""
        return graph.with_self_loops()

    def forward(self, x: Nodes, graph: Graph) -> EdgeWeight:
        """The couplings ``[E]`` of a graph with self-loops; they do not depend on ``x``."""
        check_weights(graph)
        pattern = graph.pattern
        degree = pattern.sum_rows(graph.weight)
        # Only a lone self-loop of weight zero makes a degree of zero; the inner choice keeps its gradient finite.
        scale = torch.where(degree > 0, torch.where(degree > 0, degree, 1.0).rsqrt(), 0.0)
        return pattern.of_row(scale) * graph.weight * pattern.of_col(scale)


def check_weights(graph: Graph) -> None:
    """Refuse weights that cannot be normalised over a row; skipped in compiled code."""
    if not torch.compiler.is_compiling() and graph.has_negative_weight:
        raise ValueError(f"edge weights must not be negative, got {float(graph.weight.min())}; shift or drop them")


def check_heads(heads: int, width: int) -> None:
    """Refuse heads that do not divide the attention width evenly."""
    if heads < 1:
        raise ValueError(f"heads must be at least 1, got {heads}")
    if width < 1 or width % heads:
        divisors = [h for h in range(1, width + 1) if width % h == 0]
        nearest = min(divisors, key=lambda h: abs(h - heads), default=1)
        raise ValueError(
            f"heads must divide the attention width {width}, got {heads}; the nearest that does is {nearest}"
        )
