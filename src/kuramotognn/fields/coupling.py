r"""How strongly a node listens to each of its neighbours: the right-stochastic matrix :math:`A = [a_{ij}]`."""

from __future__ import annotations

from abc import ABC, abstractmethod

from torch import nn

from kuramotognn.graph import Graph
from kuramotognn.kernels import attention, row_normalise
from kuramotognn.typing import EdgeWeight, Nodes


class Adjacency(nn.Module, ABC):
    """Gives one coupling per edge; the couplings of a row sum to one, or are all zero for an isolated node."""

    @abstractmethod
    def forward(self, x: Nodes, graph: Graph) -> EdgeWeight:
        """The couplings ``a_ij`` for states ``x``, in the order of the graph's edges."""

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
        shape = (x.size(0), self.heads, self.width // self.heads)
        return attention(graph.pattern, self.key(x).view(shape), self.query(x).view(shape), graph.weight)

    def extra_repr(self) -> str:
        """Shown by ``print(model)``."""
        return f"heads={self.heads}, width={self.width}"


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
