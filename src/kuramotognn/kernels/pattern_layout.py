"""Sparse patterns as the compiled kernels read them: one tensor a pattern, built once."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import reverse_cuthill_mckee
from torch import Tensor

from kuramotognn.graph import Pattern, usable_in_training
from kuramotognn.typing import Index

AHEAD = 8  # entries that the kernels read beyond the last, to prefetch without a bound; see csrc/layout.h
CHUNKS = 64  # ranges of rows for threads to take
ROW_COST = 3  # what a row costs besides its entries, in entries
REORDER_FROM = 1024  # rows from which on flows renumber the nodes; below, a tile fits the first-level cache anyway
LARGEST = 2**31 - 1 - AHEAD  # rows, columns and entries that 32 bits can count


def fits(pattern: Pattern) -> bool:
    """Whether the kernels can count the pattern's entries."""
    return max(pattern.num_entries, pattern.num_rows, pattern.num_cols) <= LARGEST


def layout(pattern: Pattern) -> Tensor:
    """The pattern in the order of its rows."""
    if "layout" not in pattern.derived:
        pattern.derived["layout"] = _block(pattern, *(torch.arange(n) for n in (pattern.num_rows, pattern.num_entries)))
    return pattern.derived["layout"]


def flow_layout(pattern: Pattern) -> Tensor:
    """A square pattern with neighbours near each other (docs/performance.md), for kernels that copy states anyway."""
    missing = "flow_layout" not in pattern.derived
    if pattern.num_rows < REORDER_FROM or (missing and torch.compiler.is_compiling()):  # SciPy cannot be traced.
        return layout(pattern)
    if missing:
        pattern.derived["flow_layout"] = _renumbered(pattern)
    return pattern.derived["flow_layout"]


def pattern_of(block: Tensor) -> Pattern:
    """The pattern that a layout was built from."""
    num_rows, num_cols, entries, *chunks = block[:5].tolist()
    rowptr, narrow = block[8 : 9 + num_rows], block[12 + num_rows + num_cols + sum(chunks) :].view(torch.int32).long()
    parts = [entries, AHEAD, entries, entries, AHEAD, entries, num_rows]  # as in _block
    col, _, place, *_, order = narrow[: sum(parts)].split(parts)  # type: ignore[no-untyped-call]
    row = torch.repeat_interleave(order, rowptr.diff())
    if not order.equal(torch.arange(num_rows)):
        col = order[col]
    back = torch.argsort(place)
    return Pattern.from_sorted(row[back], col[back], num_rows, num_cols)


def _renumbered(pattern: Pattern) -> Tensor:
    shape = (pattern.num_rows, pattern.num_cols)
    matrix = csr_matrix((np.ones(pattern.num_entries, "i1"), pattern.col.numpy(), pattern.rowptr.numpy()), shape=shape)
    order = torch.from_numpy(reverse_cuthill_mckee(matrix, symmetric_mode=False).astype(np.int64))
    position = torch.argsort(order)
    row, col = position[pattern.row], position[pattern.col]
    place = torch.argsort(row * pattern.num_cols + col)
    return _block(Pattern.from_sorted(row[place], col[place], *shape), order, place)


@usable_in_training
def _block(pattern: Pattern, order: Index, place: Index) -> Tensor:
    """What csrc/layout.h reads: ``order`` are the caller's rows, ``place`` the caller's entries of those here."""
    bounds, t_bounds = balanced_chunks(pattern.rowptr), balanced_chunks(pattern.transposed_rowptr)
    sizes = [pattern.num_rows, pattern.num_cols, pattern.num_entries, bounds.numel() - 1, t_bounds.numel() - 1, 0, 0, 0]
    wide = torch.cat([torch.tensor(sizes), pattern.rowptr, pattern.transposed_rowptr, bounds, t_bounds])
    t_col, t_place = pattern.row[pattern.transpose], place[pattern.transpose]
    narrow = torch.cat([F.pad(pattern.col, (0, AHEAD)), place, F.pad(t_col, (0, AHEAD)), t_place, order]).int()
    return torch.cat([wide, F.pad(narrow, (0, narrow.numel() % 2)).view(torch.int64)])


def balanced_chunks(rowptr: Index) -> Index:
    """Boundaries of up to ``CHUNKS`` ranges of rows with about the same work, for threads to take."""
    rows = rowptr.numel() - 1
    work = rowptr + ROW_COST * torch.arange(rows + 1)
    targets = torch.linspace(0, float(work[-1]), min(CHUNKS, max(rows, 1)) + 1, dtype=torch.float64)
    bounds = torch.searchsorted(work.double(), targets)
    bounds[0], bounds[-1] = 0, rows
    return bounds
