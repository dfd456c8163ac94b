"""The nodes of a graph that are drawn, and their positions."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from kuramotognn.graph import Graph
from kuramotognn.typing import EdgeIndex, Index

MOST_NODES = 3000
MOST_EDGES = 20_000
STEPS = 150
WALK = 50
"""Steps of a random walk before the next one starts."""


@dataclass(frozen=True, eq=False)
class Layout:
    """The part of a graph that is shown.

    Attributes:
        nodes: the shown nodes, ascending.
        edges: ``[2, E]`` pairs of shown nodes by their place in ``nodes``, each once.
        positions: ``[n, 2]`` in the unit square.
        num_nodes: nodes of the whole graph.
        num_edges: pairs of different nodes with an edge, of the whole graph.
    """

    nodes: Index
    edges: EdgeIndex
    positions: Tensor
    num_nodes: int
    num_edges: int


def make_layout(graph: Graph, most_nodes: int = MOST_NODES, most_edges: int = MOST_EDGES) -> Layout:
    """Choose nodes and edges and place them; the same graph gives the same layout."""
    graph = graph.to("cpu")
    nodes = sample_nodes(graph, most_nodes)
    row, col = graph.pattern.row, graph.pattern.col
    pairs = _unique_pairs(row, col, graph.num_nodes)
    place = torch.full((graph.num_nodes,), -1)
    place[nodes] = torch.arange(nodes.numel())
    edges = place[pairs]
    edges = edges[:, (edges >= 0).all(dim=0)]
    positions = force_layout(edges, nodes.numel())
    if edges.size(1) > most_edges:
        kept = torch.randperm(edges.size(1), generator=_generator())[:most_edges]
        edges = edges[:, kept.sort().values]
    return Layout(nodes, edges, positions, graph.num_nodes, pairs.size(1))


def sample_nodes(graph: Graph, most: int) -> Index:
    """All nodes, or the first ``most`` that random walks along the edges visit.

    Walks start at random nodes not visited before. Unlike a sample of single nodes they keep neighbourhoods; nodes with
    many neighbours are visited more often (Leskovec and Faloutsos, "Sampling from Large Graphs", 2006).
    """
    if graph.num_nodes <= most:
        return torch.arange(graph.num_nodes)
    rowptr, col = graph.pattern.rowptr, graph.pattern.col
    if not col.numel():
        return torch.randperm(graph.num_nodes, generator=_generator())[:most].sort().values
    generator, seen = _generator(), torch.zeros(graph.num_nodes, dtype=torch.bool)
    while (missing := most - int(seen.sum())) > 0:
        # As many walks at once as could visit the missing nodes.
        unseen = (~seen).nonzero().flatten()
        at = unseen[torch.randint(unseen.numel(), (-(-missing // WALK),), generator=generator)]
        for _ in range(WALK):
            visited = torch.unique(at)
            new = visited[~seen[visited]]
            seen[new[: most - int(seen.sum())]] = True
            degree = rowptr[at + 1] - rowptr[at]
            step = (torch.rand(at.shape, generator=generator, dtype=torch.float64) * degree).long()
            at = torch.where(degree > 0, col[(rowptr[at] + step).clamp(max=col.numel() - 1)], at)
    return seen.nonzero().flatten()


def force_layout(edges: EdgeIndex, num_nodes: int) -> Tensor:
    """Positions in the unit square: nodes are drawn to the mean of their neighbours and repel each other.

    The repulsion falls with the square of the distance and grows with the neighbours of the repelling node, so that
    hubs get room. All pairs are taken into account: meant for thousands of nodes, not for millions.
    """
    if num_nodes < 2:
        return torch.full((num_nodes, 2), 0.5)
    pairs = torch.cat([edges, edges.flip(0)], dim=1)
    ones = torch.ones(pairs.size(1))
    charge = torch.ones(num_nodes).index_add(0, pairs[0], ones)
    neighbours = Graph.from_edge_index(pairs, num_nodes).pattern
    size = num_nodes**0.5

    def mean_of_neighbours(p: Tensor) -> Tensor:
        return (p + neighbours.sum_rows(neighbours.of_col(p))) / charge[:, None]

    noise = torch.randn(num_nodes, 2, generator=_generator())
    p = noise
    for _ in range(100):  # Smooth noise: neighbours start close to each other.
        p = mean_of_neighbours(p)
    p = (p - p.mean(dim=0)) / p.std(dim=0).clamp(min=1e-6) * size / 2 + 0.1 * noise  # No two nodes at one place.
    for k in range(STEPS):
        square = p.square().sum(dim=1)
        inverse = torch.addmm(square[:, None] + square, p, p.t(), alpha=-2).clamp_(min=0.1).rsqrt_()
        push = inverse * inverse * inverse * charge
        force = push.sum(dim=1, keepdim=True) * p - push @ p + mean_of_neighbours(p) - p - 0.02 * p
        length = force.norm(dim=1, keepdim=True).clamp(min=1e-9)
        p = p + force / length * length.clamp(max=0.1 * size * (1 - k / STEPS) ** 1.5)
    low, high = p.min(dim=0).values, p.max(dim=0).values
    placed: Tensor = (p - (low + high) / 2) / (high - low).max().clamp(min=1e-9) + 0.5
    return placed


def _unique_pairs(row: Index, col: Index, num_nodes: int) -> EdgeIndex:
    low, high = torch.minimum(row, col), torch.maximum(row, col)
    keys = torch.unique((low * num_nodes + high)[low != high])
    return torch.stack([keys // num_nodes, keys % num_nodes])


def _generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)
