"""Raw files of the public data sets, as their publishers wrote them.

Each reader takes the contents of the files by name and gives the arrays. Where torch_geometric has a class for the data
set, the reader gives the same nodes, edges, features and classes as that class (tested), without the pickled copy it
writes beside the raw files, and keeps sparse features sparse.
"""

from __future__ import annotations

import gzip
import io
import pickle
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import polars as pl
import scipy.sparse
import torch

from kuramotognn.data.errors import DataError
from kuramotognn.data.node_dataset import UNLABELLED, NodeDataset
from kuramotognn.data.splits import Split
from kuramotognn.features import Features, SparseFeatures

Contents = Mapping[str, bytes]
Reader = Callable[[str, Contents], NodeDataset]
Array = npt.NDArray[Any]

NUM_GIVEN_SPLITS = 10
PLANETOID_PARTS = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
PLANETOID_VALIDATION = 500


def read_planetoid(name: str, contents: Contents) -> NodeDataset:
    """Cora, CiteSeer and PubMed as Planetoid's authors pickled them (Yang et al. 2016)."""
    part = {key: contents[f"ind.{name}.{key}"] for key in PLANETOID_PARTS}
    y, ty, ally, tx, allx = (_unpickle(part[key]) for key in ("y", "ty", "ally", "tx", "allx"))
    tested = np.array(part["test.index"].split(), dtype=np.int64)
    # The last nodes are tested ones in shuffled order; a few of CiteSeer's are in the graph alone.
    num_nodes = max(int(tested.max()) + 1, len(ally))
    place = np.concatenate([np.arange(len(ally)), tested])
    entries = scipy.sparse.vstack([allx, tx]).tocoo()
    x = SparseFeatures.from_coo(
        torch.from_numpy(place[entries.row]),
        torch.from_numpy(entries.col.astype(np.int64)),
        torch.from_numpy(entries.data.astype(np.float32)),
        (num_nodes, entries.shape[1]),
    )
    labels = np.full(num_nodes, UNLABELLED)
    labels[place] = np.concatenate([ally, ty]).argmax(axis=1)
    neighbours = _unpickle(part["graph"])
    pairs = np.array([(i, j) for i, row in neighbours.items() for j in row if i != j], dtype=np.int64)
    public = Split(
        torch.arange(len(y)),
        torch.arange(len(y), len(y) + PLANETOID_VALIDATION),
        torch.from_numpy(np.sort(tested)),
        "planetoid-public",
        0,
    )
    return _dataset(name, x, pairs, labels, (public,))


def read_shchur(name: str, contents: Contents) -> NodeDataset:
    """Amazon and Coauthor graphs in the npz layout of Shchur et al. 2018; words are counted once."""
    (content,) = contents.values()
    with _npz(name, content) as arrays:
        attributes, adjacency = (
            scipy.sparse.csr_matrix(
                tuple(arrays[f"{kind}_{key}"] for key in ("data", "indices", "indptr")), arrays[f"{kind}_shape"]
            ).tocoo()
            for kind in ("attr", "adj")
        )
        labels = arrays["labels"].astype(np.int64)
    present = attributes.data > 0
    x = SparseFeatures.from_coo(
        torch.from_numpy(attributes.row[present].astype(np.int64)),
        torch.from_numpy(attributes.col[present].astype(np.int64)),
        torch.ones(int(present.sum())),
        attributes.shape,
    )
    pairs = np.stack([adjacency.row, adjacency.col], axis=1).astype(np.int64)
    return _dataset(name, x, pairs[pairs[:, 0] != pairs[:, 1]], labels)


def read_webkb(name: str, contents: Contents) -> NodeDataset:
    """Texas, Wisconsin and Cornell with the ten splits of Geom-GCN (Pei et al. 2020)."""
    lines = contents["out1_node_feature_label.txt"].decode().splitlines()[1:]
    fields = [line.split("\t") for line in lines if line]
    x = torch.tensor([[float(value) for value in words.split(",")] for _, words, _ in fields])
    labels = np.array([int(label) for _, _, label in fields])
    edges = contents["out1_graph_edges.txt"].decode().splitlines()[1:]
    pairs = np.array([[int(node) for node in line.split("\t")] for line in edges if line], dtype=np.int64)
    splits = []
    for number in range(NUM_GIVEN_SPLITS):
        file = f"{name}_split_0.6_0.2_{number}.npz"
        with _npz(file, contents[file]) as masks:
            parts = [masks[f"{part}_mask"] for part in ("train", "val", "test")]
        splits.append(_masked_split(parts, "geom-gcn", number))
    return _dataset(name, x, pairs, labels, tuple(splits))


