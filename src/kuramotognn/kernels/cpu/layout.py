"""A sparse pattern as the kernels want it."""

from typing import Any, NamedTuple, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, Any]


class Layout(NamedTuple):
    """A CSR pattern (row = target, entries = sources) with its transpose and work shares; int32, built once."""

    rowptr: Array  # [rows + 1]
    col: Array  # [E + AHEAD] source of each entry; the rest is there to be looked at, not to be used
    t_rowptr: Array  # [columns + 1]
    t_col: Array  # [E + AHEAD] target of each transposed entry
    t_perm: Array  # [E] where the value of each transposed entry stands in the caller's vectors of values
    chunks: Array  # row ranges of equal work; they steer the threads, never the arithmetic
    t_chunks: Array
    order: Array  # [rows] the caller's row of each row here
    entries: Array  # [E] where the value of each entry here stands in the caller's vectors of values

    @property
    def n(self) -> int:
        """How many rows there are."""
        return self.rowptr.size - 1

    @property
    def size(self) -> int:
        """How many entries there are."""
        return self.entries.size


AHEAD = 8  # Entries between asking for a neighbour's row and using it: about what a read from the shared cache takes.
N_CHUNKS = 64
ROW_COST = 3  # what a row costs besides its entries, in entries: sincos, the updates, the tape


def balanced_chunks(rowptr: Array) -> Array:
    """Boundaries [C + 1] of row ranges that hold about the same number of entries."""
    n = rowptr.size - 1
    work = rowptr.astype(np.int64) + ROW_COST * np.arange(n + 1)
    targets = np.linspace(0, work[-1], min(N_CHUNKS, max(n, 1)) + 1)
    bounds = np.searchsorted(work, targets)
    bounds[0], bounds[-1] = 0, n
    return bounds.astype(np.int32)
