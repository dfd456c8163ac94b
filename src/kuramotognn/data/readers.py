"""Readers of the raw files of public data sets.

Each reader takes the contents of the files by name. Where torch_geometric has a class for the data set, the reader
gives the same nodes, edges, features and classes (tested). Unlike that class it keeps sparse features sparse and writes
no pickled copy of the data.
"""

from __future__ import annotations

import io
import pickle
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import polars as pl
import scipy.sparse
import torch

from kuramotognn.data.array_files import as_data_error, read_npz
from kuramotognn.data.data_error import DataError
from kuramotognn.data.file_bytes import gunzip, open_zip
from kuramotognn.data.matrix_files import sparse_features
from kuramotognn.data.node_dataset import UNLABELLED, NodeDataset
from kuramotognn.data.splits import Split
from kuramotognn.features import Features

Contents = Mapping[str, bytes]
Reader = Callable[[str, Contents], NodeDataset]
Array = npt.NDArray[Any]

NUM_GIVEN_SPLITS = 10
PLANETOID_PARTS = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
PLANETOID_VALIDATION = 500
MASKS = ("train", "val", "test")
OGB_PARTS = ("train", "valid", "test")


def read_planetoid(name: str, contents: Contents) -> NodeDataset:
    """Cora, CiteSeer and PubMed from the pickles of Planetoid's authors (Yang et al. 2016)."""
    part = {key: contents[f"ind.{name}.{key}"] for key in PLANETOID_PARTS}
    y, ty, ally, tx, allx = (_unpickle(part[key]) for key in ("y", "ty", "ally", "tx", "allx"))
    test = np.array(part["test.index"].split(), dtype=np.int64)
    # The test nodes come last, in shuffled order; a few nodes of CiteSeer have edges but no features or labels.
    num_nodes = max(int(test.max()) + 1, len(ally))
    place = np.concatenate([np.arange(len(ally)), test])
    entries = scipy.sparse.vstack([allx, tx]).tocoo()
    x = scipy.sparse.coo_array((entries.data, (place[entries.row], entries.col)), (num_nodes, entries.shape[1]))
    labels = np.full(num_nodes, UNLABELLED)
    labels[place] = np.concatenate([ally, ty]).argmax(axis=1)
    neighbours = _unpickle(part["graph"])
    pairs = np.array([(i, j) for i, row in neighbours.items() for j in row if i != j], dtype=np.int64)
    train, validation = torch.arange(len(y) + PLANETOID_VALIDATION).tensor_split([len(y)])
    split = Split(train, validation, torch.from_numpy(np.sort(test)), "planetoid-public", 0)
    return _dataset(name, sparse_features(x), pairs, labels, [split])


def read_shchur(name: str, contents: Contents) -> NodeDataset:
    """Amazon and Coauthor graphs in the npz layout of Shchur et al. 2018, with binary features."""
    (content,) = contents.values()
    arrays = read_npz(name, content)

    def matrix(kind: str) -> Any:
        *entries, shape = (arrays[f"{kind}_{key}"] for key in ("data", "indices", "indptr", "shape"))
        return scipy.sparse.csr_array(tuple(entries), tuple(shape))

    adjacency = matrix("adj").tocoo()
    pairs = np.stack([adjacency.row, adjacency.col], axis=1).astype(np.int64)
    return _dataset(name, sparse_features(matrix("attr") > 0), pairs[pairs[:, 0] != pairs[:, 1]], arrays["labels"])


def read_webkb(name: str, contents: Contents) -> NodeDataset:
    """Texas, Wisconsin and Cornell with the ten splits of Geom-GCN (Pei et al. 2020)."""
    nodes, edges = (
        [line.split("\t") for line in contents[file].decode().splitlines()[1:] if line]
        for file in ("out1_node_feature_label.txt", "out1_graph_edges.txt")
    )
    x = torch.tensor([[float(value) for value in words.split(",")] for _, words, _ in nodes])
    splits = []
    for number in range(NUM_GIVEN_SPLITS):
        file = f"{name}_split_0.6_0.2_{number}.npz"
        masks = read_npz(file, contents[file])
        splits.append(_masked_split([masks[f"{part}_mask"] for part in MASKS], "geom-gcn", number))
    labels = np.array([int(label) for _, _, label in nodes])
    return _dataset(name, x, np.array(edges).astype(np.int64), labels, splits)