def read_heterophilous(name: str, contents: Contents) -> NodeDataset:
    """Roman-empire and amazon-ratings with their ten splits (Platonov et al. 2023)."""
    (content,) = contents.values()
    with _npz(name, content) as arrays:
        x = torch.from_numpy(arrays["node_features"].astype(np.float32))
        labels, pairs = arrays["node_labels"].astype(np.int64), arrays["edges"].astype(np.int64)
        masks = [arrays[f"{part}_masks"] for part in ("train", "val", "test")]
    splits = [
        _masked_split([mask[number] for mask in masks], "heterophilous", number) for number in range(len(masks[0]))
    ]
    return _dataset(name, x, pairs, labels, tuple(splits))


def read_ogb_arxiv(name: str, contents: Contents) -> NodeDataset:
    """Ogbn-arxiv from OGB's gzipped tables (Hu et al. 2020); nothing is unpickled."""
    x = torch.from_numpy(_table(contents, "node-feat.csv.gz", pl.Float32).copy())
    pairs = _table(contents, "edge.csv.gz", pl.Int64)
    labels = _table(contents, "node-label.csv.gz", pl.Int64)[:, 0]
    nodes, edges = (int(_table(contents, f"num-{kind}-list.csv.gz", pl.Int64).sum()) for kind in ("node", "edge"))
    found = (x.size(0), labels.size, len(pairs))
    if found != (nodes, nodes, edges):
        raise DataError(
            f"{name}: its tables have {found[0]} rows of features, {found[1]} labels and {found[2]} edges, but its "
            f"lists announce {nodes} nodes and {edges} edges; remove the folder and download it again"
        )
    train, validation, test = (
        torch.from_numpy(np.sort(_table(contents, f"{part}.csv.gz", pl.Int64)[:, 0])) for part in OGB_PARTS
    )
    return _dataset(name, x, pairs, labels, (Split(train, validation, test, "ogb-time", 0),))


OGB_PARTS = ("train", "valid", "test")


def unzip(archive: bytes, members: Mapping[str, str], source: str) -> dict[str, bytes]:
    """Some members of a zip archive: the name wanted for each, by its path in the archive."""
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as file:
            return {name: file.read(member) for member, name in members.items()}
    except (zipfile.BadZipFile, KeyError, zlib.error, EOFError) as error:
        raise DataError(f"{source} is not the archive it should be: {error}; remove it and run again") from error


def _dataset(name: str, x: Features, pairs: Array, labels: Array, given_splits: tuple[Split, ...] = ()) -> NodeDataset:
    if pairs.ndim != 2 or pairs.shape[1] != 2 or (pairs.size and not 0 <= pairs.min() <= pairs.max() < labels.size):
        raise DataError(f"{name}: its edges are not pairs of numbers of its {labels.size} nodes")
    if x.shape[0] != labels.size:
        raise DataError(f"{name}: {x.shape[0]} rows of features but {labels.size} labels")
    y = torch.from_numpy(labels.astype(np.int64))
    return NodeDataset(
        name=name,
        x=x,
        edge_index=torch.from_numpy(np.unique(pairs, axis=0).T.copy()),
        y=y,
        class_names=tuple(str(label) for label in range(int(y.max()) + 1)),
        node_ids=tuple(str(node) for node in range(y.numel())),
        given_splits=given_splits,
    )


def _masked_split(masks: list[Array], protocol: str, number: int) -> Split:
    train, validation, test = (torch.from_numpy(np.flatnonzero(mask)) for mask in masks)
    return Split(train, validation, test, protocol, number)


def _npz(name: str, content: bytes) -> Any:
    try:
        return np.load(io.BytesIO(content), allow_pickle=False)
    except (ValueError, OSError, zipfile.BadZipFile, EOFError) as error:
        raise DataError(f"{name}: its npz file cannot be read: {error}") from error


def _table(contents: Contents, name: str, dtype: type[pl.DataType]) -> Array:
    try:
        text = gzip.decompress(contents[name])
        frame = pl.read_csv(io.BytesIO(text), has_header=False, infer_schema_length=0).cast(dtype)
    except (OSError, EOFError, zlib.error, pl.exceptions.PolarsError) as error:
        raise DataError(f"{name} is not a gzipped table of numbers: {str(error).splitlines()[0]}") from error
    return frame.to_numpy()


class _PlanetoidUnpickler(pickle.Unpickler):
    """Builds what Planetoid's files are made of and nothing else, under the names that today's libraries have."""

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
            raise DataError(f"a Planetoid file asks for {module}.{name}, which the published ones do not")
        return self.ALLOWED[module, name]


def _unpickle(content: bytes) -> Any:
    """Unpickle a verified Planetoid file, written by Python 2."""
    return _PlanetoidUnpickler(io.BytesIO(content), encoding="latin1").load()
