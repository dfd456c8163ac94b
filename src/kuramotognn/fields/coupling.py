r"""How strongly a node listens to each of its neighbours: the right-stochastic matrix :math:`A = [a_{ij}]`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace

import torch
from torch import Tensor, nn

from kuramotognn.graph import Graph
from kuramotognn.kernels import attention, row_normalise
from kuramotognn.typing import EdgeWeight, Nodes


class Adjacency(nn.Module, ABC):
    """Gives one coupling per edge; the couplings of a row sum to one, or are all zero for an isolated node.

    The exceptions say so: :class:`SymmetricWalk` and :class:`SignedAttention`.
    """

    @abstractmethod
    def forward(self, x: Nodes, graph: Graph) -> EdgeWeight:
        """The couplings ``a_ij`` for states ``x``, in the order of the graph's edges."""

    def own(self, graph: Graph) -> Tensor | None:
        """``[N, 1]`` couplings of nodes to themselves where the graph has no edge for it, or none."""
        return None

    @abstractmethod
    def reset_parameters(self) -> None:
        """Draw the learnable parameters anew."""


class RandomWalk(Adjacency):
    r"""The constant coupling :math:`a_{ij} = w_{ij} / \sum_k w_{ik}`."""

    def forward(self, x: Nodes, graph: Graph) -> EdgeWeight:
        """The couplings ``[E]``; ``x`` is not looked at."""
        check_weights(graph)
        return row_normalise(graph.pattern, graph.weight)

    def reset_parameters(self) -> None:
        """Nothing is learnt here."""


class SymmetricWalk(Adjacency):
    r"""The constant coupling of graph convolutions, :math:`a_{ij} = \hat w_{ij} / \sqrt{\hat d_i \hat d_j}`.

    :math:`\hat w` are the weights with a self-loop of weight 1 at every node that has none, :math:`\hat d_i = \sum_j
    \hat w_{ij}`; from `"Semi-Supervised Classification with Graph Convolutional Networks"
    <https://arxiv.org/abs/1609.02907>`_. Rows do not sum to one. The added self-loops are :meth:`own`.
    """

    def forward(self, x: Nodes, graph: Graph) -> EdgeWeight:
        """The couplings ``[E]``; ``x`` is not looked at."""
        check_weights(graph)
        scale = self._scale(graph)
        return graph.pattern.of_row(scale) * graph.weight * graph.pattern.of_col(scale)

    def own(self, graph: Graph) -> Tensor:
        """The weight of the added self-loops."""
        return (self._without_loop(graph) * self._scale(graph).square())[:, None]

    def reset_parameters(self) -> None:
        """Nothing is learnt here."""

    def _scale(self, graph: Graph) -> Tensor:
        degree = graph.pattern.sum_rows(graph.weight) + self._without_loop(graph)
        # Only a lone self-loop of weight zero makes a degree of zero; the inner choice keeps its gradient finite.
        return torch.where(degree > 0, torch.where(degree > 0, degree, 1.0).rsqrt(), 0.0)

    def _without_loop(self, graph: Graph) -> Tensor:
        pattern = graph.pattern
        return 1 - pattern.sum_rows((pattern.row == pattern.col).to(graph.weight.dtype))


