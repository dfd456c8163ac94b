"""Sparse structure, built once and frozen: the graph of a model and the support of sparse features."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from typing import ParamSpec, Protocol, TypeVar
from weakref import ref

import numpy as np
import torch
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from kuramotognn.typing import EdgeIndex, EdgeWeight, Index, Nodes

P = ParamSpec("P")
R = TypeVar("R")


def usable_in_training(make: Callable[P, R]) -> Callable[P, R]:
    """Make what is kept with a graph outside of ``torch.inference_mode``, whose tensors have no gradients later."""

    @wraps(make)
    def outside(*args: P.args, **kwargs: P.kwargs) -> R:
        if torch.compiler.is_compiling() or not torch.is_inference_mode_enabled():
            return make(*args, **kwargs)
        with torch.inference_mode(False), torch.no_grad():
            return make(*args, **kwargs)

    return outside


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
    derived: dict[str, Tensor] = field(default_factory=dict, repr=False)  # what others derive of it, kept with it

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

    @property
    def num_entries(self) -> int:
        """How many entries may be non-zero."""
        return self.row.numel()

    @cached_property
    @usable_in_training
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
    @usable_in_training
    def bipartite(self) -> Pattern:
        """The square pattern that couples node ``N + i`` to node ``j`` where this one couples ``i`` to ``j``.

        On it one evaluation couples two states of the nodes, ``[neighbours; own]``, such as those of two times.
        """
        return Pattern.from_sorted(self.row + self.num_rows, self.col, 2 * self.num_rows, 2 * self.num_rows)

    def of_row(self, rows: Tensor) -> Tensor:
        """The value of each entry's row: ``[num_rows, ...]`` to ``[E, ...]``."""
        # Not rows[self.row]: the gradient of that adds with atomics on several threads, in no fixed order.
        return rows.index_select(0, self.row)

    def of_col(self, cols: Tensor) -> Tensor:
        """The value of each entry's column: ``[num_cols, ...]`` to ``[E, ...]``."""
        return cols.index_select(0, self.col)

    def sum_rows(self, values: Tensor) -> Tensor:
        """Sum ``[E, ...]`` values over each row: ``[num_rows, ...]``; an empty row gives 0."""
        sums = values.new_zeros(self.num_rows, *values.shape[1:])
        return sums.index_add(0, self.row, values)

    def entries_of(self, rows: Index) -> tuple[Index, Index]:
        """The entries of some rows, in the order of ``rows``: the place of each one's row in it, and the entry."""
        first, size = self.rowptr[rows], self.rowptr[rows + 1] - self.rowptr[rows]
        place = torch.repeat_interleave(torch.arange(rows.numel(), device=rows.device), size)
        before = size.cumsum(0) - size
        return place, torch.arange(place.numel(), device=rows.device) + (first - before)[place]

    def to(self, device: torch.device | str) -> Pattern:
        """A copy on ``device`` (the pattern itself when it is there already)."""
        if self.row.device == torch.device(device):
            return self
        names = ("rowptr", "row", "col", "transposed_rowptr", "transpose")
        return replace(self, **{name: getattr(self, name).to(device) for name in names}, derived={})


@dataclass(frozen=True, eq=False)
class Part:
    """Some rows, or some stored entries, of a whole: their places in it, and how many it has."""

    place: Index
    total: int


