"""Sparse structure, built once and frozen: the graph of a model and the support of sparse features."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.nn.functional as F
from scipy.sparse import coo_matrix, csr_matrix
from scipy.sparse.csgraph import connected_components, reverse_cuthill_mckee
from torch import Tensor

from kuramotognn.typing import EdgeIndex, EdgeWeight, Index, Nodes

if TYPE_CHECKING:
    from kuramotognn.kernels.cpu import Layout

REORDER_FROM = 1024
"""Rows from which on the fused flows renumber the nodes: below, a tile fits the first-level cache in any order."""


class LayoutTensors(list[Tensor]):
    """The tensors of a :class:`kuramotognn.kernels.cpu.Layout`, as the fused operators take it."""

    @cached_property
    def arrays(self) -> Layout:
        """The same memory for compiled kernels; making it anew for each call took longer than some of them."""
        from kuramotognn.kernels.cpu import Layout  # Compiled code is for those who run it.

        return Layout(*(tensor.numpy() for tensor in self))


@dataclass(frozen=True, eq=False)
class Pattern:
    """Where a sparse ``[num_rows, num_cols]`` matrix may be non-zero: CSR, and the way to its transpose.

    Entries are sorted by row, then column, without duplicates. Values are kept apart (``[E]`` tensors in this order),
    because attention and dropout change values many times while the pattern stays.
    """

    num_rows: int
    num_cols: int
    rowptr: Index  # [num_rows + 1]
    row: Index  # [E]
    col: Index  # [E]
    transposed_rowptr: Index  # [num_cols + 1]
    transpose: Index  # [E] entry of this pattern that stands at each place of the transposed one

    @staticmethod
    def from_sorted(row: Index, col: Index, num_rows: int, num_cols: int) -> Pattern:
        """Build from entries that are already sorted by (row, column) and free of duplicates."""
        # A stable sort by column of entries sorted by row is the transposed row-major order.
        transpose = torch.argsort(col, stable=True)
        return Pattern(
            num_rows,
            num_cols,
            _row_pointers(row, num_rows),
            row,
            col,
            _row_pointers(col, num_cols),
            transpose,
        )

    @cached_property
    def layout(self) -> LayoutTensors:
        """The pattern for the fused kernels, in the order of its rows."""
        from kuramotognn.kernels.cpu import AHEAD, balanced_chunks

        rowptr, t_rowptr = self.rowptr.int(), self.transposed_rowptr.int()
        shares = [torch.from_numpy(balanced_chunks(pointers.numpy())) for pointers in (rowptr, t_rowptr)]
        same = [torch.arange(count, dtype=torch.int32) for count in (self.num_rows, self.num_entries)]
        col, t_col = (F.pad(ends.int(), (0, AHEAD)) for ends in (self.col, self.row[self.transpose]))
        return LayoutTensors([rowptr, col, t_rowptr, t_col, self.transpose.int(), *shares, *same])

    @cached_property
    def flow_layout(self) -> LayoutTensors:
        """The layout of a square pattern with neighbours near each other, for kernels that copy states into tiles.

        Reverse Cuthill–McKee makes flows on large graphs up to a fifth faster (docs/performance.md).
        """
        if self.num_rows < REORDER_FROM:
            return self.layout
        shape = (self.num_rows, self.num_cols)
        ones = np.ones(self.num_entries, dtype=np.int8)
        matrix = csr_matrix((ones, self.col.numpy(), self.rowptr.numpy()), shape=shape)
        order = torch.from_numpy(reverse_cuthill_mckee(matrix, symmetric_mode=False).astype(np.int64))
        position = torch.argsort(order)
        row, col = position[self.row], position[self.col]
        entries = torch.argsort(row * self.num_cols + col)
        rowptr, own, t_rowptr, t_own, t_perm, *shares = Pattern.from_sorted(row[entries], col[entries], *shape).layout[
            :7
        ]
        placed = entries[t_perm.long()].int()
        return LayoutTensors([rowptr, own, t_rowptr, t_own, placed, *shares, order.int(), entries.int()])

    @property
    def num_entries(self) -> int:
        """How many entries may be non-zero."""
        return self.row.numel()

    @cached_property
    def transposed(self) -> Pattern:
        """The pattern of the transposed matrix; its values are ``values[self.transpose]``."""
        return Pattern(
            self.num_cols,
            self.num_rows,
            self.transposed_rowptr,
            self.col[self.transpose],
            self.row[self.transpose],
            self.rowptr,
            torch.argsort(self.transpose),
        )

    @cached_property
    def across(self) -> Pattern:
        """The square pattern in which node ``N + i`` listens as node ``i`` does here and nobody else listens.

        On it one evaluation couples states ``[others; own]`` of two moments or two angles.
        """
        return Pattern.from_sorted(self.row + self.num_rows, self.col, 2 * self.num_rows, 2 * self.num_rows)

    def of_row(self, rows: Tensor) -> Tensor:
        """Give each entry what belongs to its row: ``[num_rows, ...]`` to ``[E, ...]``."""
        # Not rows[self.row]: the gradient of that adds with atomics on several threads, in no fixed order.
        return rows.index_select(0, self.row)

    def of_col(self, cols: Tensor) -> Tensor:
        """Give each entry what belongs to its column: ``[num_cols, ...]`` to ``[E, ...]``."""
        return cols.index_select(0, self.col)

    def sum_rows(self, values: Tensor) -> Tensor:
        """Sum ``[E, ...]`` values over each row: ``[num_rows, ...]``; an empty row gives 0."""
        sums = values.new_zeros(self.num_rows, *values.shape[1:])
        return sums.index_add(0, self.row, values)

    def to(self, device: torch.device | str) -> Pattern:
        """A copy on ``device`` (the pattern itself when it is there already)."""
        if self.row.device == torch.device(device):
            return self
        tensors = (self.rowptr, self.row, self.col, self.transposed_rowptr, self.transpose)
        return Pattern(self.num_rows, self.num_cols, *(tensor.to(device) for tensor in tensors))


@dataclass(frozen=True, eq=False)
class Graph:
    """A directed, weighted graph whose row ``i`` lists the nodes ``j`` that act on ``i``.

    Attributes:
        pattern: the square pattern of the adjacency matrix; entry ``(i, j)`` is the edge from ``j`` to ``i``.
        weight: ``[E]`` weights in the pattern's order; all ones unless given.
    """

    pattern: Pattern
    weight: EdgeWeight

    @staticmethod
    def from_edge_index(
        edge_index: EdgeIndex,
        num_nodes: int,
        edge_weight: EdgeWeight | None = None,
        *,
        self_loops: bool = False,
        dtype: torch.dtype | None = None,
    ) -> Graph:
        """Build a graph from PyG's ``edge_index`` (sources in row 0, targets in row 1).

        Args:
            edge_index: ``[2, E]`` integers in ``[0, num_nodes)``.
            num_nodes: how many nodes there are, isolated ones included.
            edge_weight: ``[E]`` weights; the weights of repeated edges are added, which keeps gradients.
            self_loops: give every node that has no edge to itself one of weight 1.
            dtype: floating-point type of the weights when ``edge_weight`` is not given.

        Without weights a repeated edge counts once.
        """
        check_edges(edge_index, num_nodes, edge_weight)
        source, target = edge_index
        if self_loops:
            source, target, edge_weight = _with_self_loops(source, target, edge_weight, num_nodes)
        key, place = torch.unique(target * num_nodes + source, return_inverse=True)
        row = torch.div(key, max(num_nodes, 1), rounding_mode="floor")
        pattern = Pattern.from_sorted(row, key - row * num_nodes, num_nodes, num_nodes)
        if edge_weight is None:
            weight = torch.ones(key.numel(), dtype=dtype or torch.get_default_dtype(), device=key.device)
        else:
            weight = edge_weight.new_zeros(key.numel()).index_add(0, place, edge_weight)
        return Graph(pattern, weight)

    @property
    def num_nodes(self) -> int:
        """How many nodes there are, isolated ones included."""
        return self.pattern.num_rows

    @property
    def num_edges(self) -> int:
        """How many directed edges there are after coalescing."""
        return self.pattern.num_entries

    @property
    def edge_index(self) -> EdgeIndex:
        """``[2, E]`` in PyG's convention and in the order of this graph's weights."""
        return torch.stack([self.pattern.col, self.pattern.row])

    @cached_property
    def has_negative_weight(self) -> bool:
        """Whether some edge repels; couplings that are normalised over a row have no meaning then."""
        return bool((self.weight < 0).any())

    def to(self, target: torch.device | str | torch.dtype) -> Graph:
        """On a device, or with weights of a floating-point type; the graph itself where nothing changes."""
        if isinstance(target, torch.dtype):
            return self if self.weight.dtype == target else replace(self, weight=self.weight.to(target))
        if self.weight.device == torch.device(target):
            return self
        return Graph(self.pattern.to(target), self.weight.to(target))


def as_graph(edges: Graph | EdgeIndex, num_nodes: int, edge_weight: EdgeWeight | None, like: Nodes) -> Graph:
    """The one door through which models take their second argument: a ready graph, or PyG's ``edge_index``.

    Building a graph sorts its edges. Code that calls a model many times builds it once with
    :meth:`Graph.from_edge_index` and passes it instead of ``edge_index``.
    """
    if isinstance(edges, Graph):
        if edge_weight is not None:
            raise ValueError("edge_weight must be given to Graph.from_edge_index when a Graph is passed")
        if edges.num_nodes != num_nodes:
            raise ValueError(f"the graph has {edges.num_nodes} nodes but x has {num_nodes} rows")
        return edges.to(like.device).to(like.dtype)
    if edge_weight is not None:
        edge_weight = edge_weight.to(like.dtype)
    return Graph.from_edge_index(edges, num_nodes, edge_weight, dtype=like.dtype)


def largest_component(edge_index: EdgeIndex, num_nodes: int) -> Index:
    """Nodes of the largest connected component, edges taken as undirected, in ascending order."""
    source, target = edge_index.cpu().numpy()
    adjacency = coo_matrix((np.ones(source.size, dtype=np.int8), (source, target)), shape=(num_nodes, num_nodes))
    _, component = connected_components(adjacency, directed=False)
    largest = np.bincount(component).argmax() if num_nodes else 0
    return torch.from_numpy(np.flatnonzero(component == largest))


def check_edges(edge_index: EdgeIndex, num_nodes: int, edge_weight: EdgeWeight | None) -> None:
    """Refuse edges that no graph can be made of, naming the edge."""
    if edge_index.dim() != 2 or edge_index.size(0) != 2:
        raise ValueError(f"edge_index must have shape [2, E], got {list(edge_index.shape)}")
    if edge_index.dtype != torch.long:
        raise ValueError(f"edge_index must be int64, got {edge_index.dtype}; convert it with edge_index.long()")
    outside = ((edge_index < 0) | (edge_index >= num_nodes)).any(dim=0).nonzero()
    if outside.numel():
        edge = int(outside[0])
        j, i = edge_index[:, edge].tolist()
        raise ValueError(
            f"edge {edge} ({j} -> {i}) is out of range: the graph has {num_nodes} nodes, numbered from 0; "
            "drop the edge or add the node's features"
        )
    if edge_weight is None:
        return
    if edge_weight.shape != (edge_index.size(1),):
        raise ValueError(f"edge_weight must have shape [{edge_index.size(1)}], got {list(edge_weight.shape)}")
    wrong = (~torch.isfinite(edge_weight)).nonzero()
    if wrong.numel():
        edge = int(wrong[0])
        raise ValueError(f"edge_weight[{edge}] is {float(edge_weight[edge])}; weights must be finite")


def _with_self_loops(
    source: Index, target: Index, edge_weight: EdgeWeight | None, num_nodes: int
) -> tuple[Index, Index, EdgeWeight | None]:
    has_loop = torch.zeros(num_nodes, dtype=torch.bool, device=source.device)
    has_loop[source[source == target]] = True
    missing = (~has_loop).nonzero().flatten()
    if edge_weight is not None:
        edge_weight = torch.cat([edge_weight, edge_weight.new_ones(missing.numel())])
    return torch.cat([source, missing]), torch.cat([target, missing]), edge_weight


def _row_pointers(sorted_or_not: Index, num_rows: int) -> Index:
    counts = torch.bincount(sorted_or_not, minlength=num_rows)
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])
