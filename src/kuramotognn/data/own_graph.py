"""A graph from the user's files: nodes and edges in any known format become a :class:`NodeDataset`."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch

from kuramotognn.data.columns import ColumnEncoder
from kuramotognn.data.data_error import DataError
from kuramotognn.data.edge_tables import join_edges
from kuramotognn.data.graph_files import GraphFiles
from kuramotognn.data.graph_folder import is_graph_folder, read_folder
from kuramotognn.data.graph_source import GraphSource, read_source, read_source_edges
from kuramotognn.data.graph_summary import GraphSummary
from kuramotognn.data.labels import label_candidates, read_labels
from kuramotognn.data.node_dataset import NodeDataset
from kuramotognn.data.node_tables import column_split, mask_splits, read_columns, read_ids
from kuramotognn.data.splits import Split
from kuramotognn.data.table_files import Table
from kuramotognn.features import Features, select_rows, stack_rows
from kuramotognn.typing import Labels


def read_nodes_edges(
    nodes: Path | str, edges: Path | str | None = None, *, directed: bool = False, **meaning: Any
) -> NodeDataset:
    """Read a graph from its files; ``meaning`` are attributes of :class:`GraphFiles`.

    Args:
        nodes: file of nodes, or of a whole graph.
        edges: file of edges, unless the other one holds them.
        directed: whether edges are one-way, from source to target.
        **meaning: further attributes of :class:`GraphFiles`, such as ``label``.
    """
    files = GraphFiles(Path(nodes), None if edges is None else Path(edges), **meaning)
    return read_graph(files, directed=directed)[0]


def read_graph(
    files: GraphFiles, encoder: ColumnEncoder | None = None, *, beside: GraphFiles | None = None, directed: bool = False
) -> tuple[NodeDataset, GraphSummary]:
    """Read a graph and summarise how its files were interpreted.

    Args:
        files: the files.
        encoder: the encoder of a trained model that will be applied; columns are then read as it needs them.
        beside: files of further nodes, added after those of ``files`` unless their ids are already there.
        directed: whether edges are one-way, from source to target.

    Raises:
        DataError: a file cannot be used; the message names the place and the remedy.
    """
    if is_graph_folder(files.nodes):
        if beside is not None:
            raise DataError(f"{files.nodes} is a graph folder, whose nodes cannot be joined with those of a run")
        return _from_folder(files, settled=encoder is None, directed=directed)
    if beside is not None and is_graph_folder(beside.nodes):
        raise DataError(f"{beside.nodes} is a graph folder; --with-training-nodes needs a run on tables of nodes")
    source = read_source(files)
    count = source.nodes.frame.height
    if beside is not None:
        source = _joined(source, read_source(beside))
    dataset, summary = assemble(source, encoder=encoder, directed=directed)
    summary.beside = source.nodes.frame.height - count
    return dataset, summary


def _from_folder(files: GraphFiles, *, settled: bool, directed: bool) -> tuple[NodeDataset, GraphSummary]:
    """The graph of a folder; where the meaning of columns is not that of a run, none may be given."""
    plain, names = (
        GraphFiles(files.nodes),
        [field.name for field in fields(files)] if settled else ["edges", "features"],
    )
    given = [name for name in names if getattr(files, name) != getattr(plain, name)]
    if given:
        flag = given[0].replace("_", "-")
        raise DataError(f"{files.nodes} is a graph folder: its files are settled; leave out --{flag} or convert again")
    dataset, summary = read_folder(files.nodes)
    if summary.directed != directed:
        kind, remedy = ("one-way", "pass") if summary.directed else ("undirected", "leave out")
        raise DataError(f"the edges of the graph folder {files.nodes} are {kind}; {remedy} --directed or convert again")
    return dataset, summary


def assemble(
    source: GraphSource, *, encoder: ColumnEncoder | None = None, directed: bool = False
) -> tuple[NodeDataset, GraphSummary]:
    """Build a data set from the tables of nodes and edges; the latter are read if they are not there."""
    table, matrix = source.nodes, source.matrix
    ids = read_ids(table, source.files.id)
    source = read_source_edges(source, ids)
    files, edges = source.files, source.edges
    assert edges is not None
    summary = GraphSummary(list(source.formats), nodes=table.frame.height, directed=directed)
    if matrix is not None:
        _check_matrix(matrix, table, ids, summary, own_file=files.features is not None)
    # Nodes to predict need no labels.
    label = files.label if encoder is None or files.label in table.frame.columns else None
    y, class_names = read_labels(table, label, files.unknown, summary, needed=encoder is None)
    columns = read_columns(table, files, matrix, encoder, summary)
    summary.columns |= dict.fromkeys(source.left_out, "left out")
    if label is None and encoder is None:
        _warn_without_label(table, summary)
    remedy = "" if encoder is None else ", keep those of the run with --with-training-nodes"
    edge_index, edge_weight = join_edges(edges, table, ids, files, summary, remedy)
    dataset = NodeDataset(
        name=files.nodes.stem,
        x=ColumnEncoder.fit(columns, torch.arange(summary.nodes), standardise=False).apply(columns),
        edge_index=edge_index,
        edge_weight=edge_weight,
        y=y,
        class_names=class_names,
        node_ids=ids.to_list(),
        given_splits=_splits(source, y, summary) if encoder is None else (),
        columns=columns,
    )
    if not dataset.num_features:
        raise DataError(f"{table.name} has no column of features beside ids and labels; add one or pass --features")
    return dataset if directed else dataset.undirected(), summary


def _splits(source: GraphSource, y: Labels, summary: GraphSummary) -> tuple[Split, ...]:
    if source.files.split_column is not None:
        return (column_split(source.nodes, source.files.split_column, y, summary),)
    return mask_splits(source.nodes.name, source.masks, y, summary) if summary.classes else ()


def _check_matrix(matrix: Features, table: Table, ids: pl.Series, summary: GraphSummary, *, own_file: bool) -> None:
    if matrix.shape[0] != summary.nodes:
        raise DataError(
            f"the feature matrix has {matrix.shape[0]} rows but {table.name} has {summary.nodes} nodes; "
            "it must have one row per node, in the same order"
        )
    summary.matrix = f"{matrix.shape[1]} columns"
    if own_file and _is_permutation(ids):
        summary.warnings.append(
            f"the ids of {table.name} are 0 to {summary.nodes - 1} in another order; row n of the matrix is taken "
            "for the n-th row of the table, not for id n"
        )


def _is_permutation(ids: pl.Series) -> bool:
    """Whether the ids are the numbers from 0 on, but not in this order."""
    numbers = ids.cast(pl.Int64, strict=False).drop_nulls().to_numpy()
    return not np.array_equal(numbers, np.arange(len(ids))) and np.array_equal(np.sort(numbers), np.arange(len(ids)))


def _warn_without_label(table: Table, summary: GraphSummary) -> None:
    features = [name for name, kind in summary.columns.items() if kind.split(",")[0] in ("number", "category")]
    found = ", ".join(repr(name) for name in label_candidates(table, features))
    hint = f"; few different values have {found}" if found else ""
    summary.warnings.append(
        f"no column of classes is named, so that all columns are taken as features; name it with --label{hint}"
    )


def _joined(source: GraphSource, more: GraphSource) -> GraphSource:
    id_column, table, matrix, more_matrix = source.files.id, source.nodes, source.matrix, more.matrix
    ids = table.texts(id_column, "ids; name it with --id")
    new = (~more.nodes.texts(id_column, "ids").is_in(ids.implode())).arg_true()
    frame = pl.concat([table.frame, more.nodes.frame[new.to_list()]], how="diagonal_relaxed")
    if matrix is not None and more_matrix is not None and matrix.shape[1] == more_matrix.shape[1]:
        rows = torch.from_numpy(new.to_numpy().astype(np.int64))
        matrix = stack_rows(matrix, select_rows(more_matrix, rows))
    return replace(source, nodes=replace(table, frame=frame), matrix=matrix, masks={})
