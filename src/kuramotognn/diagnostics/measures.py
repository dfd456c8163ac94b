r"""Measures of the differences between nodes: functions of a state ``[N, d]``, and of a graph or labels where needed.

All are computed in float64 and in blocks, so that memory does not grow with the number of edges or pairs. Differences
are formed before they are squared: a closed form such as :math:`\operatorname{tr}(X^\top L X)` loses all digits when
the states are nearly equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from kuramotognn.checks import check_positive, check_shape
from kuramotognn.graph import Graph
from kuramotognn.kernels import row_normalise, spmm
from kuramotognn.typing import Index, Labels, Nodes

BLOCK = 1 << 22
"""Largest number of elements of a temporary tensor."""


def order_parameter(x: Nodes) -> Tensor:
    r"""Kuramoto's :math:`r e^{i\phi} = \frac1N \sum_j e^{i x_j}` of each channel, ``[d]`` complex; its ``abs`` is r."""
    x = _state(x)
    return torch.complex(x.cos().mean(dim=0), x.sin().mean(dim=0))


def local_order_parameter(x: Nodes, graph: Graph) -> Tensor:
    r""":math:`r_k e^{i\phi_k} = \sum_j a_{kj} e^{i x_j}`, ``[N, d]`` complex, with rows of weights that sum to one.

    It is 0 for a node without neighbours.
    """
    x = _state(x)
    a = row_normalise(graph.pattern, graph.weight.double())
    cosine, sine = spmm(graph.pattern, a, torch.cat([x.cos(), x.sin()], dim=-1)).chunk(2, dim=-1)
    return torch.complex(cosine, sine)


def phase_energy(x: Nodes, graph: Graph) -> float:
    r""":math:`U = \frac12 \sum_{i,j} a_{ij} (1 - \cos(x_i - x_j))`, summed over channels, with the graph's weights.

    An undirected edge counts once. Then :math:`\nabla U = -\dot x / K` for symmetric weights and equal frequencies, as
    in the proof of Proposition 4.10.
    """
    # 1 − cos δ = 2 sin²(δ/2): no cancellation for nearly equal phases.
    return _edge_sum(x, graph, lambda delta: 2 * torch.sin(delta / 2).square())


def dirichlet_energy(x: Nodes, graph: Graph, *, normalised: bool = False) -> float:
    r""":math:`\frac12 \sum_{i,j} w_{ij} \lVert x_i - x_j \rVert^2`, equal to :math:`\operatorname{tr}(X^\top L X)`.

    Args:
        x: ``[N, d]`` the state.
        graph: a graph with symmetric, non-negative weights; self-loops count in the degrees, as in GCN.
        normalised: divide each :math:`x_i` by :math:`\sqrt{d_i}` first. This is the energy of the symmetrically
            normalised Laplacian, which is zero at fixed points of GCN's propagation. Nodes without edges are left out.
    """
    if normalised:
        degree = graph.pattern.sum_rows(graph.weight.double())
        x = _state(x) * torch.where(degree > 0, degree, torch.inf).rsqrt()[:, None]
    return _edge_sum(x, graph, torch.square)


def rayleigh_quotient(x: Nodes, graph: Graph) -> float:
    r"""The normalised Dirichlet energy divided by :math:`\lVert X \rVert_F^2`, in [0, 2]: independent of scale.

    Features that shrink to zero lose energy without becoming smoother; the quotient distinguishes the two.
    """
    size = float(_state(x).square().sum())
    return dirichlet_energy(x, graph, normalised=True) / size if size else 0.0


def mean_average_distance(x: Nodes, graph: Graph | None = None) -> float:
    r"""MAD: the cosine distance :math:`1 - \cos(x_i, x_j)`, averaged over the neighbours of each node, then over nodes.

    Args:
        x: ``[N, d]`` the state.
        graph: defines the neighbours; weights and self-loops are ignored, nodes without neighbours are left out.
            Without it the average is over all pairs.

    Two zero vectors have distance 0, a zero vector and another one have distance 1. From "Measuring and Relieving the
    Over-smoothing Problem for Graph Neural Networks" (Chen et al., 2020).
    """
    x = _state(x)
    length = x.norm(dim=-1, keepdim=True)
    zero = (length == 0).double()
    unit = x / torch.where(length == 0, 1.0, length)
    # 1 − cos = ‖u_i − u_j‖²/2 for unit vectors, without cancellation. A further coordinate gives zero vectors the
    # squared distance 2 from every unit vector.
    points = torch.cat([unit, zero], dim=-1)
    if graph is None:
        return mean_squared_distance(points) / 2
    row, col = graph.pattern.row, graph.pattern.col
    row, col = row[row != col], col[row != col]
    distance = torch.cat([(points[row[b]] - points[col[b]]).square().sum(-1) / 2 for b in _blocks(row, points.size(1))])
    total = distance.new_zeros(x.size(0)).index_add(0, row, distance)
    count = torch.bincount(row, minlength=x.size(0))
    return float((total[count > 0] / count[count > 0]).mean()) if row.numel() else 0.0


