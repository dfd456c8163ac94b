"""Graphs that are in memory already: NetworkX, SciPy and PyG."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import scipy.sparse
import torch
from torch import Tensor

from kuramotognn.checks import check_shape
from kuramotognn.data.errors import DataError
from kuramotognn.data.node_dataset import NodeDataset
from kuramotognn.data.own import GraphFiles, assemble
from kuramotognn.data.splits import Split
from kuramotognn.data.tables import Table, read_bytes, refusing
from kuramotognn.features import Features, SparseFeatures, as_features, check_features
from kuramotognn.graph import check_edges
from kuramotognn.typing import EdgeIndex, EdgeWeight, Labels

if TYPE_CHECKING:
    import networkx as nx


def from_data(data: Any, *, name: str = "data", class_names: Sequence[str] | None = None) -> NodeDataset:
    """A PyG ``Data`` with ``x``, ``edge_index`` and ``y``; masks, one or several columns of them, become given splits.

    Args:
        data: edges as they are (PyG keeps both directions of an undirected edge); ``edge_weight`` is kept; a negative
            class means that the label is not known.
        name: what to call it.
        class_names: what the classes are called (default: their numbers).
    """
    for attribute in ("x", "edge_index", "y"):
        if getattr(data, attribute, None) is None:
            raise DataError(f"the Data object has no {attribute}; a node classification needs x, edge_index and y")
    return _checked(
        name,
        as_features(data.x),
        data.edge_index,
        getattr(data, "edge_weight", None),
        data.y.reshape(-1),
        class_names,
        _masked_splits(data),
    )


def from_scipy(
    adjacency: Any,
    x: Any,
    y: Any,
    *,
    name: str = "graph",
    weighted: bool = False,
    class_names: Sequence[str] | None = None,
) -> NodeDataset:
    """A SciPy sparse adjacency matrix, features (dense, or a SciPy sparse matrix) and classes.

    Args:
        adjacency: ``[N, N]``; an entry (i, j) is an edge from i to j.
        x: ``[N, F]`` features.
        y: ``[N]`` classes 0 to C − 1; negative where they are not known.
        name: what to call it.
        weighted: take the entries as weights.
        class_names: what the classes are called (default: their numbers).
    """
    matrix = scipy.sparse.coo_array(adjacency)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise DataError(f"the adjacency matrix must be square, got {matrix.shape}")
    matrix.sum_duplicates()
    edges = torch.from_numpy(np.stack([matrix.row, matrix.col]).astype(np.int64))
    weight = torch.from_numpy(matrix.data.astype(np.float32)) if weighted else None
    features = _scipy_features(x) if scipy.sparse.issparse(x) else torch.as_tensor(np.asarray(x, dtype=np.float32))
    return _checked(name, features, edges, weight, torch.as_tensor(np.asarray(y)), class_names, ())


def from_networkx(
    graph: nx.Graph[Any],
    *,
    label: str,
    weight: str | None = None,
    split: str | None = None,
    categorical: Sequence[str] = (),
    ignore: Sequence[str] = (),
    name: str = "graph",
) -> NodeDataset:
    """A NetworkX graph whose node attributes are features and labels, understood as the columns of a table are.

    Args:
        graph: directed or not.
        label: attribute with the class; a node without it is to be predicted.
        weight: edge attribute with weights.
        split: attribute that says ``train``, ``validation`` or ``test``.
        categorical: attributes to take as categories, whatever they look like.
        ignore: attributes to leave out.
        name: what to call it.
    """
    if not graph.number_of_nodes():
        raise DataError(f"{name} has no nodes")
    rows = [
        {"(node)": str(node)} | {str(key): value for key, value in facts.items()} for node, facts in graph.nodes.items()
    ]
    ends = [(str(source), str(target)) for source, target in graph.edges()]
    edges: dict[str, Any] = {"(source)": [end[0] for end in ends], "(target)": [end[1] for end in ends]}
    if weight is not None:
        edges[weight] = [facts.get(weight) for _, _, facts in graph.edges(data=True)]
    with refusing(Path(name), "a graph with attributes"):
        # Attributes may differ in type from node to node; text holds them all, and is understood as a CSV file is.
        texts = [{key: None if value is None else str(value) for key, value in row.items()} for row in rows]
        table = Table(f"nodes of {name}", pl.DataFrame(texts, infer_schema_length=None, strict=False))
        schema: Any = dict.fromkeys(("(source)", "(target)"), pl.String)
        pairs = Table(f"edges of {name}", pl.DataFrame(edges, schema_overrides=schema, strict=False))
    files = GraphFiles(
        Path(name),
        Path(name),
        label=label,
        id="(node)",
        split=split,
        weight=weight,
        directed=graph.is_directed(),
        categorical=categorical,
        ignore=ignore,
    )
    return assemble(table, pairs, files)[0]


def read_graphml(path: Path | str, **meaning: Any) -> NodeDataset:
    """A GraphML file; see :func:`from_networkx` for what can be said of its attributes."""
    try:
        import networkx as nx
    except ImportError as error:
        raise DataError("reading GraphML needs NetworkX; install the package networkx") from error
    file = Path(path)
    content = read_bytes(file)
    if b"<!ENTITY" in content or b"<!DOCTYPE" in content:
        raise DataError(
            f"{file} defines entities, which GraphML has no use for and which can fill the memory; remove them"
        )
    with refusing(file, "GraphML"):
        graph = nx.parse_graphml(content.decode("utf-8-sig"))
    return from_networkx(graph, name=file.stem, **meaning)


def _checked(
    name: str,
    x: Features,
    edge_index: EdgeIndex,
    edge_weight: EdgeWeight | None,
    y: Labels,
    class_names: Sequence[str] | None,
    splits: tuple[Split, ...],
) -> NodeDataset:
    if y.dtype.is_floating_point or y.dtype == torch.bool:
        raise DataError(f"y must hold whole numbers, classes from 0, got {y.dtype}")
    check_features(x)
    check_shape("y", y, (x.shape[0],))
    check_edges(edge_index, x.shape[0], edge_weight)
    count = int(y.max()) + 1 if y.numel() else 0
    names = tuple(class_names) if class_names is not None else tuple(str(label) for label in range(count))
    if len(names) < count:
        raise DataError(f"class_names has {len(names)} names but y has classes up to {count - 1}")
    return NodeDataset(
        name=name,
        x=x,
        edge_index=edge_index,
        edge_weight=edge_weight,
        y=y.long().clamp(min=-1),
        class_names=names,
        node_ids=tuple(str(node) for node in range(x.shape[0])),
        given_splits=splits,
    )


def _masked_splits(data: Any) -> tuple[Split, ...]:
    masks = [getattr(data, f"{part}_mask", None) for part in ("train", "val", "test")]
    if any(mask is None for mask in masks):
        return ()
    columns: list[Tensor] = [mask.reshape(mask.size(0), -1) for mask in masks if mask is not None]
    train, validation, test = ([column.nonzero().flatten() for column in mask.t()] for mask in columns)
    return tuple(
        Split(*parts, "own-split", number) for number, parts in enumerate(zip(train, validation, test, strict=True))
    )


def _scipy_features(x: Any) -> SparseFeatures:
    matrix = scipy.sparse.coo_array(x)
    return SparseFeatures.from_coo(
        torch.from_numpy(matrix.row.astype(np.int64)),
        torch.from_numpy(matrix.col.astype(np.int64)),
        torch.from_numpy(matrix.data.astype(np.float32)),
        (int(matrix.shape[0]), int(matrix.shape[1])),
    )
