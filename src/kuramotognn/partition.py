"""Parts of a graph with few edges between them: METIS, computed once per graph."""

from __future__ import annotations

import hashlib
import io
from contextlib import suppress
from pathlib import Path

import numpy as np
import torch
from scipy.sparse import csr_matrix

from kuramotognn.atomic_write import write_atomically
from kuramotognn.data.raw_files import data_root
from kuramotognn.graph import Pattern
from kuramotognn.typing import Index

FORMAT = "metis-1"
"""Part of the name under which parts are kept; changed when the same graph gives other parts."""


def metis_parts(pattern: Pattern, parts: int) -> Index:
    """The part, 0 to ``parts − 1``, of each node: parts of nearly equal size with few edges between them.

    From `"A Fast and High Quality Multilevel Scheme for Partitioning Irregular Graphs"
    <https://doi.org/10.1137/S1064827595287997>`_, by ``pymetis``. Directions, weights and self-loops play no role. The
    result depends on the pattern alone. It is kept with the pattern, and in the folder of data sets by a hash of it.

    Args:
        pattern: a square pattern.
        parts: how many; METIS may leave some empty when there are about as many as nodes.
    """
    if pattern.num_rows != pattern.num_cols:
        raise ValueError(f"parts need a square pattern, got {pattern.num_rows} x {pattern.num_cols}")
    if not 1 <= parts <= pattern.num_rows:
        raise ValueError(f"parts must be between 1 and the {pattern.num_rows} nodes of the graph, got {parts}")
    name = f"metis/{parts}"
    if name not in pattern.derived:
        pattern.derived[name] = _kept_on_disk(pattern, parts).to(pattern.row.device)
    return pattern.derived[name]


def _kept_on_disk(pattern: Pattern, parts: int) -> Index:
    path = _path(pattern, parts)
    with suppress(OSError, ValueError, EOFError):  # Missing or damaged: it is computed again.
        found = np.load(path, allow_pickle=False)
        if found.dtype == np.int64 and found.shape == (pattern.num_rows,) and 0 <= found.min() <= found.max() < parts:
            return torch.from_numpy(found)
    computed = _metis(pattern, parts)
    buffer = io.BytesIO()
    np.save(buffer, computed)
    with suppress(OSError):  # A folder that cannot be written costs the next process the computation, nothing else.
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, buffer.getvalue())
    return torch.from_numpy(computed)


def _path(pattern: Pattern, parts: int) -> Path:
    digest = hashlib.sha256(f"{FORMAT} {pattern.num_rows} {parts}".encode())
    for index in (pattern.rowptr, pattern.col):
        digest.update(index.cpu().numpy().data)
    return data_root() / "partitions" / f"{digest.hexdigest()[:32]}.npy"


def _metis(pattern: Pattern, parts: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    try:
        import pymetis
    except ImportError as error:
        raise ValueError("parts of a graph need METIS: pip install 'kuramotognn[scale]'") from error
    size = pattern.num_rows
    rowptr, col = pattern.rowptr.cpu().numpy(), pattern.col.cpu().numpy()
    directed = csr_matrix((np.ones(col.size, dtype=np.int8), col, rowptr), shape=(size, size))
    graph = directed.maximum(directed.T).tocsr()
    graph.setdiag(0)
    graph.eliminate_zeros()
    graph.sort_indices()
    found = pymetis.part_graph(
        parts, pymetis.CSRAdjacency(graph.indptr, graph.indices), options=pymetis.Options(seed=0)
    )
    return np.asarray(found.vertex_part, dtype=np.int64)
