"""What the files of a user's graph hold, whatever their format: tables of nodes and edges, features and masks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl

from kuramotognn.data.array_files import READERS, Array, Arrays, read_arrays, read_npz
from kuramotognn.data.data_error import DataError
from kuramotognn.data.edge_files import read_edges
from kuramotognn.data.file_bytes import read_bytes
from kuramotognn.data.graph_files import GraphFiles
from kuramotognn.data.graph_folder import is_graph_folder, read_facts
from kuramotognn.data.graph_formats import FORMATS, ID, WEIGHT, GraphFile, count_splits, recognise
from kuramotognn.data.labels import label_column
from kuramotognn.data.list_columns import MASK_COLUMNS, take_lists, take_masks
from kuramotognn.data.matrix_files import read_matrix, to_features
from kuramotognn.data.table_files import Table, is_parquet, read_parquet, read_table
from kuramotognn.features import Features

DGL_ID, DGL_ENDS = "node_id", ("src_id", "dst_id")
"""Columns of DGL's CSV files."""
LONGEST_HEADER = 1 << 24


@dataclass(frozen=True, eq=False)
class GraphSource:
    """The content of a graph's files.

    Attributes:
        nodes: table of nodes.
        files: the files, with the meaning of columns that the format gives.
        edges: table of edges, if the file of nodes holds one.
        matrix: feature matrix.
        masks: masks ``[splits, N]`` by part.
        formats: the formats that were recognised.
        left_out: names in the file that are not used.
    """

    nodes: Table
    files: GraphFiles
    edges: Table | None = None
    matrix: Features | None = None
    masks: Mapping[str, Array] = field(default_factory=dict)
    formats: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


def read_source(files: GraphFiles) -> GraphSource:
    """Read the nodes, and whatever else stands in their file."""
    files = _with_folder(files)
    arrays = read_arrays(files.nodes)
    source = _from_table(files) if arrays is None else _from_arrays(files, arrays)
    return source if files.features is None else replace(source, matrix=read_matrix(files.features))


def read_source_edges(source: GraphSource, ids: pl.Series) -> GraphSource:
    """The source with its edges, read from their own file if the file of nodes has none or another was named."""
    files = source.files
    if files.edges is None:
        if source.edges is not None:
            return source
        raise DataError(f"{files.nodes} holds nodes only, and --edges is missing; name the file of edges")
    known = set(ids.to_list())
    table, recognised = read_edges(files.edges, separator=files.separator, is_node=known.__contains__)
    if set(DGL_ENDS) <= set(table.frame.columns) and files.source is None and files.target is None:
        files = replace(files, source=DGL_ENDS[0], target=DGL_ENDS[1])
    formats = (*source.formats, recognised) if recognised else source.formats
    return replace(source, edges=table, files=files, formats=formats)


def given_splits(files: GraphFiles) -> int:
    """How many splits come with the files, in columns or as masks."""
    if files.split_column is not None:
        return 1
    if is_graph_folder(files.nodes):
        return read_facts(files.nodes).splits
    nodes = _with_folder(files).nodes
    if nodes.suffix.lower() in READERS:
        return count_splits(nodes)
    content = read_bytes(nodes)
    names = read_parquet(nodes, content).frame.columns if is_parquet(content) else _first_line(content)
    return int(all(name in names for name in MASK_COLUMNS))


def _first_line(content: bytes) -> str:
    return content.lstrip()[:LONGEST_HEADER].partition(b"\n")[0].decode("utf-8", "replace")


def _with_folder(files: GraphFiles) -> GraphFiles:
    """For a folder as DGL writes it the files in it; the edges beside the nodes if they have DGL's columns."""
    nodes = files.nodes / "nodes.csv" if files.nodes.is_dir() else files.nodes
    beside = nodes.parent / "edges.csv"
    if files.edges is not None or nodes.name != "nodes.csv" or not beside.is_file():
        return replace(files, nodes=nodes)
    header = _first_line(read_bytes(beside))
    return replace(files, nodes=nodes, edges=beside if all(name in header for name in DGL_ENDS) else None)


