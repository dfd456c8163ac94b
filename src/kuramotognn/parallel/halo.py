"""Parts of a graph over processes: each has the rows of its own nodes and a copy of their neighbours, its halo."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from kuramotognn.graph import Graph, Part, Pattern
from kuramotognn.parallel.exchange import Ranks
from kuramotognn.typing import Index


@dataclass(frozen=True, eq=False)
class Halo:
    """The part of a graph that one rank has.

    Its nodes are numbered anew: first the ``n`` own ones, ascending, then those of the halo by their owner.

    Attributes:
        ranks: the processes.
        own: the nodes of each rank, ascending.
        sent: for each rank, which of the own nodes are in its halo.
        received: for each rank, how many nodes of the halo are its own.
        number: ``[N]`` the new number of a node; -1 for nodes that are not here.
        cut_edges: how many edges of the whole graph have ends in two parts.
        halo_rows: size of all halos: rows that are sent in one exchange.
    """

    ranks: Ranks
    own: list[Index]
    sent: list[Index]
    received: list[int]
    number: Index
    cut_edges: int
    halo_rows: int

    @staticmethod
    def of(pattern: Pattern, owner: Index, ranks: Ranks) -> Halo:
        """The part of this rank, where ``owner`` is the rank of each node."""
        own = [(owner == rank).nonzero().flatten() for rank in range(ranks.size)]
        cut = owner[pattern.row] != owner[pattern.col]
        # A node of the halo once for each rank that needs it: (rank, owner, node), sorted.
        needed = torch.stack([owner[pattern.row[cut]], owner[pattern.col[cut]], pattern.col[cut]])
        needed = torch.unique(needed, dim=1)
        mine = needed[:, needed[0] == ranks.rank]
        number = torch.full_like(owner, -1)
        nodes = torch.cat([own[ranks.rank], mine[2]])
        number[nodes] = torch.arange(nodes.numel(), device=owner.device)
        asked = needed[:, needed[1] == ranks.rank]
        return Halo(
            ranks,
            own,
            [number[asked[2, asked[0] == rank]] for rank in range(ranks.size)],
            torch.bincount(mine[1], minlength=ranks.size).tolist(),
            number,
            int(cut.sum()),
            needed.size(1),
        )

    @property
    def count(self) -> int:
        """Number of own nodes."""
        return self.own[self.ranks.rank].numel()

    @property
    def total(self) -> int:
        """Number of own nodes and of the halo."""
        return self.count + sum(self.received)

    def extend(self, x: Tensor) -> Tensor:
        """The rows of the own nodes, and behind them those of the halo as their owners have them."""
        found: Tensor = _Extend.apply(x, self)  # type: ignore[no-untyped-call]
        return found

    def cut(self, pattern: Pattern, *, square: bool) -> tuple[Pattern, Index]:
        """The rows of the own nodes (and, if ``square``, empty rows of the halo), and their entries in ``pattern``."""
        kept = (self.number[pattern.row] < self.count) & (self.number[pattern.row] >= 0)
        entries = kept.nonzero().flatten()
        row, col = self.number[pattern.row[entries]], self.number[pattern.col[entries]]
        order = torch.argsort(row * self.total + col)
        rows = self.total if square else self.count
        return Pattern.from_sorted(row[order], col[order], rows, self.total), entries[order]


class _Extend(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, halo: Halo) -> Tensor:
        ctx.halo = halo
        shapes = [(count, *x.shape[1:]) for count in halo.received]
        return torch.cat([x, *halo.ranks.exchange([x.index_select(0, rows) for rows in halo.sent], shapes)])

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        halo: Halo = ctx.halo
        back = grad[halo.count :].split(halo.received)  # type: ignore[no-untyped-call]
        shapes: Sequence[Sequence[int]] = [(rows.numel(), *grad.shape[1:]) for rows in halo.sent]
        own = grad[: halo.count].clone(memory_format=torch.contiguous_format)
        for rows, part in zip(halo.sent, halo.ranks.exchange(back, shapes), strict=True):
            own.index_add_(0, rows, part)
        return own, None


@dataclass(frozen=True, eq=False)
class HaloGraph(Graph):
    """The rows of the own nodes; columns are own nodes and the halo.

    Attributes:
        whole: the graph it is a part of.
        halo: which part.
        entries: ``[E]`` its edges in the whole graph.
    """

    whole: Graph
    halo: Halo
    entries: Index

    @staticmethod
    def of(whole: Graph, halo: Halo) -> HaloGraph:
        """The part of a graph whose edges between parts are those that the halo was made for."""
        pattern, entries = halo.cut(whole.pattern, square=False)
        return HaloGraph(pattern, whole.weight[entries], whole, halo, entries)

    @property
    def edge_part(self) -> Part:
        """Which edges of the whole graph these are."""
        return Part(self.entries, self.whole.num_edges)

    def sources(self, x: Tensor) -> Tensor:
        """The rows of own nodes and halo, from those of the own nodes."""
        return self.halo.extend(x)

    def derive(self, make: Callable[[Graph], Graph]) -> Graph:
        """The part of what ``make`` gives for the whole graph, such as weights that are divided by degrees."""
        return HaloGraph.of(make(self.whole), self.halo)