class Attention(Adjacency):
    r"""Multi-head scaled dot-product attention over each node's neighbours, averaged over heads.

    .. math::
        a_{ij} = \frac{1}{H} \sum_{h=1}^H \mathrm{softmax}_{j \in \mathcal{N}(i)}
            \left( \frac{\langle W_K^h x_i, W_Q^h x_j \rangle}{\sqrt{d_k}} \right)

    from `"Attention Is All You Need" <https://arxiv.org/abs/1706.03762>`_ as GRAND uses it
    (`"GRAND: Graph Neural Diffusion" <https://arxiv.org/abs/2106.10934>`_). An edge weight multiplies the exponential,
    so that :math:`w_{ij} = 0` removes the edge and rows still sum to one. The KuramotoGNN paper divides by
    :math:`d_k` in its main text and by :math:`\sqrt{d_k}` in its supplement; this is the latter.

    Args:
        channels: width ``d`` of the states.
        heads: number of heads ``H``.
        width: total width of queries and keys, ``H · d_k``; ``channels`` unless given.
    """

    def __init__(self, channels: int, *, heads: int = 4, width: int | None = None) -> None:
        super().__init__()
        self.heads = heads
        self.width = channels if width is None else width
        check_heads(self.heads, self.width)
        # A bias of the query would shift all scores of a row alike, which the softmax does not see.
        self.query = nn.Linear(channels, self.width, bias=False)
        self.key = nn.Linear(channels, self.width)

    def reset_parameters(self) -> None:
        """Draw the projections anew."""
        self.query.reset_parameters()
        self.key.reset_parameters()

    def forward(self, x: Nodes, graph: Graph) -> EdgeWeight:
        """Attention ``[E]`` of states ``x`` ``[N, d]``."""
        check_weights(graph)
        key, query = self.key, self.query
        return attention(graph.pattern, x, key.weight, query.weight, key.bias, graph.weight, self.heads)

    def extra_repr(self) -> str:
        """Shown by ``print(model)``."""
        return f"heads={self.heads}, width={self.width}"


class SignedAttention(Adjacency):
    r"""Attention whose edges may repel: each has a sign and a strength of its own.

    .. math::
        a_{ij} = \alpha_{ij}\, \kappa_{ij}, \qquad \kappa_{ij} = \operatorname{sign}(w_{ij})
            \tanh\left( b + \frac{\langle P x_i, Q x_j \rangle}{\sqrt{d_k}} \right)

    with the attention :math:`\alpha` of :class:`Attention` for weights :math:`|w_{ij}|`, so that :math:`\sum_j |a_{ij}|
    \le 1`. Where :math:`\kappa = 1` on every edge this is :class:`Attention`; a given negative weight turns the
    attraction of its edge into repulsion. The bias starts at 1: most edges attract.

    Args:
        channels: width ``d`` of the states.
        heads: number of heads of the attention.
        width: total width of queries and keys, and :math:`d_k` of the signs; ``channels`` unless given.
    """

    def __init__(self, channels: int, *, heads: int = 4, width: int | None = None) -> None:
        super().__init__()
        self.attention = Attention(channels, heads=heads, width=width)
        self.listener = nn.Linear(channels, self.attention.width, bias=False)
        self.speaker = nn.Linear(channels, self.attention.width, bias=False)
        self.bias = nn.Parameter(torch.ones(()))

    def reset_parameters(self) -> None:
        """Draw the projections anew and let most edges attract."""
        for module in (self.attention, self.listener, self.speaker):
            module.reset_parameters()
        nn.init.ones_(self.bias)

    def forward(self, x: Nodes, graph: Graph) -> EdgeWeight:
        """Signed couplings ``[E]`` of states ``x`` ``[N, d]``."""
        pattern, scale = graph.pattern, self.attention.width**-0.5
        scores = (pattern.of_row(scale * self.listener(x)) * pattern.of_col(self.speaker(x))).sum(dim=-1)
        attention = self.attention(x, replace(graph, weight=graph.weight.abs()))
        coupling: EdgeWeight = attention * graph.weight.sign() * torch.tanh(self.bias + scores)
        return coupling


def check_weights(graph: Graph) -> None:
    """Refuse weights that cannot be normalised over a row."""
    if graph.has_negative_weight:
        raise ValueError(f"edge weights must not be negative, got {float(graph.weight.min())}; shift or drop them")


def check_heads(heads: int, width: int) -> None:
    """Refuse heads that do not share the attention width evenly."""
    if heads < 1:
        raise ValueError(f"heads must be at least 1, got {heads}")
    if width < 1 or width % heads:
        divisors = [h for h in range(1, width + 1) if width % h == 0]
        nearest = min(divisors, key=lambda h: abs(h - heads), default=1)
        raise ValueError(
            f"heads must divide the attention width {width}, got {heads}; the nearest that does is {nearest}"
        )
