"""A graph as a folder of arrays that are mapped from disk: features, and the CSR with its transpose."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl
import torch
from pydantic import BaseModel, ConfigDict, NonNegativeInt, PositiveInt, TypeAdapter, ValidationError
from torch import Tensor

from kuramotognn._version import __version__
from kuramotognn.atomic_write import PART, write_atomically
from kuramotognn.data.array_files import as_data_error
from kuramotognn.data.columns import Category, ColumnEncoder, Columns
from kuramotognn.data.data_error import DataError
from kuramotognn.data.graph_summary import GraphSummary
from kuramotognn.data.mapped_files import map_array
from kuramotognn.data.node_dataset import NodeDataset
from kuramotognn.data.splits import Split
from kuramotognn.documents import first_problem, parse_json, read_document
from kuramotognn.features import Features, SparseFeatures, check_features, compact_features
from kuramotognn.graph import Graph, Pattern
from kuramotognn.mapped_features import ArrayRows, MappedFeatures

FACTS, IDS = "graph.json", "ids.parquet"
FORMAT = 1
"""Raised when files of a graph folder change their meaning."""
PARTS = ("train", "validation", "test")


class FolderFacts(BaseModel):
    """The content of ``graph.json``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: int
    kuramotognn: str
    name: str
    nodes: PositiveInt
    edges: NonNegativeInt
    directed: bool
    weighted: bool
    numbered: bool
    splits: NonNegativeInt
    classes: tuple[str, ...]
    numbers: tuple[str, ...]
    categories: dict[str, tuple[str, ...]]
    matrix: Literal["none", "dense", "sparse"]
    width: NonNegativeInt
    entries: NonNegativeInt
    summary: dict[str, Any]


@dataclass(frozen=True)
class RowNumbers(Sequence[str]):
    """Names of nodes that are their numbers: takes no memory."""

    nodes: int

    def __len__(self) -> int:
        return self.nodes

    def __getitem__(self, place: Any) -> Any:
        chosen = range(self.nodes)[place]
        return str(chosen) if isinstance(chosen, int) else [str(number) for number in chosen]


def is_graph_folder(path: Path) -> bool:
    """Whether there is a folder that :func:`write_folder` wrote."""
    return (path / FACTS).is_file()


def write_folder(dataset: NodeDataset, summary: GraphSummary, folder: Path, *, self_loops: bool = False) -> FolderFacts:
    """Write a data set as a folder; features on disk are copied in blocks.

    Args:
        dataset: the graph.
        summary: how its files were interpreted.
        folder: to make.
        self_loops: give every node that has no edge to itself one of weight 1.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise DataError(f"{str(folder)!r} exists and is not empty; name another folder")
    folder.parent.mkdir(parents=True, exist_ok=True)
    # What is not complete does not get the name.
    home = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}.", suffix=PART))
    try:
        facts = _write(dataset, summary, home, self_loops=self_loops)
        home.chmod(0o755)
        if folder.is_dir():
            folder.rmdir()
        home.rename(folder)
    except BaseException:
        shutil.rmtree(home, ignore_errors=True)
        raise
    return facts


def summarise(dataset: NodeDataset, *, directed: bool) -> GraphSummary:
    """What `kuramotognn check` would say of a data set that did not come from a user's files."""
    counts = torch.bincount(dataset.y[dataset.y >= 0], minlength=dataset.num_classes).tolist()
    first = dataset.given_splits[0] if dataset.given_splits else None
    return GraphSummary(
        formats=[dataset.name],
        nodes=dataset.num_nodes,
        classes=dict(zip(dataset.class_names, counts, strict=True)),
        unlabelled=int((dataset.y < 0).sum()),
        matrix=f"{dataset.num_features} columns",
        parts={} if first is None else {part: getattr(first, part).numel() for part in PARTS},
        splits=len(dataset.given_splits),
        edges=dataset.edge_index.size(1) if directed else dataset.num_pairs(),
        directed=directed,
        isolated=dataset.num_nodes - torch.unique(dataset.edge_index).numel(),
    )