@dataclass(frozen=True, eq=False)
class Graph:
    """A directed, weighted graph whose row ``i`` lists the nodes ``j`` that act on ``i``.

    Attributes:
        pattern: the square pattern of the adjacency matrix; entry ``(i, j)`` is the edge from ``j`` to ``i``.
        weight: ``[E]`` weights in the pattern's order; all ones unless given.
    """

    pattern: Pattern
    weight: EdgeWeight

    def __repr__(self) -> str:
        return f"Graph({self.num_nodes} nodes, {self.num_edges} directed edges)"

    @staticmethod
    @usable_in_training
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
        pattern, place = _coalesce(edge_index, num_nodes)
        if edge_weight is None:
            weight = torch.ones(pattern.num_entries, dtype=dtype or torch.get_default_dtype(), device=edge_index.device)
        else:
            weight = edge_weight.new_zeros(pattern.num_entries).index_add(0, place, edge_weight)
        graph = Graph(pattern, weight)
        return graph.with_self_loops() if self_loops else graph

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

    def with_self_loops(self) -> Graph:
        """The graph with a self-loop of weight 1 at every node that has none."""
        return self._looped if not self.weight.requires_grad else self._add_self_loops()

    @cached_property
    def _looped(self) -> Graph:
        return self._add_self_loops()

    def _add_self_loops(self) -> Graph:
        pattern = self.pattern
        missing = torch.ones(self.num_nodes, dtype=torch.bool, device=self.weight.device)
        missing[pattern.row[pattern.row == pattern.col]] = False
        loops = missing.nonzero().flatten()
        if not loops.numel():
            return self
        edges = torch.cat([self.edge_index, loops.expand(2, -1)], dim=1)
        weight = torch.cat([self.weight, self.weight.new_ones(loops.numel())])
        return Graph.from_edge_index(edges, self.num_nodes, weight)

    def subgraph(self, nodes: Index) -> Graph:
        """The graph on some nodes, renumbered from 0, with the edges between them; takes time of their edges alone.

        Args:
            nodes: different nodes in ascending order.
        """
        pattern, count = self.pattern, nodes.numel()
        position = torch.full((self.num_nodes,), -1, device=nodes.device)
        position[nodes] = torch.arange(count, device=nodes.device)
        row, entry = pattern.entries_of(nodes)
        col = position[pattern.col[entry]]
        kept = col >= 0
        # Rows and columns keep their order, so that nothing needs to be sorted.
        return Graph(Pattern.from_sorted(row[kept], col[kept], count, count), self.weight[entry[kept]])

    @property
    def edge_part(self) -> Part | None:
        """Which edges of a larger graph these are, where its nodes are spread over processes."""
        return None

    def sources(self, x: Tensor) -> Tensor:
        """The rows of ``x`` for the columns of the pattern: those of all nodes that act on the nodes at hand."""
        return x

    def derive(self, make: Callable[[Graph], Graph]) -> Graph:
        """What ``make`` gives for the whole graph, of which this may be a part."""
        return make(self)

    def to(self, target: torch.device | str | torch.dtype) -> Graph:
        """On a device, or with weights of a floating-point type; the graph itself where nothing changes."""
        if isinstance(target, torch.dtype):
            return self if self.weight.dtype == target else replace(self, weight=self.weight.to(target))
        if self.weight.device == torch.device(target):
            return self
        return Graph(self.pattern.to(target), self.weight.to(target))


def as_graph(
    edges: Graph | EdgeIndex | SparseAdjacency, num_nodes: int, edge_weight: EdgeWeight | None, like: Nodes
) -> Graph:
    """The graph of a model's second argument: a :class:`Graph`, PyG's ``edge_index``, or a transposed adjacency.

    The graph of an ``edge_index`` is kept for the next call with the same tensors. Tensors that were edited in place
    by torch give a new graph; edits through other views of their memory (NumPy) go unnoticed. That of a sparse tensor
    without repeated entries is kept, too, and found by comparing all entries.

    Args:
        edges: ``edge_index`` ``[2, E]``, a :class:`Graph`, or as PyG's ``adj_t`` a sparse ``[N, N]`` tensor of torch
            (COO or CSR) or ``torch_sparse`` whose rows are targets and whose values are weights.
        num_nodes: the number of rows of ``x``.
        edge_weight: ``[E]`` weights of an ``edge_index``.
        like: a tensor of the wanted type and device.
    """
    if isinstance(edges, Graph):
        if edge_weight is not None:
            raise ValueError("edge_weight must be given to Graph.from_edge_index when a Graph is passed")
        if edges.num_nodes != num_nodes:
            raise ValueError(f"the graph has {edges.num_nodes} nodes but x has {num_nodes} rows")
        return edges.to(like.device).to(like.dtype)
    find = _recent.of_tensors
    if not isinstance(edges, Tensor) or edges.layout != torch.strided:
        if edge_weight is not None:
            raise ValueError("a sparse adjacency holds its weights itself; leave out edge_weight")
        edges, edge_weight = _from_sparse(edges, num_nodes)
        find = _recent.with_entries
    if torch.compiler.is_compiling() or (edge_weight is not None and edge_weight.requires_grad):
        return _build(edges, num_nodes, edge_weight, like.dtype)
    return find(edges, num_nodes, edge_weight, like.dtype)


