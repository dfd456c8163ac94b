"""What a statement of the paper is, here: a claim with its place, and numbers that bear it out or do not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from kuramotognn.graph import Graph
from kuramotognn.panels import Panel


@dataclass(frozen=True)
class Check:
    """A number held against a tolerance.

    Attributes:
        claim: what is said to hold.
        measured: the number.
        relation: on which side of ``tolerance`` it must be.
        tolerance: the other number.
        as_written: the claim as the paper words it, known to fail; the number is the counter-example's.
    """

    claim: str
    measured: float
    relation: Literal["≤", "≥"]
    tolerance: float
    as_written: bool = False

    @property
    def holds(self) -> bool:
        """Whether the number is where the claim says."""
        return self.measured <= self.tolerance if self.relation == "≤" else self.measured >= self.tolerance

    @property
    def expected(self) -> bool:
        """Whether a true claim holds, or a false one is refuted."""
        return self.holds != self.as_written

    @property
    def verdict(self) -> str:
        """One word or two for a table."""
        if self.as_written:
            return "not refuted" if self.holds else "fails as written"
        return "holds" if self.holds else "FAILS"

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self) | {"verdict": self.verdict, "expected": self.expected}


@dataclass(frozen=True)
class Finding:
    """What running a statement gave."""

    checks: tuple[Check, ...]
    panels: tuple[Panel, ...]


@dataclass(frozen=True)
class Statement:
    """A statement of the paper.

    Attributes:
        name: how the command line calls it.
        place: where it stands in the paper.
        says: the statement.
        verdict: what is found: whether it holds, under which assumptions, and what holds instead.
        run: the experiment.
    """

    name: str
    place: str
    says: str
    verdict: str
    run: Callable[[], Finding]


def complete_graph(num_nodes: int) -> Graph:
    """Everyone coupled to everyone with weight 1/n, the paper's simplification for gradients."""
    ends = torch.arange(num_nodes)
    edges = torch.cartesian_prod(ends, ends).t()
    weight = torch.full((edges.size(1),), 1 / num_nodes, dtype=torch.float64)
    return Graph.from_edge_index(edges, num_nodes, weight)


def ring_graph(num_nodes: int) -> Graph:
    """Everyone coupled to the next, both ways."""
    ends = torch.arange(num_nodes)
    return undirected(torch.stack([ends, ends.roll(-1)]), num_nodes)


def random_graph(num_nodes: int, chords: int, seed: int) -> Graph:
    """A ring with random chords: connected, undirected, degrees uneven."""
    generator = torch.Generator().manual_seed(seed)
    ends = torch.arange(num_nodes)
    pairs = torch.randint(num_nodes, (2, chords), generator=generator)
    pairs = pairs[:, pairs[0] != pairs[1]]
    return undirected(torch.cat([torch.stack([ends, ends.roll(-1)]), pairs], dim=1), num_nodes)


def barbell_graph(clique: int) -> Graph:
    """Two cliques joined by one edge: a Laplacian whose smallest eigenvalue stands far from the others."""
    ends = torch.arange(clique)
    inner = torch.combinations(ends).t()
    bridge = torch.tensor([[clique - 1], [clique]])
    return undirected(torch.cat([inner, inner + clique, bridge], dim=1), 2 * clique)


def undirected(pairs: Tensor, num_nodes: int) -> Graph:
    """A graph with both directions of each pair, weights one in float64."""
    return Graph.from_edge_index(torch.cat([pairs, pairs.flip(0)], dim=1), num_nodes, dtype=torch.float64)


def dense(graph: Graph, values: Tensor) -> Tensor:
    """``[N, N]`` the matrix whose entries are ``values`` in the order of the graph's edges."""
    matrix = values.new_zeros(graph.num_nodes, graph.num_nodes)
    matrix[graph.pattern.row, graph.pattern.col] = values
    return matrix


def uniform(*shape: int, low: float = 0.0, high: float = 1.0, seed: int) -> Tensor:
    """Numbers in float64 from a generator of their own."""
    generator = torch.Generator().manual_seed(seed)
    return low + (high - low) * torch.rand(*shape, generator=generator, dtype=torch.float64)


def normal(*shape: int, seed: int) -> Tensor:
    """Standard normal numbers in float64 from a generator of their own."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def slope(x: list[float], y: list[float]) -> float:
    """The slope of log y against log x, by least squares."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def log_space(low: float, high: float, count: int) -> list[float]:
    """Numbers from ``low`` to ``high``, each the same factor above the one before."""
    return [float(value) for value in np.geomspace(low, high, count)]
