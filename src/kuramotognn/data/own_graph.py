"""A graph from the user's files: a table of nodes and a table of edges become a :class:`NodeDataset`."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import torch

from kuramotognn.data.columns import Category, ColumnEncoder, Columns, select_rows
from kuramotognn.data.errors import DataError
from kuramotognn.data.graph_files import GraphFiles
from kuramotognn.data.node_dataset import UNLABELLED, NodeDataset
from kuramotognn.data.splits import Split
from kuramotognn.data.table_files import Table, read_arrays, read_bytes, read_matrix, read_table
from kuramotognn.features import Features, stack_rows
from kuramotognn.typing import EdgeIndex, EdgeWeight, Labels

NUMERIC_SHARE = 0.5
"""A text column is numeric if a larger share of its cells are numbers; the other cells are then errors."""
MAX_CATEGORIES = 100
PARTS = {"train": "train", "validation": "validation", "val": "validation", "valid": "validation", "test": "test"}

Codes = npt.NDArray[np.int64]


@dataclass
class GraphSummary:
    """How a graph's files were interpreted."""

    nodes: int = 0
    columns: dict[str, str] = field(default_factory=dict)
    classes: dict[str, int] = field(default_factory=dict)
    unlabelled: int = 0
    matrix: str | None = None
    parts: dict[str, int] = field(default_factory=dict)
    edges: int = 0
    directed: bool = False
    repeated: int = 0
    loops: int = 0
    dropped: int = 0
    isolated: int = 0
    weights: tuple[float, float] | None = None
    beside: int = 0
    warnings: list[str] = field(default_factory=list)


def read_nodes_edges(nodes: Path | str, edges: Path | str, *, directed: bool = False, **meaning: Any) -> NodeDataset:
    """Read a graph from a file of nodes and a file of edges; ``meaning`` are attributes of :class:`GraphFiles`."""
    return read_graph(GraphFiles(Path(nodes), Path(edges), **meaning), directed=directed)[0]


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
    table, matrix = _read_nodes(files)
    count = table.frame.height
    if beside is not None:
        table, matrix = _joined(table, matrix, *_read_nodes(beside), files.id)
    edges = read_table(files.edges, separator=files.separator)
    dataset, summary = assemble(table, edges, files, matrix=matrix, encoder=encoder, directed=directed)
    summary.beside = table.frame.height - count
    return dataset, summary


def assemble(
    table: Table,
    edges: Table,
    files: GraphFiles,
    *,
    matrix: Features | None = None,
    encoder: ColumnEncoder | None = None,
    directed: bool = False,
) -> tuple[NodeDataset, GraphSummary]:
    """Build a data set from a table of nodes and a table of edges."""
    summary = GraphSummary(nodes=table.frame.height, directed=directed)
    ids = _ids(table, files.id)
    if matrix is not None:
        if matrix.shape[0] != summary.nodes:
            raise DataError(
                f"the feature matrix has {matrix.shape[0]} rows but {table.name} has {summary.nodes} nodes; "
                "it must have one row per node, in the same order"
            )
        summary.matrix = f"{matrix.shape[1]} columns"
    # Nodes to predict need no labels.
    label = files.label if encoder is None or files.label in table.frame.columns else None
    y, class_names = _labels(table, label, summary, needed=encoder is None)
    columns = _columns(table, files, matrix, encoder, summary)
    remedy = "" if encoder is None else ", keep those of the run with --with-training-nodes"
    edge_index, edge_weight = _edges(edges, table, ids, files, summary, remedy)
    dataset = NodeDataset(
        name=files.nodes.stem,
        x=ColumnEncoder.fit(columns, torch.arange(summary.nodes), standardise=False).apply(columns),
        edge_index=edge_index,
        edge_weight=edge_weight,
        y=y,
        class_names=class_names,
        node_ids=ids.to_list(),
        given_splits=() if files.split_column is None else (_split(table, files.split_column, y, summary),),
        columns=columns,
    )
    if not dataset.num_features:
        raise DataError(f"{table.name} has no column of features beside ids and labels; add one or pass --features")
    return dataset if directed else dataset.undirected(), summary


def _joined(
    table: Table, matrix: Features | None, more: Table, more_matrix: Features | None, id_column: str
) -> tuple[Table, Features | None]:
    ids = table.texts(id_column, "ids; name it with --id")
    new = (~more.texts(id_column, "ids").is_in(ids.implode())).arg_true()
    frame = pl.concat([table.frame, more.frame[new.to_list()]], how="diagonal_relaxed")
    if matrix is not None and more_matrix is not None and matrix.shape[1] == more_matrix.shape[1]:
        rows = torch.from_numpy(new.to_numpy().astype(np.int64))
        matrix = stack_rows(matrix, select_rows(more_matrix, rows))
    return replace(table, frame=frame), matrix