def _write(dataset: NodeDataset, summary: GraphSummary, home: Path, *, self_loops: bool) -> FolderFacts:
    check_features(dataset.x)
    count, weight = dataset.num_nodes, dataset.edge_weight
    graph = Graph.from_edge_index(dataset.edge_index, count, weight, self_loops=self_loops)
    columns = dataset.columns or Columns(torch.zeros(count, 0, dtype=torch.float64), matrix=dataset.x)
    matrix = None if columns.matrix is None else compact_features(columns.matrix)
    splits = torch.zeros(len(dataset.given_splits), count, dtype=torch.int8)
    for row, split in zip(splits, dataset.given_splits, strict=True):
        for code, part in enumerate(PARTS, start=1):
            row[getattr(split, part)] = code
    codes = [column.codes for column in columns.categories.values()]
    arrays = _pattern_arrays("graph", graph.pattern) | {
        "weight": graph.weight.float(),
        "labels": dataset.y,
        "splits": splits,
        "numbers": columns.numbers.double(),
        "categories": torch.stack(codes) if codes else torch.zeros(0, count, dtype=torch.long),
    }
    if isinstance(matrix, SparseFeatures):
        arrays |= _pattern_arrays("features", matrix.pattern) | {"features-values": matrix.values.float()}
    elif matrix is not None:
        _write_blocks(home / "features.npy", matrix)
    for name, tensor in arrays.items():
        np.save(home / f"{name}.npy", tensor.contiguous().numpy())
    numbered = all(name == str(number) for number, name in enumerate(dataset.node_ids))
    if not numbered:
        pl.DataFrame({"id": list(dataset.node_ids)}).write_parquet(home / IDS)
    facts = FolderFacts(
        format=FORMAT,
        kuramotognn=__version__,
        name=dataset.name,
        nodes=count,
        edges=graph.num_edges,
        directed=summary.directed,
        weighted=weight is not None,
        numbered=numbered,
        splits=len(splits),
        classes=dataset.class_names,
        numbers=columns.number_names,
        categories={name: column.names for name, column in columns.categories.items()},
        matrix="none" if matrix is None else "sparse" if isinstance(matrix, SparseFeatures) else "dense",
        width=0 if matrix is None else matrix.shape[1],
        entries=matrix.values.numel() if isinstance(matrix, SparseFeatures) else 0,
        summary=asdict(summary),
    )
    write_atomically(home / FACTS, json.dumps(facts.model_dump(mode="json"), indent=1) + "\n")
    return facts


def _write_blocks(path: Path, matrix: Tensor | MappedFeatures) -> None:
    shape: tuple[int, int] = (matrix.shape[0], matrix.shape[1])
    if isinstance(matrix, Tensor):
        matrix = MappedFeatures(ArrayRows(matrix.numpy()))
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": shape})
        for _, _, block in matrix.blocks():
            file.write(block.numpy().astype("<f4", copy=False).tobytes())


def _pattern_arrays(name: str, pattern: Pattern) -> dict[str, Tensor]:
    """The pattern as it is used, columns before rows: the first two rows of arrays are PyG's ``edge_index``."""
    return {
        f"{name}-entries": torch.stack([pattern.col, pattern.row]),
        f"{name}-rowptr": pattern.rowptr,
        f"{name}-transpose": pattern.transpose,
        f"{name}-transposed-rowptr": pattern.transposed_rowptr,
    }


def read_facts(folder: Path) -> FolderFacts:
    """What a graph folder says of itself."""
    path = folder / FACTS
    try:
        content = parse_json(read_document(path))
        if isinstance(content, dict) and content.get("format") != FORMAT:
            raise DataError(
                f"{folder} was made by another version of kuramotognn (format {content.get('format')}, this one reads "
                f"{FORMAT}); convert it again"
            )
        return FolderFacts.model_validate_json(json.dumps(content))
    except DataError:
        raise
    except (OSError, ValueError) as error:
        what = first_problem(error) if isinstance(error, ValidationError) else error
        raise DataError(f"{path} is damaged: {what}; convert the graph again") from error


def read_folder(folder: Path) -> tuple[NodeDataset, GraphSummary]:
    """The graph of a folder. Its arrays stay on disk; small ones are checked whole, indices for their range.

    Raises:
        DataError: a file is missing, has another size than ``graph.json`` says, or points outside the graph.
    """
    facts = read_facts(folder)
    n = facts.nodes
    labels = _read(folder, "labels", np.int64, (n,))
    _check_range(folder, "labels", labels, -1, len(facts.classes))
    pattern = _read_pattern(folder, "graph", n, n, facts.edges)
    weight = torch.from_numpy(_read(folder, "weight", np.float32, (facts.edges,)))
    columns = _read_columns(folder, facts)
    splits = _read(folder, "splits", np.int8, (facts.splits, n))
    dataset = NodeDataset(
        name=facts.name,
        x=ColumnEncoder.fit(columns, torch.arange(n), standardise=False).apply(columns),
        edge_index=torch.from_numpy(_read(folder, "graph-entries", np.int64, (2, facts.edges))),
        edge_weight=weight if facts.weighted else None,
        y=torch.from_numpy(labels),
        class_names=facts.classes,
        node_ids=RowNumbers(n) if facts.numbered else _read_ids(folder, n),
        given_splits=tuple(
            Split.of((torch.from_numpy(np.flatnonzero(row == code)) for code in (1, 2, 3)), "own-split", number)
            for number, row in enumerate(splits)
        ),
        columns=columns,
        graph=Graph(pattern, weight),
    )
    try:
        summary = TypeAdapter(GraphSummary).validate_python(facts.summary)
    except ValidationError as error:
        raise DataError(f"{folder / FACTS} is damaged: {first_problem(error)}; convert the graph again") from error
    summary.formats = [f"graph folder ({each})" for each in summary.formats] or ["graph folder"]
    return dataset, summary


