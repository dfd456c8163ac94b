"""Couplings by attention: how similar a node's state is to each of its neighbours'."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Literal, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from kuramotognn.checks import check_choice
from kuramotognn.fields.coupling import Adjacency, check_heads, check_weights
from kuramotognn.graph import Graph, Pattern
from kuramotognn.kernels import attention, projected_attention
from kuramotognn.typing import EdgeHeads, EdgeWeight, Nodes

Score: TypeAlias = Literal["scaled-dot", "cosine", "pearson", "exp-kernel"]
Squash: TypeAlias = Literal["softmax", "squareplus"]
Normalise: TypeAlias = Literal["row", "column"]
WeightInit: TypeAlias = Literal["uniform", "constant"]
SCORES: tuple[Score, ...] = ("scaled-dot", "cosine", "pearson", "exp-kernel")
SQUASHES: tuple[Squash, ...] = ("softmax", "squareplus")
NORMALISES: tuple[Normalise, ...] = ("row", "column")
WEIGHT_INITS: tuple[WeightInit, ...] = ("uniform", "constant")
EPSILON = 1e-5
"""Least length of a vector whose direction is compared, as in the authors' code."""


class Attention(Adjacency):
    r"""Multi-head attention over each node's neighbours, averaged over heads.

    .. math::
        a_{ij} = \frac{1}{H} \sum_{h=1}^H \frac{w_{ij}\, \phi(s_{ij}^h)}{\sum_k w_{ik}\, \phi(s_{ik}^h)}, \qquad
        s_{ij} = \frac{\langle k_i, q_j \rangle}{\sqrt{d_k}}, \qquad k_i = W_K x_i + b_K, \quad q_j = W_Q x_j

    from `"Attention Is All You Need" <https://arxiv.org/abs/1706.03762>`_ as GRAND uses it
    (`"GRAND: Graph Neural Diffusion" <https://arxiv.org/abs/2106.10934>`_). An edge weight of zero removes the edge.
    The KuramotoGNN paper divides by :math:`d_k` in its main text and by :math:`\sqrt{d_k}` in its supplement; this is
    the latter. The defaults are the paper's; the other options are those of the authors' public code.

    Args:
        channels: width ``d`` of the states.
        score: :math:`s_{ij}`: ``"scaled-dot"``; ``"cosine"``, :math:`\cos(k_i, q_j)`; ``"pearson"``, the same of
            vectors without their mean; ``"exp-kernel"``, :math:`\sigma^2 \exp(-\lVert k_i - q_j \rVert^2 / 2 \ell^2)`,
            ``σ`` and ``ℓ`` learnt.
        squash: :math:`\phi`: ``"softmax"``, :math:`e^s`; ``"squareplus"``, :math:`(s' + \sqrt{s'^2 + 4}) / 2` with
            :math:`s' = s - \max s` over all edges.
        normalise: ``"row"`` as above, or ``"column"``: the sum runs over the edges that leave :math:`j`, and rows do
            not sum to one.
        init: start the weights of queries and keys at random (``"uniform"``) or all at 1e-5 (``"constant"``).
        heads: number of heads ``H``.
        width: total width of queries and keys, ``H · d_k``; ``channels`` unless given.
    """

    def __init__(
        self,
        channels: int,
        *,
        score: Score = "scaled-dot",
        squash: Squash = "softmax",
        normalise: Normalise = "row",
        init: WeightInit = "uniform",
        heads: int = 4,
        width: int | None = None,
    ) -> None:
        super().__init__()
        check_choice("score", score, SCORES)
        check_choice("squash", squash, SQUASHES)
        check_choice("normalise", normalise, NORMALISES)
        check_choice("init", init, WEIGHT_INITS)
        self.heads = heads
        self.width = channels if width is None else width
        check_heads(self.heads, self.width)
        self.score, self.squash, self.normalise, self.init = score, squash, normalise, init
        self.usual = (score, squash, normalise) == ("scaled-dot", "softmax", "row")
        # There a bias of the query would shift all scores of a row alike, which leaves the softmax unchanged.
        self.query = nn.Linear(channels, self.width, bias=not self.usual)
        self.key = nn.Linear(channels, self.width)
        if score == "exp-kernel":
            self.sigma, self.length = nn.Parameter(torch.ones(())), nn.Parameter(torch.ones(()))
        if init == "constant":
            self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reset the projections."""
        super().reset_parameters()
        if self.init == "constant":
            nn.init.constant_(self.query.weight, 1e-5)
            nn.init.constant_(self.key.weight, 1e-5)
        if self.score == "exp-kernel":
            nn.init.ones_(self.sigma)
            nn.init.ones_(self.length)

    def forward(self, x: Nodes, graph: Graph) -> EdgeWeight:
        """Attention ``[E]`` of states ``x`` ``[N, d]``."""
        check_weights(graph)
        if self.usual:
            key, query = self.key, self.query
            return attention(graph.pattern, x, key.weight, query.weight, key.bias, graph.weight, self.heads)
        return self.of_heads(self.key(x), self.query(x), graph, self.heads)

    def of_heads(self, keys: Nodes, queries: Nodes, graph: Graph, heads: int) -> EdgeWeight:
        """The attention of ``heads`` heads, averaged, with their keys and queries ``[N, heads · d_k]``."""
        if self.usual:
            return projected_attention(graph.pattern, keys, queries, graph.weight, heads)
        shape = (keys.size(0), heads, self.width // self.heads)
        scores = self._scores(graph.pattern, keys.view(shape), queries.view(shape))
        return _normalised(graph, scores, self.squash, self.normalise).mean(dim=-1)

    def _scores(self, pattern: Pattern, key: Tensor, query: Tensor) -> EdgeHeads:
        """Scores ``[E, H]`` of keys and queries ``[N, H, d_k]``."""
        if self.score == "pearson":
            key, query = (each - each.mean(dim=-1, keepdim=True) for each in (key, query))
        k, q = pattern.of_row(key), pattern.of_col(query)
        if self.score == "scaled-dot":
            return (k * q).sum(dim=-1) / math.sqrt(key.size(-1))
        if self.score == "exp-kernel":
            return self.sigma.square() * torch.exp(-(k - q).square().sum(dim=-1) / (2 * self.length.square()))
        return F.cosine_similarity(k, q, dim=-1, eps=EPSILON)

    def extra_repr(self) -> str:
        """Options shown by ``print(model)``."""
        unusual = "" if self.usual else f", score={self.score!r}, squash={self.squash!r}, normalise={self.normalise!r}"
        return f"heads={self.heads}, width={self.width}{unusual}"


def _normalised(graph: Graph, scores: EdgeHeads, squash: Squash, normalise: Normalise) -> EdgeHeads:
    index, count = (graph.pattern.row, graph.num_nodes) if normalise == "row" else (graph.pattern.col, graph.num_nodes)
    if not scores.numel():
        return scores
    if squash == "squareplus":
        shifted = scores - scores.max()
        values = (shifted + torch.sqrt(shifted.square() + 4)) / 2
    else:
        highest = scores.new_full((count, scores.size(1)), -torch.inf)
        highest = highest.scatter_reduce(0, index[:, None].expand_as(scores), scores.detach(), "amax")
        values = torch.exp(scores - highest.index_select(0, index))
    values = graph.weight[:, None] * values
    total = scores.new_zeros(count, scores.size(1)).index_add(0, index, values)
    total = torch.where(total == 0, 1.0, total)
    return values / total.index_select(0, index)


class SignedAttention(Adjacency):
    r"""Attention whose edges may repel: each has a sign and a strength of its own.

    .. math::
        a_{ij} = \alpha_{ij}\, \kappa_{ij}, \qquad \kappa_{ij} = \operatorname{sign}(w_{ij})
            \tanh\left( b + \frac{\langle P x_i, Q x_j \rangle}{\sqrt{d_k}} \right)

    with the attention :math:`\alpha` of :class:`Attention` for weights :math:`|w_{ij}|`, so that :math:`\sum_j |a_{ij}|
    \le 1`. Where :math:`\kappa = 1` on every edge this is :class:`Attention`; a negative weight turns the attraction of
    its edge into repulsion. The bias starts at 1: most edges attract.

    Args:
        channels: width ``d`` of the states.
        heads: number of heads of the attention.
        width: total width of queries and keys, and :math:`d_k` of the signs; ``channels`` unless given.
        **options: those of :class:`Attention`.
    """

    def __init__(self, channels: int, *, heads: int = 4, width: int | None = None, **options: Any) -> None:
        super().__init__()
        self.attention = Attention(channels, heads=heads, width=width, **options)
        self.listener = nn.Linear(channels, self.attention.width, bias=False)
        self.speaker = nn.Linear(channels, self.attention.width, bias=False)
        self.bias = nn.Parameter(torch.ones(()))

    def reset_parameters(self) -> None:
        """Reset the projections; most edges attract."""
        super().reset_parameters()
        nn.init.ones_(self.bias)

    def forward(self, x: Nodes, graph: Graph) -> EdgeWeight:
        """Signed couplings ``[E]`` of states ``x`` ``[N, d]``."""
        pattern, scale = graph.pattern, self.attention.width**-0.5
        scores = (pattern.of_row(scale * self.listener(x)) * pattern.of_col(self.speaker(x))).sum(dim=-1)
        attention = self.attention(x, replace(graph, weight=graph.weight.abs()))
        coupling: EdgeWeight = attention * graph.weight.sign() * torch.tanh(self.bias + scores)
        return coupling