def mean_pairwise_distance(x: Nodes, *, pairs: tuple[Index, Index] | None = None) -> float:
    r"""The mean of :math:`\lVert x_i - x_j \rVert` over all pairs, or over the given ones (:func:`sample_pairs`)."""
    x = _state(x)
    n = x.size(0)
    if pairs is not None:
        i, j = pairs
        distances = [(x[i[b]] - x[j[b]]).norm(dim=-1).sum() for b in _blocks(i, x.size(1))]
        return float(sum(distances)) / i.numel()
    total = sum(float(block.triu(1).sum()) for block in _distance_blocks(x))
    return total / (n * (n - 1) / 2) if n > 1 else 0.0


def mean_squared_distance(x: Nodes) -> float:
    r"""The mean of :math:`\lVert x_i - x_j \rVert^2` over all pairs: twice the sample variance, over all channels."""
    x = _state(x)
    return float(2 * x.var(dim=0).sum()) if x.size(0) > 1 else 0.0


def effective_rank(x: Nodes) -> float:
    r"""The exponential of the entropy of the normalised singular values (Roy and Vetterli, 2007); 0 for zeros."""
    sigma: Tensor = torch.linalg.svdvals(_state(x))
    total = sigma.sum()
    return float(torch.special.entr(sigma / total).sum().exp()) if total > 0 else 0.0


def numerical_rank(x: Nodes) -> float:
    r""":math:`\lVert X \rVert_F^2 / \lVert X \rVert_2^2`: between 1 and the rank; 0 for zeros."""
    sigma: Tensor = torch.linalg.svdvals(_state(x))
    return float((sigma / sigma[0]).square().sum()) if sigma.numel() and sigma[0] > 0 else 0.0


def frequency_spread(velocity: Nodes, *, norm: float = torch.inf) -> float:
    r"""The largest difference of frequencies, :math:`\max_{i,j} \lVert \dot x_i - \dot x_j \rVert`.

    Args:
        velocity: ``[N, d]`` the nodes' velocities :math:`\dot x`.
        norm: ``inf`` for the largest channel, in linear time; 2 for the Euclidean norm, over all pairs.
    """
    v = _state(velocity)
    if v.numel() == 0:
        return 0.0
    if norm == torch.inf:
        return float((v.amax(dim=0) - v.amin(dim=0)).max())
    return max(float(block.max()) for block in _distance_blocks(v, norm))


@dataclass(frozen=True)
class ClassSeparation:
    """The variance of the states, divided as in an analysis of variance.

    Attributes:
        within: mean squared distance between a node and the centre of its class.
        between: mean squared distance between the centre of a node's class and the centre of all nodes.
    """

    within: float
    between: float

    @property
    def share(self) -> float:
        """The share of the variance between classes: 1 if classes are points, 0 if their centres are equal."""
        total = self.within + self.between
        return self.between / total if total else 0.0


def class_separation(x: Nodes, y: Labels) -> ClassSeparation:
    """The variance within and between classes."""
    x = _state(x)
    check_shape("y", y, (x.size(0),))
    _, label, count = torch.unique(y, return_inverse=True, return_counts=True)
    # Centred first: nearly equal states would lose digits.
    x = x - x.mean(dim=0)
    centre = x.new_zeros(count.numel(), x.size(1)).index_add(0, label, x) / count[:, None]
    within = (x - centre[label]).square().sum(dim=-1).mean()
    return ClassSeparation(float(within), float(centre[label].square().sum(dim=-1).mean()))


def sample_pairs(num_nodes: int, count: int, seed: int = 0) -> tuple[Index, Index]:
    """``count`` pairs of different nodes, drawn independently and uniformly."""
    check_positive("the number of sampled pairs", count)
    if num_nodes < 2:
        raise ValueError(f"pairs need at least 2 nodes, got {num_nodes}")
    generator = torch.Generator().manual_seed(seed)
    i = torch.randint(num_nodes, (count,), generator=generator)
    step = torch.randint(1, num_nodes, (count,), generator=generator)
    return i, (i + step) % num_nodes


def _state(x: Nodes) -> Nodes:
    if x.dim() != 2:
        raise ValueError(f"a state must have shape [N, d], got {list(x.shape)}")
    return x.detach().double()


def _edge_sum(x: Nodes, graph: Graph, term: Callable[[Tensor], Tensor]) -> float:
    x = _state(x)
    check_shape("the state", x, (graph.num_nodes, x.size(1)))
    row, col, weight = graph.pattern.row, graph.pattern.col, graph.weight.detach().double()
    return sum(float(weight[b] @ term(x[row[b]] - x[col[b]]).sum(dim=-1)) for b in _blocks(row, x.size(1))) / 2


def _distance_blocks(x: Nodes, norm: float = 2.0) -> Iterator[Tensor]:
    """The upper triangle of the distance matrix in blocks of rows; block k starts at the diagonal."""
    rows = max(1, BLOCK // max(1, x.size(0)))
    for k in range(0, x.size(0), rows):
        # Matrix products would be faster but lose all digits for nearly equal states.
        yield torch.cdist(x[k : k + rows], x[k:], p=norm, compute_mode="donot_use_mm_for_euclid_dist")


def _blocks(entries: Tensor, width: int) -> Iterator[slice]:
    """Slices of a list of edges or pairs whose ``[·, width]`` temporaries stay small; at least one."""
    size = max(1, BLOCK // max(width, 1))
    return (slice(k, k + size) for k in range(0, max(entries.size(0), 1), size))