def _read_nodes(files: GraphFiles) -> tuple[Table, Features | None]:
    if files.nodes.suffix.lower() == ".npz":
        table, matrix = _read_npz_nodes(files)
    else:
        table, matrix = read_table(files.nodes, separator=files.separator), None
    return table, matrix if files.features is None else read_matrix(files.features)


def _read_npz_nodes(files: GraphFiles) -> tuple[Table, Features | None]:
    arrays = read_arrays(files.nodes, read_bytes(files.nodes))
    columns = {name: array for name, array in arrays.items() if array.ndim == 1}
    matrices = [name for name, array in arrays.items() if array.ndim == 2]
    if len(matrices) > 1:
        raise DataError(f"{files.nodes} has several matrices ({', '.join(matrices)}); keep one, or name columns")
    if not columns and not matrices:
        raise DataError(f"{files.nodes} has neither columns (1-D arrays) nor a matrix (a 2-D array); add some")
    height = arrays[matrices[0]].shape[0] if matrices else next(iter(columns.values())).size
    columns.setdefault(files.id, np.arange(height))
    for name, column in columns.items():
        if column.size != height:
            raise DataError(f"{files.nodes}: column {name!r} has {column.size} entries, others have {height}")
        if column.dtype.kind not in "biufUS":
            raise DataError(f"{files.nodes}: column {name!r} holds {column.dtype}, not numbers or text")
    if not height:
        raise DataError(f"{files.nodes} has no rows")
    plain = {name: column.astype(str) if column.dtype.kind == "S" else column for name, column in columns.items()}
    table = Table(files.nodes.name, pl.DataFrame({name: column.tolist() for name, column in plain.items()}))
    return table, read_matrix(files.nodes) if matrices else None


def _ids(table: Table, name: str) -> pl.Series:
    ids = table.texts(name, "ids; name it with --id")
    empty = ids.is_null().arg_true()
    if empty.len():
        raise DataError(f"{table.place(int(empty[0]), name)}: the id is empty; every node needs one")
    repeated = (~ids.is_first_distinct()).arg_true()
    if repeated.len():
        row = int(repeated[0])
        first = int((ids == ids[row]).arg_true()[0]) + table.first_row
        raise DataError(f"{table.place(row, name)}: id {ids[row]!r} was used in row {first} already; ids must differ")
    return ids


def _labels(table: Table, name: str | None, summary: GraphSummary, *, needed: bool) -> tuple[Labels, tuple[str, ...]]:
    if name is None:
        summary.unlabelled = summary.nodes
        return torch.full((summary.nodes,), UNLABELLED), ()
    texts = table.texts(name, "labels; name it with --label")
    names = sorted(texts.drop_nulls().unique().to_list())
    if all(re.fullmatch("-?[0-9]{1,17}", value) for value in names):
        names.sort(key=int)
    codes = _places(texts, names)
    summary.unlabelled = int((codes < 0).sum())
    counts = np.bincount(codes[codes >= 0], minlength=len(names)).tolist()
    summary.classes = dict(zip(names, counts, strict=True))
    if needed:
        _check_classes(f"{table.name}, column {name!r}", summary)
    return torch.from_numpy(codes), tuple(names)