def _from_table(files: GraphFiles) -> GraphSource:
    table = read_table(files.nodes, separator=files.separator)
    columns, formats = table.frame.columns, tuple[str, ...]()
    if DGL_ID in columns and files.id == ID and ID not in columns:
        files, formats = replace(files, id=DGL_ID), ("DGL's CSV (node_id, src_id, dst_id)",)
    table, masks = take_masks(table)
    table, lists = take_lists(table, skip={files.id, files.label, files.split_column, *files.ignore})
    if files.label is None:
        files = replace(files, label=label_column(table.frame.columns))
    return GraphSource(table, files, matrix=lists, masks=masks, formats=formats)


def _from_arrays(files: GraphFiles, arrays: Arrays) -> GraphSource:
    if (found := recognise(files.nodes, arrays)) is not None:
        return _from_graph_file(files, found)
    if files.nodes.suffix.lower() == ".npz":
        return _from_columns(files, arrays)
    held = ", ".join(f"{name} {list(getattr(array, 'shape', ()))}" for name, array in list(arrays.items())[:12])
    known = "; ".join(each.title for each in FORMATS)
    raise DataError(f"{files.nodes} holds {held or 'no arrays'}, which is no graph that is known here: {known}")


def _from_graph_file(files: GraphFiles, found: GraphFile) -> GraphSource:
    graph, name = found.graph, files.nodes.name
    height = len(next(iter(graph.columns.values())))
    if not height:
        raise DataError(f"{files.nodes} has no nodes")
    nodes = Table(name, pl.DataFrame({ID: np.arange(height), **graph.columns}), first_row=0)
    ends = {"source": graph.pairs[0], "target": graph.pairs[1]}
    if graph.weight is not None and graph.weight.shape == ends["source"].shape and (graph.weight != 1).any():
        ends[WEIGHT] = graph.weight
    edges = Table(f"{name}, edges", pl.DataFrame(ends), first_row=0)
    files = replace(
        files,
        label=files.label or graph.label,
        weight=files.weight or (WEIGHT if WEIGHT in ends and files.edges is None else None),
        categorical=tuple(dict.fromkeys((*files.categorical, *_other(graph.categorical, files)))),
    )
    matrix = None if graph.features is None else to_features(files.nodes, graph.features)
    title = f"{files.nodes.suffix[1:].lower()} with {found.title}"
    return GraphSource(nodes, files, edges, matrix, found.masks, (title,), found.left_out)


def _other(categorical: tuple[str, ...], files: GraphFiles) -> list[str]:
    return [name for name in categorical if name not in (files.label, *files.ignore)]


def _from_columns(files: GraphFiles, arrays: Arrays) -> GraphSource:
    """An npz file of nodes: 1-D arrays are columns, a 2-D array is a matrix."""
    path = files.nodes
    if not arrays:
        read_npz(path, read_bytes(path))  # Its error says what is wrong with pickled objects.
    columns = {name: array for name, array in arrays.items() if array.ndim == 1}
    matrices = [name for name, array in arrays.items() if array.ndim == 2]
    if len(matrices) > 1:
        raise DataError(f"{path} has several matrices ({', '.join(matrices[:12])}); keep one, or name columns")
    if not columns and not matrices:
        raise DataError(f"{path} has neither columns (1-D arrays) nor a matrix (a 2-D array); add some")
    height = arrays[matrices[0]].shape[0] if matrices else next(iter(columns.values())).size
    columns.setdefault(files.id, np.arange(height))
    for name, column in columns.items():
        if column.size != height:
            raise DataError(f"{path}: column {name!r} has {column.size} entries, others have {height}")
        if column.dtype.kind not in "biufUS":
            raise DataError(f"{path}: column {name!r} holds {column.dtype}, not numbers or text")
    if not height:
        raise DataError(f"{path} has no rows")
    plain = {name: column.astype(str) if column.dtype.kind == "S" else column for name, column in columns.items()}
    table = Table(path.name, pl.DataFrame({name: column.tolist() for name, column in plain.items()}))
    matrix = to_features(path, arrays[matrices[0]]) if matrices else None
    return GraphSource(table, files, matrix=matrix)