def _read_columns(folder: Path, facts: FolderFacts) -> Columns:
    n = facts.nodes
    numbers = torch.from_numpy(_read(folder, "numbers", np.float64, (n, len(facts.numbers))))
    codes = _read(folder, "categories", np.int64, (len(facts.categories), n))
    categories = {}
    for row, (name, values) in zip(codes, facts.categories.items(), strict=True):
        _check_range(folder, "categories", row, -1, len(values))
        categories[name] = Category(torch.from_numpy(row), values)
    return Columns(numbers, facts.numbers, categories, _read_features(folder, facts))


def _read_features(folder: Path, facts: FolderFacts) -> Features | None:
    if facts.matrix == "dense":
        return MappedFeatures(ArrayRows(_read(folder, "features", np.float32, (facts.nodes, facts.width))))
    if facts.matrix == "none":
        return None
    values = torch.from_numpy(_read(folder, "features-values", np.float32, (facts.entries,)))
    return SparseFeatures(_read_pattern(folder, "features", facts.nodes, facts.width, facts.entries), values)


def _read_pattern(folder: Path, name: str, num_rows: int, num_cols: int, entries: int) -> Pattern:
    col, row = _read(folder, f"{name}-entries", np.int64, (2, entries))
    transpose = _read(folder, f"{name}-transpose", np.int64, (entries,))
    # The kernels follow these numbers without a further look.
    for part, values, limit in (
        ("entries", row, num_rows),
        ("entries", col, num_cols),
        ("transpose", transpose, entries),
    ):
        _check_range(folder, f"{name}-{part}", values, 0, limit)
    rowptr, transposed = (
        _read_pointers(folder, f"{name}-{part}", count, entries)
        for part, count in (("rowptr", num_rows), ("transposed-rowptr", num_cols))
    )
    return Pattern(
        num_rows,
        num_cols,
        rowptr,
        torch.from_numpy(row),
        torch.from_numpy(col),
        transposed,
        torch.from_numpy(transpose),
    )


def _read_pointers(folder: Path, name: str, count: int, entries: int) -> Tensor:
    pointers = _read(folder, name, np.int64, (count + 1,))
    if pointers[0] != 0 or pointers[-1] != entries or (np.diff(pointers) < 0).any():
        raise DataError(f"{folder / name}.npy is damaged: its pointers are not ascending; convert the graph again")
    return torch.from_numpy(pointers)


def _read(folder: Path, name: str, kind: Any, shape: Iterable[int]) -> npt.NDArray[Any]:
    path, expected = folder / f"{name}.npy", tuple(shape)
    if not path.is_file():
        raise DataError(f"{path.name} is missing from {folder}; convert the graph again")
    if not np.prod(expected):
        return np.empty(expected, kind)  # An empty array cannot be mapped.
    # A tensor cannot say that it is read-only: writing to it must not end the process, nor reach the file.
    array = map_array(path, "c" if name != "features" else "r")
    if array.shape != expected or array.dtype != kind:
        raise DataError(
            f"{path} holds {array.dtype} {list(array.shape)}, but {FACTS} says {np.dtype(kind)} {list(expected)}; "
            "convert the graph again"
        )
    return array


def _check_range(folder: Path, name: str, values: npt.NDArray[Any], low: int, high: int) -> None:
    if values.size and not (low <= values.min() and values.max() < high):
        raise DataError(f"{folder / name}.npy is damaged: its numbers must be {low} to {high - 1}; convert again")


def _read_ids(folder: Path, count: int) -> list[str]:
    with as_data_error(folder / IDS, "ids of nodes"):
        ids: list[str] = pl.read_parquet(folder / IDS)["id"].cast(pl.String).to_list()
    if len(ids) != count:
        raise DataError(f"{folder / IDS} has {len(ids)} ids for {count} nodes; convert the graph again")
    return ids
