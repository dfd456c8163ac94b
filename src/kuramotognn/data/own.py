"""One's own graph: a table of nodes and a table of edges become a :class:`NodeDataset`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl
import torch

from kuramotognn.data.columns import Category, Columns, Encoder
from kuramotognn.data.errors import DataError
from kuramotognn.data.node_dataset import UNLABELLED, NodeDataset
from kuramotognn.data.splits import Split
from kuramotognn.data.tables import Table, read_arrays, read_matrix, read_table
from kuramotognn.features import Features, SparseFeatures, stack_rows
from kuramotognn.typing import EdgeIndex, EdgeWeight, Labels

MOSTLY = 0.5
"""A column of text in which more than this share of cells are numbers is numeric, and the other cells are mistakes."""

MOST_CATEGORIES = 100
PARTS = {"train": "train", "validation": "validation", "val": "validation", "valid": "validation", "test": "test"}

Codes = npt.NDArray[np.int64]


@dataclass(frozen=True)
class GraphFiles:
    """Where a graph is, and what its columns mean.

    Attributes:
        nodes: CSV, Parquet or npz; a row a node.
        edges: CSV or Parquet; a row an edge between two ids.
        label: column of classes, empty where they are not known; None to read no labels.
        id: column of the names by which edges refer to nodes.
        split: column that says ``train``, ``validation`` or ``test``.
        source: column with the first end of an edge (default: the first column).
        target: column with the second end (default: the second column).
        weight: column of edge weights.
        features: npz with a matrix of features, a row a node in the order of ``nodes``.
        directed: whether an edge acts from source to target only.
        categorical: columns to take as categories, whatever they look like.
        ignore: columns to leave out.
        separator: what stands between the cells of a CSV file.
        allow_missing: drop edges whose ends are not among the nodes.
    """

    nodes: Path
    edges: Path
    label: str | None = None
    id: str = "id"
    split: str | None = None
    source: str | None = None
    target: str | None = None
    weight: str | None = None
    features: Path | None = None
    directed: bool = False
    categorical: Sequence[str] = ()
    ignore: Sequence[str] = ()
    separator: str = ","
    allow_missing: bool = False


@dataclass
class Understood:
    """What was made of the files, to be read back to the user."""

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


def read_nodes_edges(nodes: Path | str, edges: Path | str, **meaning: object) -> NodeDataset:
    """Read a graph from a file of nodes and a file of edges; see :class:`GraphFiles` for what can be said of them."""
    features = meaning.pop("features", None)
    matrix = None if features is None else Path(str(features))
    return read_graph(GraphFiles(Path(nodes), Path(edges), features=matrix, **meaning))[0]  # type: ignore[arg-type]


def read_graph(
    files: GraphFiles, encoder: Encoder | None = None, *, beside: GraphFiles | None = None
) -> tuple[NodeDataset, Understood]:
    """Read a graph and say what was understood.

    Args:
        files: where it is.
        encoder: of a model that will be applied; columns are then read as that model needs them.
        beside: files whose nodes are added behind those of ``files``, unless these have them already.

    Raises:
        DataError: something is wrong with the files; the sentence says where and what to do.
    """
    table, matrix = _read_node_file(files)
    count = table.frame.height
    if beside is not None:
        table, matrix = _joined(table, matrix, *_read_node_file(beside), files.id)
    edges = read_table(files.edges, separator=files.separator)
    dataset, understood = assemble(table, edges, files, matrix=matrix, encoder=encoder)
    understood.beside = table.frame.height - count
    return dataset, understood


def assemble(
    table: Table,
    edges: Table,
    files: GraphFiles,
    *,
    matrix: Features | None = None,
    encoder: Encoder | None = None,
) -> tuple[NodeDataset, Understood]:
    """Make a data set of tables, wherever they come from."""
    known = Understood(nodes=table.frame.height, directed=files.directed)
    ids = _ids(table, files.id)
    if matrix is not None:
        if matrix.shape[0] != known.nodes:
            raise DataError(
                f"the feature matrix has {matrix.shape[0]} rows but {table.name} has {known.nodes} nodes; "
                "it must have a row for each, in the same order"
            )
        known.matrix = f"{matrix.shape[1]} columns"
    label = files.label
    if encoder is not None and label not in table.frame.columns:
        label = None  # Nodes to predict need no labels.
    y, class_names = _labels(table, label, known, needed=encoder is None)
    columns = _columns(table, files, matrix, encoder, known)
    remedy = "" if encoder is None else ", keep those of the run with --with-training-nodes"
    edge_index, edge_weight = _edges(edges, table, ids, files, known, remedy)
    splits = (_split(table, files.split, y, known),) if files.split is not None else ()
    dataset = NodeDataset(
        name=files.nodes.stem,
        x=Encoder.fit(columns, torch.arange(known.nodes), standardise=False).apply(columns),
        edge_index=edge_index,
        edge_weight=edge_weight,
        y=y,
        class_names=class_names,
        node_ids=ids.to_list(),
        given_splits=splits,
        columns=columns,
    )
    if not dataset.num_features:
        raise DataError(f"{table.name} has no column of features beside ids and labels; add one or pass --features")
    return dataset, known


def _joined(
    table: Table, matrix: Features | None, more: Table, more_matrix: Features | None, id_column: str
) -> tuple[Table, Features | None]:
    ids = table.texts(id_column, "ids; name it with --id")
    new = (~more.texts(id_column, "ids").is_in(ids.implode())).arg_true()
    frame = pl.concat([table.frame, more.frame[new.to_list()]], how="diagonal_relaxed")
    rows = torch.from_numpy(new.to_numpy().astype(np.int64))
    if matrix is None or more_matrix is None or matrix.shape[1] != more_matrix.shape[1]:
        return replace(table, frame=frame), matrix
    added = more_matrix.rows(rows) if isinstance(more_matrix, SparseFeatures) else more_matrix[rows]
    return replace(table, frame=frame), stack_rows(matrix, added)


def _read_node_file(files: GraphFiles) -> tuple[Table, Features | None]:
    table, matrix = _read_columns(files)
    return table, matrix if files.features is None else read_matrix(files.features)


def _read_columns(files: GraphFiles) -> tuple[Table, Features | None]:
    if files.nodes.suffix.lower() != ".npz":
        return read_table(files.nodes, separator=files.separator), None
    arrays = read_arrays(files.nodes)
    columns = {name: array for name, array in arrays.items() if array.ndim == 1}
    matrices = [name for name, array in arrays.items() if array.ndim == 2]
    if len(matrices) > 1:
        raise DataError(f"{files.nodes} has several matrices ({', '.join(matrices)}); keep one, or name columns")
    if not columns and not matrices:
        raise DataError(f"{files.nodes} has neither columns (1-D arrays) nor a matrix (a 2-D array)")
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
        first = int((ids == ids[row]).arg_true()[0])
        raise DataError(
            f"{table.place(row, name)}: id {ids[row]!r} was used in row {first + table.first_row} already; "
            "ids must differ"
        )
    return ids


def _labels(table: Table, name: str | None, known: Understood, *, needed: bool) -> tuple[Labels, tuple[str, ...]]:
    if name is None:
        known.unlabelled = known.nodes
        return torch.full((known.nodes,), UNLABELLED), ()
    texts = table.texts(name, "labels; name it with --label")
    names = sorted(texts.drop_nulls().unique().to_list())
    if all(_is_integer(value) for value in names):
        names.sort(key=int)
    if not names and needed:
        raise DataError(f"{table.name}, column {name!r}: no node has a label, so there is nothing to learn from")
    codes = _places(texts, names)
    known.unlabelled = int((codes < 0).sum())
    counts = np.bincount(codes[codes >= 0], minlength=len(names))
    known.classes = {value: int(count) for value, count in zip(names, counts, strict=True)}
    if needed and len(names) == 1:
        known.warnings.append(f"all labelled nodes are {names[0]!r}: there is nothing to tell apart")
    if needed and len(names) > max(20, known.nodes // 2):
        raise DataError(
            f"{table.name}, column {name!r} has {len(names)} different labels for {known.nodes} nodes; "
            "is it a number to be predicted, or a name? Classes must repeat"
        )
    small = [value for value, count in known.classes.items() if count < 3]
    if small and needed:
        known.warnings.append(
            f"class {small[0]!r} has {known.classes[small[0]]} labelled node(s); drawn splits need at "
            "least 3 of each class"
        )
    return torch.from_numpy(codes), tuple(names)


def _columns(
    table: Table, files: GraphFiles, matrix: Features | None, encoder: Encoder | None, known: Understood
) -> Columns:
    roles = {
        files.id: "id",
        **({files.label: "label"} if files.label else {}),
        **({files.split: "split"} if files.split else {}),
    }
    known.columns = dict(roles)
    for name in (*files.ignore, *files.categorical):
        table.column(name, "named in --ignore or --categorical")
    names = [name for name in table.frame.columns if name not in roles and name not in files.ignore]
    if encoder is not None:
        for name in (*encoder.means, *encoder.categories):
            if name not in names:
                table.column(name, "the model was trained with it")
        names = [*encoder.means, *encoder.categories]
    numbers: dict[str, npt.NDArray[np.float64]] = {}
    categories: dict[str, Category] = {}
    for name in names:
        wanted = (encoder is not None and name in encoder.categories) or name in files.categorical
        if wanted or (encoder is None and not _is_numeric(table, name)):
            categories[name] = _category(table, name, wanted)
            known.columns[name] = f"category, {len(categories[name].names)} values"
        else:
            numbers[name] = table.numbers(name, "a feature")
            known.columns[name] = "number"
    for name in table.frame.columns:
        known.columns.setdefault(name, "left out")
    values = np.stack(list(numbers.values()), axis=1) if numbers else np.zeros((known.nodes, 0))
    return Columns(torch.from_numpy(values), tuple(numbers), categories, matrix)


def _is_numeric(table: Table, name: str) -> bool:
    column = table.frame[name]
    if column.dtype != pl.String:
        return column.dtype.is_numeric() or column.dtype == pl.Boolean
    filled = column.str.strip_chars() != ""
    cells, numbers = int(filled.sum() or 0), int((table.maybe_numbers(name).is_not_null() & filled).sum() or 0)
    return cells == 0 or numbers > MOSTLY * cells


def _category(table: Table, name: str, wanted: bool) -> Category:
    texts = table.texts(name, "categories")
    names = sorted(texts.drop_nulls().unique().to_list())
    limit = min(MOST_CATEGORIES, max(10, texts.len() // 2))
    if not wanted and len(names) > limit:
        raise DataError(
            f"{table.name}, column {name!r} is text with {len(names)} different values, such as "
            f"{names[0][:40]!r}; leave it "
            f"out with --ignore {name!r}, take it as categories with --categorical {name!r}, or count its "
            "words and pass "
            "them as a matrix with --features"
        )
    return Category(torch.from_numpy(_places(texts, names)), tuple(names))


def _edges(
    edges: Table, nodes: Table, ids: pl.Series, files: GraphFiles, known: Understood, remedy: str
) -> tuple[EdgeIndex, EdgeWeight | None]:
    if len(edges.frame.columns) < 2 and not (files.source and files.target):
        raise DataError(f"{edges.name} must have two columns of node ids, it has {edges.frame.columns}")
    ends = [files.source or edges.frame.columns[0], files.target or edges.frame.columns[1]]
    codes = [_places(edges.texts(name, "ends of edges"), ids) for name in ends]
    known.edges = edges.frame.height
    missing = (codes[0] < 0) | (codes[1] < 0)
    if missing.any() and not files.allow_missing:
        row = int(missing.argmax())
        end = 0 if codes[0][row] < 0 else 1
        cell = edges.frame[ends[end]][row]
        if cell is None or not str(cell).strip():
            raise DataError(f"{edges.place(row, ends[end])}: the id is empty; an edge needs two ends")
        raise DataError(
            f"{edges.place(row)}: node {str(cell)!r} is not in {nodes.name}; add it{remedy}, or drop such "
            "edges with --allow-missing"
        )
    weight = _weights(edges, files.weight, known)
    known.dropped = int(missing.sum())
    source, target = (end[~missing] for end in codes)
    if weight is not None:
        weight = weight[~missing]
    rows = np.flatnonzero(~missing)
    known.loops = int((source == target).sum())
    known.isolated = known.nodes - int(np.unique(np.concatenate([source, target])).size)
    if not files.directed:
        source, target = np.minimum(source, target), np.maximum(source, target)
    key, first, place = np.unique(source * known.nodes + target, return_index=True, return_inverse=True)
    known.repeated = source.size - key.size
    if weight is not None:
        differs = np.flatnonzero(weight != weight[first[place]])
        if differs.size:
            here, there = int(differs[0]), int(first[place[differs[0]]])
            raise DataError(
                f"{edges.place(int(rows[here]))}: the edge between {ids[int(source[here])]!r} and "
                f"{ids[int(target[here])]!r} "
                f"has weight {weight[here]:g}, but {weight[there]:g} in row "
                f"{int(rows[there]) + edges.first_row}; keep one"
            )
        weight = weight[first]
    pairs = torch.from_numpy(np.stack([source[first], target[first]]))
    strength = None if weight is None else torch.from_numpy(weight.astype(np.float32))
    if files.directed:
        return pairs, strength
    different = pairs[0] != pairs[1]
    back = pairs.flip(0)[:, different]
    return (
        torch.cat([pairs, back], dim=1),
        None if strength is None else torch.cat([strength, strength[different]]),
    )


def _weights(edges: Table, name: str | None, known: Understood) -> npt.NDArray[np.float64] | None:
    if name is None:
        return None
    weight = edges.numbers(name, "weights; name it with --weight")
    negative = np.flatnonzero((weight < 0) | (weight > np.finfo(np.float32).max))
    if negative.size:
        row = int(negative[0])
        raise DataError(
            f"{edges.place(row, name)}: weight {weight[row]:g} is out of range; weights must not be negative"
        )
    known.weights = (float(weight.min()), float(weight.max()))
    return weight


def _split(table: Table, name: str, y: Labels, known: Understood) -> Split:
    texts = table.texts(name, "parts; name it with --split-column").str.to_lowercase()
    wrong = (texts.is_not_null() & ~texts.is_in(list(PARTS))).arg_true()
    if wrong.len():
        row = int(wrong[0])
        raise DataError(
            f"{table.place(row, name)}: {texts[row]!r} is no part of a split; write train, validation, test or nothing"
        )
    part = np.array([PARTS.get(value, "") for value in texts.to_list()])
    known.parts = dict(Counter(part[part != ""].tolist()))
    unlabelled = np.flatnonzero((part != "") & (y.numpy() < 0))
    if unlabelled.size:
        row = int(unlabelled[0])
        raise DataError(
            f"{table.place(row, name)}: a {part[row]} node needs a label; empty the cell to predict the node"
        )
    train, validation, test = (
        torch.from_numpy(np.flatnonzero(part == value)) for value in ("train", "validation", "test")
    )
    for value, nodes in (("train", train), ("validation", validation), ("test", test)):
        if not nodes.numel():
            raise DataError(f"{table.name}, column {name!r}: no node is {value!r}; all three parts need nodes")
    return Split(train, validation, test, "own-split", 0)


def _places(values: pl.Series, among: Collection[str] | pl.Series) -> Codes:
    """The place of each value in a collection of different ones, −1 where it is not there."""
    index = pl.DataFrame(
        {"value": pl.Series(list(among) if not isinstance(among, pl.Series) else among, dtype=pl.String)}
    )
    found = (
        pl.DataFrame({"value": values})
        .join(index.with_row_index("place"), on="value", how="left", maintain_order="left")["place"]
        .cast(pl.Int64)
    )
    return found.fill_null(-1).to_numpy().copy()


def _is_integer(text: str) -> bool:
    return text.lstrip("-").isascii() and text.lstrip("-").isdigit() and len(text) < 18
