"""Scratch memory that is used again."""

import math
import mmap
import os
import threading
from contextlib import suppress
from functools import lru_cache
from itertools import accumulate
from sys import getrefcount

import numpy as np

from kuramotognn.kernels.cpu.layout import Array

HUGE_PAGE = 2 << 20
HUGE_FROM = 128 << 10  # Bytes from which on a buffer lies on huge pages: with small ones, every few rows miss the TLB.


class Workspace:
    """Reuses big buffers between calls: touching fresh pages costs more here than the arithmetic.

    A buffer is free when nobody but this object refers to it. Views handed out (and tensors made from them) keep it
    taken for as long as they live, so nothing has to be given back by hand. Buffers come in rounded sizes, so that one
    is found without looking at all of them.
    """

    def __init__(self, retain_bytes=3 << 30):
        self.retain_bytes = retain_bytes
        self._shelves = {}  # size: its buffers
        self._uses = 0
        self._lock = threading.Lock()

    def empty(self, shape, dtype):
        """An uninitialised C-contiguous array, aligned to a cache line."""
        size = _room(shape, dtype)
        with self._lock:
            self._uses += 1
            for found in self._shelves.get(size, ()):
                if getrefcount(found.buffer) == FREE:
                    break
            else:
                found = self._added(size)
            found.used = self._uses
            return np.ndarray(shape, dtype, found.buffer, found.skip)

    def several(self, dtype, *sizes):
        """Flat arrays in one piece of memory, each aligned to a cache line."""
        total, pieces = _pieces(dtype, sizes)
        whole = self.empty(total, dtype)
        return [whole[piece] for piece in pieces]

    def renew_lock(self):
        """A child may have been forked while another thread of its parent held the lock."""
        self._lock = threading.Lock()

    def zeros(self, shape: tuple[int, ...], dtype: type[np.generic]) -> Array:
        """The same, filled with zeros."""
        out = self.empty(shape, dtype)
        out.fill(0)
        return out

    @property
    def buffers(self):
        """All of them, the one that was not asked for the longest time first."""
        everything = (kept for shelf in self._shelves.values() for kept in shelf)
        return sorted(everything, key=lambda kept: kept.used)

    @property
    def size(self):
        """Bytes of all buffers."""
        return sum(kept.buffer.size for kept in self.buffers)

    def clear(self):
        """Forget every free buffer."""
        with self._lock:
            self._make_room(0)

    def _added(self, size):
        self._make_room(self.retain_bytes - size)  # Before growing, so that the peak stays bounded.
        self._shelves.setdefault(size, []).append(_Kept(size))
        return self._shelves[size][-1]

    def _make_room(self, wanted):
        """Forget free buffers until all have no more than so many bytes, beginning with those not used for long."""
        retained = self.size
        for kept in self.buffers:
            if retained <= wanted:
                return
            if getrefcount(kept.buffer) == FREE:
                retained -= kept.buffer.size
                self._shelves[kept.size].remove(kept)


class _Kept:
    """A buffer, where in it the alignment is right, and when it was last asked for."""

    __slots__ = ("buffer", "size", "skip", "used")

    def __init__(self, size):
        align = HUGE_PAGE if size >= HUGE_FROM else 64
        self.buffer, self.size, self.used = _fresh(size + align), size, 0
        self.skip = -self.buffer.ctypes.data % align


@lru_cache
def _room(shape, dtype):
    """Bytes for such an array, and up to a sixteenth more: five leading binary digits, then zeros."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    step = 1 << max(size.bit_length() - 5, 12)
    return -(-size // step) * step


@lru_cache
def _pieces(dtype, sizes):
    """The shape of what holds arrays of these sizes, and where in it each of them is."""
    line = 64 // np.dtype(dtype).itemsize
    starts = [0, *accumulate(-(-size // line) * line for size in sizes)]
    return (starts[-1],), [slice(start, start + size) for start, size in zip(starts, sizes, strict=False)]


def _fresh(size):
    """New bytes; on huge pages where they are worth it and the system has them (Linux)."""
    if size < HUGE_PAGE or not hasattr(mmap, "MADV_HUGEPAGE"):
        return np.empty(size, np.uint8)
    pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(OSError):  # A kernel without them.
        pages.madvise(mmap.MADV_HUGEPAGE)
    # Its base is not an array, so that arrays made from it refer to itself and count as users.
    return np.frombuffer(pages, np.uint8)


_sample = _Kept(0)
FREE = getrefcount(_sample.buffer)  # References to a free buffer: its keeper's, and maybe the counting call's.
workspace = Workspace()
os.register_at_fork(after_in_child=workspace.renew_lock)
