"""Who acts on whom: row ``i`` of a network lists the oscillators ``j`` that act on ``i``."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from scipy import sparse

from kuramotognn.graph import Graph
from kuramotognn.simulate.arrays import Array

Network: TypeAlias = "sparse.csr_array[Any] | Array"
"""A sparse or a full matrix of couplings ``[N, N]``."""


def as_network(graph: Any) -> Network:
    """Couplings from a :class:`~kuramotognn.Graph`, a NetworkX graph, a SciPy sparse matrix or a full array ``[N, N]``.

    A directed NetworkX edge ``(j, i)`` lets ``j`` act on ``i``; its ``weight`` counts. Nodes keep NetworkX's order.
    """
    if isinstance(graph, Graph):
        pattern, size = graph.pattern.to("cpu"), (graph.num_nodes, graph.num_nodes)
        weight = graph.weight.detach().cpu().double().numpy()
        entries: Any = weight, pattern.col.numpy(), pattern.rowptr.numpy()
        return _checked(sparse.csr_array(entries, shape=size, copy=True))
    if hasattr(graph, "nodes") and hasattr(graph, "edges"):
        return _checked(sparse.csr_array(_networkx_matrix(graph).T))
    if isinstance(graph, np.ndarray):
        return _checked(np.asarray(graph, dtype=np.float64))
    if sparse.issparse(graph):
        matrix: Any = graph
        return _checked(sparse.csr_array(matrix, dtype=np.float64, copy=True))
    raise ValueError(
        f"graph must be a Graph, a NetworkX graph, a SciPy sparse matrix or a NumPy array, got {type(graph).__name__}"
    )


def _networkx_matrix(graph: Any) -> Any:
    import networkx  # Whoever has such a graph has NetworkX.

    if not len(graph):
        raise ValueError("the graph has no nodes; add some")
    return networkx.to_scipy_sparse_array(graph, dtype=np.float64, format="csr")


def _checked(network: Network) -> Network:
    if network.ndim != 2 or network.shape[0] != network.shape[1] or not network.shape[0]:
        raise ValueError(f"couplings must have shape [N, N] with N > 0, got {list(network.shape)}")
    values = network if isinstance(network, np.ndarray) else network.data
    if not np.isfinite(values).all():
        raise ValueError("couplings must be finite, but some are NaN or infinite; remove those edges")
    if not isinstance(network, np.ndarray):
        network.sum_duplicates()
        network.eliminate_zeros()
    return network


def random_network(count: int, degree: float, rng: np.random.Generator) -> Network:
    """An undirected Erdős–Rényi graph with ``count * degree / 2`` edges drawn at random; repeated ones count once."""
    if not 0 < degree < count:
        raise ValueError(f"the average degree must lie between 0 and the number of oscillators {count}, got {degree}")
    ends = rng.integers(0, count, size=(2, round(count * degree / 2)), dtype=np.int32)
    return _undirected(ends[:, ends[0] != ends[1]], count)


def small_world(count: int, neighbours: int, probability: float, rng: np.random.Generator) -> Network:
    """Watts and Strogatz (1998): a ring of next neighbours, the far end of each edge moved with ``probability``.

    An edge that is moved onto another one counts once.
    """
    if not (0 < neighbours < count and neighbours % 2 == 0):
        raise ValueError(f"small-world needs an even number of neighbours between 2 and {count - 1}, got {neighbours}")
    if not 0 <= probability <= 1:
        raise ValueError(f"the rewiring probability must lie between 0 and 1, got {probability}")
    near = np.tile(np.arange(count, dtype=np.int32), neighbours // 2)
    far = (near + np.repeat(np.arange(1, neighbours // 2 + 1, dtype=np.int32), count)) % count
    moved = rng.random(near.size) < probability
    far[moved] = (near[moved] + rng.integers(1, count, size=int(moved.sum()), dtype=np.int32)) % count
    return _undirected(np.stack([near, far]), count)


def _undirected(ends: Array, count: int) -> Network:
    row, col = np.concatenate([ends[0], ends[1]]), np.concatenate([ends[1], ends[0]])
    network = sparse.coo_array((np.ones(row.size), (row, col)), shape=(count, count)).tocsr()
    network.data[:] = 1
    return network


def parse_network(text: str, count: int | None, seed: int, *, directed: bool = False) -> Network:
    """What ``--graph`` means: ``random:DEGREE``, ``small-world:NEIGHBOURS:PROBABILITY`` or a file.

    Files: ``.csv`` with columns source, target and, if any, weight, nodes numbered from 0; ``.npz`` by
    ``scipy.sparse.save_npz`` or ``.npy`` with a full matrix, both with the acted-on oscillator as row.
    """
    kind, *numbers = text.split(":")
    forms = {"random": "random:DEGREE", "small-world": "small-world:NEIGHBOURS:PROBABILITY"}
    if kind in forms and not Path(text).exists():
        if count is None:
            raise ValueError(f"--graph {text} needs --oscillators, the number of nodes")
        rng = np.random.default_rng([seed, 1])  # Another stream than that of phases and frequencies.
        try:
            if kind == "random":
                (degree,) = numbers
                return random_network(count, float(degree), rng)
            neighbours, probability = numbers
            sizes = int(neighbours), float(probability)
        except ValueError as error:
            if "must" in str(error):
                raise
            raise ValueError(f"--graph {text!r} is not of the form {forms[kind]}") from None
        return small_world(count, *sizes, rng)
    network = read_network(Path(text), count, directed=directed)
    if count is not None and network.shape[0] != count:
        raise ValueError(f"{text} has {network.shape[0]} nodes, but --oscillators says {count}; leave it out")
    return network


def read_network(path: Path, count: int | None = None, *, directed: bool = False) -> Network:
    """A network from a file; see :func:`parse_network`."""
    if not path.is_file():
        raise ValueError(
            f"graph {str(path)!r} is neither a file nor random:DEGREE nor small-world:NEIGHBOURS:PROBABILITY"
        )
    if path.suffix == ".csv":
        return _read_edges(path, count, directed)
    if path.suffix not in (".npy", ".npz"):
        raise ValueError(f"{path}: the name of a graph must end in .csv, .npz or .npy")
    try:
        matrix = np.load(path, allow_pickle=False) if path.suffix == ".npy" else sparse.load_npz(path)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} cannot be read as a matrix: {str(error).splitlines()[0]}") from None
    return as_network(matrix)


def _read_edges(path: Path, count: int | None, directed: bool) -> Network:
    try:
        table = pl.read_csv(path, infer_schema_length=None)
    except pl.exceptions.PolarsError as error:
        raise ValueError(f"{path} is not a table of edges: {str(error).splitlines()[0]}") from None
    if missing := {"source", "target"} - set(table.columns):
        raise ValueError(f"{path} has no column {sorted(missing)[0]!r}; its first line must be source,target[,weight]")
    ends = np.stack([_numbers(table, name, path, pl.Int64) for name in ("source", "target")])
    weight = _numbers(table, "weight", path, pl.Float64) if "weight" in table.columns else np.ones(len(table))
    size = count if count is not None else int(ends.max(initial=-1)) + 1
    if (outside := np.flatnonzero(((ends < 0) | (ends >= size)).any(axis=0))).size:
        source, target = ends[:, outside[0]]
        raise ValueError(
            f"{path} row {outside[0] + 2}: edge {source} -> {target} leaves the {size} oscillators, numbered from 0"
        )
    row, col = ends[1], ends[0]
    if not directed:
        loops = row == col
        row, col = np.concatenate([ends[1], ends[0][~loops]]), np.concatenate([ends[0], ends[1][~loops]])
        weight = np.concatenate([weight, weight[~loops]])
    network = as_network(sparse.coo_array((weight, (row, col)), shape=(size, size)))
    if "weight" not in table.columns and not isinstance(network, np.ndarray):
        network.data[:] = 1  # A repeated edge counts once.
    return network


def _numbers(table: pl.DataFrame, name: str, path: Path, kind: type[pl.Int64 | pl.Float64]) -> Array:
    column = table[name].cast(kind, strict=False)
    if column.null_count():
        row = int(column.is_null().arg_max() or 0)
        what = "a node number" if kind is pl.Int64 else "a number"
        raise ValueError(f"{path} row {row + 2}: {name} {table[name][row]!r} is not {what}; number nodes from 0")
    return column.to_numpy()