def read_heterophilous(name: str, contents: Contents) -> NodeDataset:
    """Roman-empire and amazon-ratings with their ten splits (Platonov et al. 2023)."""
    (content,) = contents.values()
    arrays = read_npz(name, content)
    masks = zip(*(arrays[f"{part}_masks"] for part in MASKS), strict=True)
    splits = [_masked_split(parts, "heterophilous", number) for number, parts in enumerate(masks)]
    x = torch.from_numpy(arrays["node_features"].astype(np.float32))
    return _dataset(name, x, arrays["edges"].astype(np.int64), arrays["node_labels"], splits)


def read_ogb_arxiv(name: str, contents: Contents) -> NodeDataset:
    """Ogbn-arxiv from OGB's gzipped tables (Hu et al. 2020)."""
    x = torch.from_numpy(_table(contents, "node-feat.csv.gz", pl.Float32).copy())
    pairs, labels = (_table(contents, f"{kind}.csv.gz", pl.Int64) for kind in ("edge", "node-label"))
    nodes, edges = (int(_table(contents, f"num-{kind}-list.csv.gz", pl.Int64).sum()) for kind in ("node", "edge"))
    found = (x.size(0), len(labels), len(pairs))
    if found != (nodes, nodes, edges):
        raise DataError(
            f"{name}: its tables have {found[0]} rows of features, {found[1]} labels and {found[2]} edges, but its "
            f"lists announce {nodes} nodes and {edges} edges; remove the folder and download it again"
        )
    parts = (torch.from_numpy(np.sort(_table(contents, f"{part}.csv.gz", pl.Int64)[:, 0])) for part in OGB_PARTS)
    return _dataset(name, x, pairs, labels[:, 0], [Split.of(parts, "ogb-time", 0)])


def unzip(archive: bytes, members: Mapping[str, str], source: str) -> dict[str, bytes]:
    """Members of a zip archive: ``members`` maps their paths in the archive to the keys of the result."""
    try:
        with open_zip(archive, source) as file:
            return {name: file.read(member) for member, name in members.items()}
    except (zipfile.BadZipFile, KeyError, zlib.error, EOFError) as error:
        raise DataError(f"{source} is not the published archive: {error}; remove it and run again") from error


def _dataset(
    name: str, x: Features, pairs: Array, labels: Array, given_splits: list[Split] | None = None
) -> NodeDataset:
    if pairs.ndim != 2 or pairs.shape[1] != 2 or (pairs.size and not 0 <= pairs.min() <= pairs.max() < labels.size):
        raise DataError(f"{name}: its edges are not pairs of its {labels.size} nodes; download it again")
    if x.shape[0] != labels.size:
        raise DataError(f"{name}: it has {x.shape[0]} rows of features but {labels.size} labels; download it again")
    return NodeDataset(
        name=name,
        x=x,
        edge_index=torch.from_numpy(np.unique(pairs, axis=0).T.copy()),
        y=torch.from_numpy(labels.astype(np.int64)),
        class_names=tuple(str(label) for label in range(int(labels.max()) + 1)),
        node_ids=tuple(str(node) for node in range(labels.size)),
        given_splits=tuple(given_splits or ()),
    )


def _masked_split(masks: Sequence[Array], protocol: str, number: int) -> Split:
    return Split.of((torch.from_numpy(np.flatnonzero(mask)) for mask in masks), protocol, number)


def _table(contents: Contents, name: str, dtype: type[pl.DataType]) -> Array:
    with as_data_error(name, "a gzipped table of numbers"):
        text = io.BytesIO(gunzip(contents[name], name))
        return pl.read_csv(text, has_header=False, infer_schema_length=0).cast(dtype).to_numpy()


class _PlanetoidUnpickler(pickle.Unpickler):
    """Builds only the types in Planetoid's files, under the names they have in current libraries."""

    ALLOWED: ClassVar = {
        ("scipy.sparse.csr", "csr_matrix"): scipy.sparse.csr_matrix,
        ("numpy", "ndarray"): np.ndarray,
        ("numpy", "dtype"): np.dtype,
        ("collections", "defaultdict"): defaultdict,
        ("__builtin__", "list"): list,
    }

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("numpy.core.multiarray", "_reconstruct"):
            return lambda cls, shape, dtype: np.ndarray.__new__(cls, shape, dtype)
        if (module, name) not in self.ALLOWED:
            raise DataError(f"a Planetoid file contains {module}.{name}, which the published files do not; remove it")
        return self.ALLOWED[module, name]


def _unpickle(content: bytes) -> Any:
    """Unpickle a verified Planetoid file, written by Python 2."""
    return _PlanetoidUnpickler(io.BytesIO(content), encoding="latin1").load()
