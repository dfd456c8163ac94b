"""Formats of graphs in one file: recognised by the names of their arrays, read into one common form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import scipy.sparse

from kuramotognn.data.array_files import CSR_PARTS, Array, Arrays, as_data_error, checked, csr_matrix, read_arrays
from kuramotognn.data.data_error import DataError

ID, LABEL, WEIGHT = "id", "label", "weight"
"""Columns of the tables that are made of arrays."""
PARTS = {"train": ("train",), "validation": ("val", "valid", "validation"), "test": ("test",)}
"""Parts of a split, and how the names of their masks begin."""
MASKS = [f"{name}_{mask}" for names in PARTS.values() for name in names for mask in ("mask", "masks")]
SHCHUR = ("attr_matrix", *(f"{of}_{part}" for of in ("adj", "attr") for part in CSR_PARTS))
FACEBOOK_COLUMNS = ("status", "gender", "major", "minor", "dorm", "year", "high_school")
"""Columns of ``local_info`` (Traud et al. 2012); 0 means missing."""


@dataclass(frozen=True, eq=False)
class GraphArrays:
    """A graph as arrays.

    Attributes:
        pairs: ``[2, E]`` positions of the ends of each edge.
        columns: columns of nodes, among them the label.
        label: the column of classes.
        features: ``[N, F]`` matrix, dense or a SciPy sparse one, if there is one.
        weight: ``[E]`` edge weights, if there are any.
        categorical: columns that are categories.
    """

    pairs: Array
    columns: Mapping[str, Array | pl.Series]
    label: str = LABEL
    features: Any = None
    weight: Array | None = None
    categorical: tuple[str, ...] = ()


@dataclass(frozen=True)
class GraphFormat:
    """A format: what it is called, the arrays it is recognised by, its reader, and the other arrays that are read."""

    title: str
    names: frozenset[str]
    read: Callable[[Path, Arrays], GraphArrays]
    others: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class GraphFile:
    """A graph in one file: the format's name, its content, masks ``[splits, N]`` by part, and arrays left out."""

    title: str
    graph: GraphArrays
    masks: Mapping[str, Array] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()


def recognise(path: Path, arrays: Arrays) -> GraphFile | None:
    """The graph that these arrays of a file are, in the first format that fits; None if no format does."""
    chosen = next((each for each in FORMATS if each.names <= arrays.keys()), None)
    if chosen is None:
        return None
    with as_data_error(path, f"a graph with {chosen.title}"):
        graph, masks = chosen.read(path, arrays), _masks(arrays)
    nodes = next(iter(graph.columns.values()))
    for part, mask in masks.items():
        if mask.shape[1] != len(nodes):
            raise DataError(f"{path}: the {part} masks are for {mask.shape[1]} nodes but the graph has {len(nodes)}")
    left_out = arrays.keys() - chosen.names - {*chosen.others, *(MASKS if masks else ())}
    return GraphFile(chosen.title, graph, masks, tuple(sorted(left_out)))


def count_splits(path: Path) -> int:
    """How many splits a file gives as masks."""
    arrays = read_arrays(path, only=MASKS)
    return len(next(iter(_masks(arrays).values()), ())) if arrays else 0


def _masks(arrays: Arrays) -> dict[str, Array]:
    """Masks ``[splits, N]`` by part, if no part is empty; ``*_mask`` is ``[N]`` or ``[N, splits]``."""
    found = {}
    for part, names in PARTS.items():
        for name in names:
            if isinstance(one := arrays.get(f"{name}_mask"), np.ndarray) and one.ndim in (1, 2):
                found[part] = (one if one.ndim == 2 else one[:, None]).T.astype(bool)
            if isinstance(several := arrays.get(f"{name}_masks"), np.ndarray) and several.ndim == 2:
                found[part] = several.astype(bool)
    complete = len(found) == len(PARTS) and len({mask.shape for mask in found.values()}) == 1
    return found if complete and all(mask.any(axis=1).all() for mask in found.values()) else {}


