"""Graphs, states and dynamics of the experiments, in float64."""

from __future__ import annotations

import torch
from torch import Tensor

from kuramotognn.fields import CoupledDynamics, Couplings
from kuramotognn.graph import Graph


def kuramoto(graph: Graph, a: Tensor, omega: Tensor, strength: float = 1.0, *, linear: bool = False) -> CoupledDynamics:
    """The Kuramoto model with couplings ``a``, or with ``linear`` graph diffusion (GRAND) with the source ``omega``."""
    return CoupledDynamics(Couplings(graph.pattern, a), omega, strength, linear=linear)


def complete_graph(num_nodes: int) -> Graph:
    """All-to-all coupling with weight 1/n, the paper's simplification for gradients."""
    ends = torch.arange(num_nodes)
    edges = torch.cartesian_prod(ends, ends).t()
    weight = torch.full((edges.size(1),), 1 / num_nodes, dtype=torch.float64)
    return Graph.from_edge_index(edges, num_nodes, weight)


def undirected(pairs: Tensor, num_nodes: int) -> Graph:
    """A graph with both directions of each pair and weights of one in float64."""
    return Graph.from_edge_index(torch.cat([pairs, pairs.flip(0)], dim=1), num_nodes, dtype=torch.float64)


def pair_graph() -> Graph:
    """Two coupled nodes."""
    return undirected(torch.tensor([[0], [1]]), 2)


def ring_graph(num_nodes: int) -> Graph:
    """Every node coupled to the next one, in both directions."""
    ends = torch.arange(num_nodes)
    return undirected(torch.stack([ends, ends.roll(-1)]), num_nodes)


def random_graph(num_nodes: int, chords: int, seed: int) -> Graph:
    """A ring with random chords: connected and undirected, with different degrees."""
    ends = torch.arange(num_nodes)
    pairs = torch.randint(num_nodes, (2, chords), generator=torch.Generator().manual_seed(seed))
    pairs = pairs[:, pairs[0] != pairs[1]]
    return undirected(torch.cat([torch.stack([ends, ends.roll(-1)]), pairs], dim=1), num_nodes)


def barbell_graph(clique: int) -> Graph:
    """Two cliques joined by one edge; λ₂ of its Laplacian is far below the other eigenvalues."""
    inner = torch.combinations(torch.arange(clique)).t()
    bridge = torch.tensor([[clique - 1], [clique]])
    return undirected(torch.cat([inner, inner + clique, bridge], dim=1), 2 * clique)


def dense(graph: Graph, values: Tensor) -> Tensor:
    """``[N, N]`` the matrix with entries ``values``, given in the order of the graph's edges."""
    matrix = values.new_zeros(graph.num_nodes, graph.num_nodes)
    matrix[graph.pattern.row, graph.pattern.col] = values
    return matrix


def uniform(*shape: int, low: float = 0.0, high: float = 1.0, seed: int) -> Tensor:
    """Uniform random numbers in float64 from a new generator."""
    generator = torch.Generator().manual_seed(seed)
    return low + (high - low) * torch.rand(*shape, generator=generator, dtype=torch.float64)


def normal(*shape: int, seed: int) -> Tensor:
    """Standard normal random numbers in float64 from a new generator."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
