"""Memory for tapes and scratch that is used again: touching fresh pages costs more than the arithmetic on them."""

from __future__ import annotations

import mmap
from collections import defaultdict
from contextlib import suppress
from weakref import finalize

import torch
from torch import Tensor

HUGE_PAGE = 2 << 20
SMALL = 128 << 10  # Bytes up to which torch allocates as usual. Larger blocks lie on huge pages, for the TLB's sake.
RETAINED = 3 << 30  # bytes of free blocks that are kept


class Pool:
    """Lends blocks of memory as tensors; a block comes back when the last tensor that uses it is gone.

    There is no lock, which a forked child could find taken: appending to a list and popping from it are atomic.
    """

    def __init__(self) -> None:
        self.free: defaultdict[int, list[mmap.mmap]] = defaultdict(list)  # by size

    def empty(self, count: int, dtype: torch.dtype) -> Tensor:
        """``count`` uninitialised numbers, aligned to a cache line."""
        size = count * dtype.itemsize
        if size <= SMALL:
            return torch.empty(count, dtype=dtype)
        step = 1 << (size.bit_length() - 5)
        size = -(-size // step) * step  # Five leading binary digits, then zeros: few sizes, so blocks are found again.
        try:
            block = self.free[size].pop()
        except IndexError:
            block = mmap.mmap(-1, size + HUGE_PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            with suppress(OSError, AttributeError):  # Only Linux has huge pages, and not every kernel.
                block.madvise(mmap.MADV_HUGEPAGE)
        view = memoryview(block)
        finalize(view, self._give_back, size, block).atexit = False
        start = -torch.frombuffer(view, dtype=torch.uint8).data_ptr() % HUGE_PAGE
        return torch.frombuffer(view, dtype=dtype, count=count, offset=start)

    def _give_back(self, size: int, block: mmap.mmap) -> None:
        if size + sum(each * len(self.free[each]) for each in tuple(self.free)) > RETAINED:
            self.free.clear()
        if size <= RETAINED:
            self.free[size].append(block)


pool = Pool()
