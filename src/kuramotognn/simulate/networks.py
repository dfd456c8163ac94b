"""Networks of couplings: row ``i`` holds the couplings a_ij of oscillator ``i`` to the others ``j``."""

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

    A directed NetworkX edge ``(j, i)`` couples ``i`` to ``j`` with its ``weight``. Nodes keep NetworkX's order.
    """
    if isinstance(graph, Graph):
        pattern, size = graph.pattern.to("cpu"), (graph.num_nodes, graph.num_nodes)
        weight = graph.weight.detach().cpu().double().numpy()
        entries: Any = weight, pattern.col.numpy(), pattern.rowptr.numpy()
        return _checked(sparse.csr_array(entries, shape=size, copy=True))
    if hasattr(graph, "nodes") and hasattr(graph, "edges"):
        import networkx

        if not len(graph):
            raise ValueError("the graph has no nodes; add some")
        matrix: Any = networkx.to_scipy_sparse_array(graph, dtype=np.float64, format="csr")
        return _checked(sparse.csr_array(matrix.T))
    if isinstance(graph, np.ndarray):
        return _checked(np.asarray(graph, dtype=np.float64))
    if sparse.issparse(graph):
        matrix = graph
        return _checked(sparse.csr_array(matrix, dtype=np.float64, copy=True))
    raise ValueError(
        f"graph must be a Graph, a NetworkX graph, a SciPy sparse matrix or a NumPy array, got {type(graph).__name__}"
    )


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
    """An undirected Erdős–Rényi graph with ``count * degree / 2`` random edges; repeated edges count once."""
    if not 0 < degree < count:
        raise ValueError(f"the average degree must lie between 0 and the number of oscillators {count}, got {degree}")
    ends = rng.integers(0, count, size=(2, round(count * degree / 2)), dtype=np.int32)
    return _undirected(ends[:, ends[0] != ends[1]], count)


def small_world(count: int, neighbours: int, probability: float, rng: np.random.Generator) -> Network:
    """Watts and Strogatz (1998): a ring of nearest neighbours; each edge is rewired with ``probability``.

    Repeated edges count once.
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
    row, col = np.concatenate([ends, ends[::-1]], axis=1)
    network = sparse.coo_array((np.ones(row.size), (row, col)), shape=(count, count)).tocsr()
    network.data[:] = 1
    return network


GENERATORS: dict[str, tuple[Any, tuple[Any, ...], str]] = {
    "random": (random_network, (float,), "random:DEGREE"),
    "small-world": (small_world, (int, float), "small-world:NEIGHBOURS:PROBABILITY"),
}
"""Random networks by name: the function, the types of its numbers, and how they are written."""


def parse_network(text: str, count: int | None, seed: int, *, directed: bool = False) -> Network:
    """The network of ``--graph``: ``random:DEGREE``, ``small-world:NEIGHBOURS:PROBABILITY`` or a file.

    Files: ``.csv`` with the columns source, target and optionally weight, nodes numbered from 0; ``.npz`` of
    ``scipy.sparse.save_npz``, or ``.npy`` with a full matrix, both with entries a_ij in row i.
    """
    kind, *numbers = text.split(":")
    if kind in GENERATORS and not Path(text).exists():
        generate, types, form = GENERATORS[kind]
        if count is None:
            raise ValueError(f"--graph {text} needs --oscillators, the number of nodes")
        try:
            sizes = [number(word) for number, word in zip(types, numbers, strict=True)]
        except ValueError:
            raise ValueError(f"--graph {text!r} is not of the form {form}") from None
        rng = np.random.default_rng([seed, 1])  # Not the stream of phases and frequencies.
        network: Network = generate(count, *sizes, rng)
        return network
    network = read_network(Path(text), count, directed=directed)
    if count is not None and network.shape[0] != count:
        raise ValueError(f"{text} has {network.shape[0]} nodes, but --oscillators is {count}; leave it out")
    return network


def read_network(path: Path, count: int | None = None, *, directed: bool = False) -> Network:
    """Read a network from a file; see :func:`parse_network`."""
    if not path.is_file():
        forms = " nor ".join(form for *_, form in GENERATORS.values())
        raise ValueError(f"graph {str(path)!r} is neither a file nor {forms}")
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
            f"{path} row {outside[0] + 2}: edge {source} -> {target} is not between the {size} oscillators; number "
            "them from 0"
        )
    col, row = ends
    if not directed:
        different = row != col
        col, row = np.concatenate([ends, ends[::-1, different]], axis=1)
        weight = np.concatenate([weight, weight[different]])
    network = as_network(sparse.coo_array((weight, (row, col)), shape=(size, size)))
    if "weight" not in table.columns and not isinstance(network, np.ndarray):
        network.data[:] = 1  # A repeated edge counts once.
    return network


def _numbers(table: pl.DataFrame, name: str, path: Path, kind: type[pl.Int64 | pl.Float64]) -> Array:
    column = table[name].cast(kind, strict=False)
    if column.null_count():
        row = int(column.is_null().arg_max() or 0)
        what = "a node number; number nodes from 0" if kind is pl.Int64 else "a number; correct it"
        raise ValueError(f"{path} row {row + 2}: {name} {table[name][row]!r} is not {what}")
    return column.to_numpy()