def _check_classes(place: str, summary: GraphSummary) -> None:
    names = list(summary.classes)
    if not names:
        raise DataError(f"{place}: no node has a label, so there is nothing to learn from; label some nodes")
    if len(names) == 1:
        summary.warnings.append(f"all labelled nodes have the class {names[0]!r}: there is nothing to learn")
    if len(names) > max(20, summary.nodes // 2):
        raise DataError(
            f"{place} has {len(names)} different labels for {summary.nodes} nodes, as a measurement or a name would; "
            "choose a column of classes"
        )
    if small := [name for name, count in summary.classes.items() if count < 3]:
        count = f"{summary.classes[small[0]]} labelled node(s)"
        summary.warnings.append(f"class {small[0]!r} has {count}; drawn splits need at least 3 of each class")


def _columns(
    table: Table, files: GraphFiles, matrix: Features | None, encoder: ColumnEncoder | None, summary: GraphSummary
) -> Columns:
    roles = {files.id: "id", files.label: "label", files.split_column: "split"}
    summary.columns = {name: role for name, role in roles.items() if name}
    for name in (*files.ignore, *files.categorical):
        table.column(name, "named in --ignore or --categorical")
    names = [name for name in table.frame.columns if name not in roles and name not in files.ignore]
    if encoder is not None:
        wanted = [*encoder.means, *encoder.categories]
        for name in wanted:
            if name not in names:
                table.column(name, "the model was trained with it")
        names = wanted
    numbers: dict[str, npt.NDArray[np.float64]] = {}
    categories: dict[str, Category] = {}
    for name in names:
        forced = name in (files.categorical if encoder is None else (*encoder.categories, *files.categorical))
        if forced or (encoder is None and not _is_numeric(table, name)):
            categories[name] = _category(table, name, forced)
            summary.columns[name] = f"category, {len(categories[name].names)} values"
        else:
            numbers[name] = table.numbers(name, "a feature")
            summary.columns[name] = "number"
    for name in table.frame.columns:
        summary.columns.setdefault(name, "left out")
    values = np.stack(list(numbers.values()), axis=1) if numbers else np.zeros((summary.nodes, 0))
    return Columns(torch.from_numpy(values), tuple(numbers), categories, matrix)


def _is_numeric(table: Table, name: str) -> bool:
    column = table.frame[name]
    if column.dtype != pl.String:
        return column.dtype.is_numeric() or column.dtype == pl.Boolean
    filled = column.str.strip_chars() != ""
    cells, numbers = int(filled.sum() or 0), int((table.maybe_numbers(name).is_not_null() & filled).sum() or 0)
    return cells == 0 or numbers > NUMERIC_SHARE * cells


def _category(table: Table, name: str, forced: bool) -> Category:
    texts = table.texts(name, "categories")
    names = sorted(texts.drop_nulls().unique().to_list())
    if not forced and len(names) > min(MAX_CATEGORIES, max(10, texts.len() // 2)):
        raise DataError(
            f"{table.name}, column {name!r} is text with {len(names)} different values, such as {names[0][:40]!r}; "
            f"leave it out with --ignore {name!r}, take it as categories with --categorical {name!r}, or count its "
            "words and pass them as a matrix with --features"
        )
    return Category(torch.from_numpy(_places(texts, names)), tuple(names))


def _edges(
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
            f"{weight[there]:g} in row {rows[there] + edges.first_row}; keep one"
        )
    return edge_index, torch.from_numpy(weight[first].astype(np.float32))


def _ends(edges: Table, nodes: Table, ids: pl.Series, files: GraphFiles, remedy: str) -> tuple[Codes, Codes]:
    """The ends ``[2, E]`` of the edges between known nodes, and the rows of these edges."""
    columns = edges.frame.columns
    if len(columns) < 2 and not (files.source and files.target):
        raise DataError(f"{edges.name} must have two columns of node ids, it has {columns}")
    names = [files.source or columns[0], files.target or columns[1]]
    ends = np.stack([_places(edges.texts(name, "ends of edges"), ids) for name in names])
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


def _split(table: Table, name: str, y: Labels, summary: GraphSummary) -> Split:
    texts = table.texts(name, "parts; name it with --split-column").str.to_lowercase()
    wrong = (texts.is_not_null() & ~texts.is_in(list(PARTS))).arg_true()
    if wrong.len():
        row = int(wrong[0])
        raise DataError(
            f"{table.place(row, name)}: {texts[row]!r} is not a part of a split; write train, validation, test or "
            "nothing"
        )
    part = np.array([PARTS.get(value, "") for value in texts.to_list()])
    summary.parts = dict(Counter(part[part != ""].tolist()))
    unlabelled = np.flatnonzero((part != "") & (y.numpy() < 0))
    if unlabelled.size:
        row = int(unlabelled[0])
        place = table.place(row, name)
        raise DataError(f"{place}: a {part[row]} node needs a label; empty the cell to predict the node")
    nodes = {value: torch.from_numpy(np.flatnonzero(part == value)) for value in ("train", "validation", "test")}
    for value, chosen in nodes.items():
        if not chosen.numel():
            raise DataError(f"{table.name}, column {name!r}: no node is {value!r}; all three parts need nodes")
    return Split.of(nodes.values(), "own-split", 0)


def _places(values: pl.Series, among: list[str] | pl.Series) -> Codes:
    """The position of each value among different ones, −1 for others."""
    positions = pl.int_range(len(among), eager=True)
    return values.replace_strict(among, positions, default=-1, return_dtype=pl.Int64).to_numpy(writable=True)