def _build(edges: EdgeIndex, num_nodes: int, edge_weight: EdgeWeight | None, dtype: torch.dtype) -> Graph:
    weight = None if edge_weight is None else edge_weight.to(dtype)
    return Graph.from_edge_index(edges, num_nodes, weight, dtype=dtype)


class SparseAdjacency(Protocol):
    """What is used of ``torch_sparse.SparseTensor``."""

    def coo(self) -> tuple[Tensor, Tensor, Tensor | None]:
        """Rows, columns and values."""

    def sparse_sizes(self) -> tuple[int, int]:
        """Number of rows and columns."""


def _from_sparse(adjacency: Tensor | SparseAdjacency, num_nodes: int) -> tuple[EdgeIndex, EdgeWeight | None]:
    weight: EdgeWeight | None
    if isinstance(adjacency, Tensor):
        matrix = adjacency.to_sparse(layout=torch.sparse_coo).coalesce()
        (row, col), weight, shape = matrix.indices(), matrix.values(), tuple(matrix.shape)
    elif hasattr(adjacency, "coo"):
        (row, col, weight), shape = adjacency.coo(), tuple(adjacency.sparse_sizes())
    else:
        raise TypeError(f"edges must be an edge_index, a sparse tensor or a Graph, got {type(adjacency).__name__}")
    if shape != (num_nodes, num_nodes):
        raise ValueError(f"the adjacency has shape {list(shape)} but x has {num_nodes} rows")
    return torch.stack([col, row]), weight


class _RecentGraphs:
    """The graphs of the last calls."""

    MOST = 8

    def __init__(self) -> None:
        self._graphs: OrderedDict[tuple[object, ...], tuple[list[ref[Tensor]], Graph]] = OrderedDict()

    def with_entries(
        self, edge_index: EdgeIndex, num_nodes: int, edge_weight: EdgeWeight | None, dtype: torch.dtype
    ) -> Graph:
        """The graph that has these edges in its own order, made now or before; found by comparing all of them.

        Sparse tensors share memory with the tensors that they were made of, but not their versions.
        """
        count, device = edge_index.size(1), edge_index.device
        weight = torch.ones(count, dtype=dtype, device=device) if edge_weight is None else edge_weight.to(dtype)
        for key, (_, graph) in self._graphs.items():
            sizes = (graph.num_nodes, graph.num_edges, graph.weight.dtype, graph.weight.device)
            same = sizes == (num_nodes, count, dtype, device)
            if same and torch.equal(graph.edge_index, edge_index) and torch.equal(graph.weight, weight):
                self._graphs.move_to_end(key)
                return graph
        return self._keep((object(),), [], _build(edge_index, num_nodes, edge_weight, dtype))

    def of_tensors(
        self, edge_index: EdgeIndex, num_nodes: int, edge_weight: EdgeWeight | None, dtype: torch.dtype
    ) -> Graph:
        """The graph of these tensors, made now or before; found by their identity and version."""
        tensors = [edge_index] if edge_weight is None else [edge_index, edge_weight]
        if any(tensor.is_inference() for tensor in tensors):  # They have no version.
            return _build(edge_index, num_nodes, edge_weight, dtype)
        key = (num_nodes, dtype, *((id(tensor), tensor._version) for tensor in tensors))
        kept = self._graphs.get(key)
        if kept and all(known() is tensor for known, tensor in zip(kept[0], tensors, strict=True)):
            self._graphs.move_to_end(key)
            return kept[1]
        return self._keep(key, [ref(tensor) for tensor in tensors], _build(edge_index, num_nodes, edge_weight, dtype))

    def _keep(self, key: tuple[object, ...], tensors: list[ref[Tensor]], graph: Graph) -> Graph:
        self._graphs[key] = tensors, graph
        while len(self._graphs) > self.MOST:
            self._graphs.popitem(last=False)
        return graph


_recent = _RecentGraphs()


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


def _coalesce(edge_index: EdgeIndex, num_nodes: int) -> tuple[Pattern, Index]:
    """The pattern of some edges, and the entry of each edge in it."""
    source, target = edge_index
    key, place = torch.unique(target * num_nodes + source, return_inverse=True)
    row = torch.div(key, max(num_nodes, 1), rounding_mode="floor")
    return Pattern.from_sorted(row, key - row * num_nodes, num_nodes, num_nodes), place


def _row_pointers(sorted_or_not: Index, num_rows: int) -> Index:
    counts = torch.bincount(sorted_or_not, minlength=num_rows)
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])
