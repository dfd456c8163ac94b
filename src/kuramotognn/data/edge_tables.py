"""The table of edges: its ends among the nodes, its weights, its repetitions."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl
import torch

from kuramotognn.data.data_error import DataError
from kuramotognn.data.graph_files import GraphFiles
from kuramotognn.data.graph_summary import GraphSummary
from kuramotognn.data.table_files import Codes, Table, positions
from kuramotognn.typing import EdgeIndex, EdgeWeight


def join_edges(
    edges: Table, nodes: Table, ids: pl.Series, files: GraphFiles, summary: GraphSummary, remedy: str
) -> tuple[EdgeIndex, EdgeWeight | None]:
    """The edges without repetitions; an undirected one in one direction."""
    ends, rows = _ends(edges, nodes, ids, files, remedy)
    weight = _weights(edges, files.weight, summary)
    summary.edges, summary.dropped = edges.frame.height, edges.frame.height - rows.size
    summary.loops = int((ends[0] == ends[1]).sum())
    summary.isolated = summary.nodes - np.unique(ends).size
    if not summary.directed:
        ends.sort(axis=0)
    key, first, place = np.unique(ends[0] * summary.nodes + ends[1], return_index=True, return_inverse=True)
    summary.repeated = rows.size - key.size
    edge_index = torch.from_numpy(ends[:, first])
    if weight is None:
        return edge_index, None
    weight = weight[rows]
    differs = np.flatnonzero(weight != weight[first[place]])
    if differs.size:
        here, there = differs[0], first[place[differs[0]]]
        source, target = (ids[int(end)] for end in ends[:, here])
        raise DataError(
            f"{edges.place(rows[here])}: the edge between {source!r} and {target!r} has weight {weight[here]:g}, but "
            f"{weight[there]:g} in row {rows[there] + edges.first_row}; keep one, or keep edges one-way with --directed"
        )
    return edge_index, torch.from_numpy(weight[first].astype(np.float32))


def _ends(edges: Table, nodes: Table, ids: pl.Series, files: GraphFiles, remedy: str) -> tuple[Codes, Codes]:
    """The ends ``[2, E]`` of the edges between known nodes, and the rows of these edges."""
    columns = edges.frame.columns
    if len(columns) < 2 and not (files.source and files.target):
        raise DataError(f"{edges.name} must have two columns of node ids, it has {columns}")
    names = [files.source or columns[0], files.target or columns[1]]
    ends = np.stack([positions(edges.texts(name, "ends of edges"), ids) for name in names])
    missing = (ends < 0).any(axis=0)
    if missing.any() and not files.allow_missing:
        row = int(missing.argmax())
        name = names[int(ends[:, row].argmin())]
        cell = edges.frame[name][row]
        if cell is None or not str(cell).strip():
            raise DataError(f"{edges.place(row, name)}: the id is empty; an edge needs two ends")
        raise DataError(
            f"{edges.place(row)}: node {str(cell)!r} is not in {nodes.name}; add it{remedy}, or drop such edges with "
            "--allow-missing"
        )
    return ends[:, ~missing], np.flatnonzero(~missing)


def _weights(edges: Table, name: str | None, summary: GraphSummary) -> npt.NDArray[np.float64] | None:
    if name is None:
        return None
    weight = edges.numbers(name, "weights; name it with --weight")
    wrong = np.flatnonzero((weight < 0) | (weight > np.finfo(np.float32).max))
    if wrong.size:
        place = edges.place(int(wrong[0]), name)
        raise DataError(f"{place}: weight {weight[wrong[0]]:g} is out of range; weights must not be negative")
    summary.weights = (float(weight.min()), float(weight.max()))
    return weight
