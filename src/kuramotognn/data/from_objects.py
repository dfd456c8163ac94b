"""Data sets from objects in memory: PyG's Data, SciPy matrices and NetworkX graphs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import scipy.sparse
import torch

from kuramotognn.checks import check_shape
from kuramotognn.data.array_files import as_data_error
from kuramotognn.data.data_error import DataError
from kuramotognn.data.file_bytes import read_bytes
from kuramotognn.data.graph_files import GraphFiles
from kuramotognn.data.graph_source import GraphSource
from kuramotognn.data.matrix_files import sparse_features
from kuramotognn.data.node_dataset import UNLABELLED, NodeDataset
from kuramotognn.data.own_graph import assemble
from kuramotognn.data.splits import Split
from kuramotognn.data.table_files import Table
from kuramotognn.features import Features, as_features, check_features
from kuramotognn.graph import check_edges
from kuramotognn.typing import EdgeIndex, EdgeWeight, Labels

if TYPE_CHECKING:
    import networkx as nx


def from_data(data: Any, *, name: str = "data", class_names: Sequence[str] | None = None) -> NodeDataset:
    """A PyG ``Data`` with ``x``, ``edge_index`` and ``y``; masks, one or several columns of them, become given splits.

    Args:
        data: the object. Edges and ``edge_weight`` are kept as they are (PyG stores both directions of an undirected
            edge); a negative class means unlabelled.
        name: name of the data set.
        class_names: names of the classes (default: their numbers).
    """
    for attribute in ("x", "edge_index", "y"):
        if getattr(data, attribute, None) is None:
            raise DataError(f"the Data object has no {attribute}; node classification needs x, edge_index and y")
    weight, x, y = getattr(data, "edge_weight", None), as_features(data.x), data.y.reshape(-1)
    return _dataset(name, x, data.edge_index, weight, y, class_names, _masked_splits(data))


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
        y: ``[N]`` classes 0 to C − 1; negative for unlabelled nodes.
        name: name of the data set.
        weighted: whether the entries are edge weights.
        class_names: names of the classes (default: their numbers).
    """
    matrix = scipy.sparse.coo_array(adjacency)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise DataError(f"the adjacency matrix must be square, got {matrix.shape}")
    matrix.sum_duplicates()
    edges = torch.from_numpy(np.stack([matrix.row, matrix.col]).astype(np.int64))
    weight = torch.from_numpy(matrix.data.astype(np.float32)) if weighted else None
    features = sparse_features(x) if scipy.sparse.issparse(x) else torch.as_tensor(np.asarray(x, dtype=np.float32))
    return _dataset(name, features, edges, weight, torch.as_tensor(np.asarray(y)), class_names, ())


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
    """A NetworkX graph whose node attributes are features and labels, read like the columns of a table.

    Args:
        graph: directed or undirected graph.
        label: node attribute with the class; nodes without it are to be predicted.
        weight: edge attribute with weights.
        split: node attribute with the values ``train``, ``validation`` or ``test``.
        categorical: node attributes that are categories even if they look like numbers.
        ignore: node attributes to leave out.
        name: name of the data set.
    """
    if not graph.number_of_nodes():
        raise DataError(f"{name} has no nodes; add some")
    ends = [(str(source), str(target)) for source, target in graph.edges()]
    edges: dict[str, Any] = {"(source)": [end[0] for end in ends], "(target)": [end[1] for end in ends]}
    if weight is not None:
        edges[weight] = [facts.get(weight) for _, _, facts in graph.edges(data=True)]
    with as_data_error(name, "a graph with attributes"):
        # The type of an attribute may differ between nodes: convert all to text, like cells of a CSV file.
        rows = [
            {"(node)": node} | {str(key): value for key, value in facts.items()} for node, facts in graph.nodes.items()
        ]
        texts = [{key: None if value is None else str(value) for key, value in row.items()} for row in rows]
        table = Table(f"nodes of {name}", pl.DataFrame(texts, infer_schema_length=None, strict=False))
        schema: Any = dict.fromkeys(("(source)", "(target)"), pl.String)
        pairs = Table(f"edges of {name}", pl.DataFrame(edges, schema_overrides=schema, strict=False))
    columns: Any = {"id": "(node)", "label": label, "split_column": split, "weight": weight}
    files = GraphFiles(Path(name), **columns, categorical=tuple(categorical), ignore=tuple(ignore))
    return assemble(GraphSource(table, files, pairs), directed=graph.is_directed())[0]


def read_graphml(path: Path | str, **meaning: Any) -> NodeDataset:
    """A GraphML file; ``meaning`` are keyword arguments of :func:`from_networkx`."""
    try:
        import networkx as nx
    except ImportError as error:
        raise DataError("reading GraphML needs NetworkX; install the package networkx") from error
    file = Path(path)
    content = read_bytes(file)
    if b"<!ENTITY" in content or b"<!DOCTYPE" in content:
        raise DataError(
            f"{file} defines entities, which GraphML does not need and which can exhaust memory; remove them"
        )
    with as_data_error(file, "GraphML"):
        graph = nx.parse_graphml(content.decode("utf-8-sig"))
    return from_networkx(graph, name=file.stem, **meaning)


def _dataset(
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
        raise DataError(f"class_names has {len(names)} names but y has classes up to {count - 1}; name them all")
    y, node_ids = y.long().clamp(min=UNLABELLED), tuple(str(node) for node in range(x.shape[0]))
    return NodeDataset(name, x, edge_index, y, names, node_ids, edge_weight, splits)


def _masked_splits(data: Any) -> tuple[Split, ...]:
    masks = [getattr(data, f"{part}_mask", None) for part in ("train", "val", "test")]
    if any(mask is None for mask in masks):
        return ()
    columns = zip(*(mask.reshape(mask.size(0), -1).t() for mask in masks if mask is not None), strict=True)
    return tuple(
        Split.of((mask.nonzero().flatten() for mask in column), "own-split", number)
        for number, column in enumerate(columns)
    )