def _shchur(path: Path, arrays: Arrays) -> GraphArrays:
    adjacency = csr_matrix(path, arrays, "adj").tocoo()
    nodes = adjacency.shape[0]
    features = csr_matrix(path, arrays, "attr") if "attr_indptr" in arrays else arrays.get("attr_matrix")
    columns = {LABEL: _labels(path, arrays["labels"], nodes)}
    return GraphArrays(np.stack([adjacency.row, adjacency.col]), columns, features=features, weight=adjacency.data)


def _heterophilous(path: Path, arrays: Arrays) -> GraphArrays:
    features = arrays["node_features"]
    columns = {LABEL: _labels(path, arrays["node_labels"], features.shape[0] if features.ndim else 0)}
    return GraphArrays(_pairs(path, arrays["edges"], axis=1), columns, features=features)


def _pyg(path: Path, arrays: Arrays) -> GraphArrays:
    x, y = arrays.get("x"), arrays["y"]
    columns = {LABEL: _labels(path, y, y.shape[0] if x is None or not x.ndim else x.shape[0])}
    weight = arrays.get("edge_weight")
    return GraphArrays(_pairs(path, arrays["edge_index"], axis=0), columns, features=x, weight=weight)


def _facebook(path: Path, arrays: Arrays) -> GraphArrays:
    info, adjacency = arrays["local_info"], arrays["A"]
    width = len(FACEBOOK_COLUMNS)
    if not isinstance(info, np.ndarray) or info.ndim != 2 or info.shape[1] != width or info.dtype.kind not in "iuf":
        raise DataError(f"{path}: local_info must have {width} columns of numbers: {', '.join(FACEBOOK_COLUMNS)}")
    if adjacency.shape != (len(info), len(info)):
        raise DataError(
            f"{path}: A has shape {list(adjacency.shape)} but local_info has {len(info)} rows; they must match"
        )
    edges = (checked(adjacency) if scipy.sparse.issparse(adjacency) else scipy.sparse.coo_array(adjacency)).tocoo()
    columns = {name: _or_missing(column) for name, column in zip(FACEBOOK_COLUMNS, info.T, strict=True)}
    # Others learn the gender from the other columns (Lim et al. 2021); --label names another one.
    pairs = np.stack([edges.row, edges.col])
    return GraphArrays(pairs, columns, "gender", categorical=FACEBOOK_COLUMNS)


def _or_missing(column: Array) -> pl.Series:
    values = pl.Series(np.ascontiguousarray(column))
    return values.set(values == 0, None)


def _labels(path: Path, labels: Any, nodes: int) -> Array:
    """Labels ``[N]``; a matrix with a single column is one."""
    if not isinstance(labels, np.ndarray) or labels.shape not in ((nodes,), (nodes, 1)):
        shape = list(getattr(labels, "shape", ()))
        raise DataError(f"{path}: its labels have shape {shape} but it has {nodes} nodes; each node needs one class")
    if labels.dtype.kind not in "biufUS":
        raise DataError(f"{path}: its labels hold {labels.dtype}, not numbers or text")
    flat = labels.reshape(-1)
    return flat.astype(str) if flat.dtype.kind == "S" else flat


def _pairs(path: Path, edges: Any, axis: int) -> Array:
    """Edges as ``[2, E]``; ``axis`` is the one of length two in the format."""
    if not isinstance(edges, np.ndarray) or edges.ndim != 2 or 2 not in edges.shape or edges.dtype.kind not in "iu":
        found = f"shape {list(getattr(edges, 'shape', ()))} and type {getattr(edges, 'dtype', type(edges).__name__)}"
        raise DataError(f"{path}: its edges must be pairs of whole numbers, got {found}")
    return edges.T if (edges.shape[axis] == 2 and axis == 1) or edges.shape[0] != 2 else edges


FORMATS = (
    GraphFormat("Shchur's keys (adj_*, attr_*, labels)", frozenset({"adj_indptr", "labels"}), _shchur, SHCHUR),
    GraphFormat(
        "keys of the heterophilous graphs (node_features, node_labels, edges)",
        frozenset({"node_features", "node_labels", "edges"}),
        _heterophilous,
    ),
    GraphFormat("PyG's Data (x, edge_index, y)", frozenset({"edge_index", "y"}), _pyg, ("x", "edge_weight")),
    GraphFormat("facebook100 (A, local_info)", frozenset({"A", "local_info"}), _facebook),
)
"""Formats of a whole graph in one file of arrays."""
