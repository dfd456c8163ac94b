"""Scratch memory that is used again."""

import math
import mmap
import os
import sys
import threading
from contextlib import suppress

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
        self._shelves = {}  # size: [(buffer, where it is aligned)]
        self._lock = threading.Lock()

    def empty(self, shape, dtype):
        """An uninitialised C-contiguous array, aligned to a cache line."""
        dtype = np.dtype(dtype)
        size = _rounded(math.prod(shape) * dtype.itemsize)
        with self._lock:
            for buffer, skip in self._shelves.get(size, ()):
                if sys.getrefcount(buffer) == FREE:
                    return np.ndarray(shape, dtype, buffer, skip)
            buffer, skip = self._added(size)
            return np.ndarray(shape, dtype, buffer, skip)

    def renew_lock(self):
        """A child may have been forked while another thread of its parent held the lock."""
        self._lock = threading.Lock()

    def zeros(self, shape: tuple[int, ...], dtype: type[np.generic]) -> Array:
        """The same, filled with zeros."""
        out = self.empty(shape, dtype)
        out.fill(0)
        return out

    @property
    def size(self):
        """Bytes of all buffers."""
        return sum(buffer.size for shelf in self._shelves.values() for buffer, _ in shelf)

    def clear(self):
        """Forget every free buffer."""
        with self._lock:
            self._make_room(0)

    def _added(self, size):
        align = HUGE_PAGE if size >= HUGE_FROM else 64
        self._make_room(self.retain_bytes - size)  # Before growing, so that the peak stays bounded.
        buffer = _fresh(size + align)
        self._shelves.setdefault(size, []).append((buffer, -buffer.ctypes.data % align))
        return self._shelves[size][-1]

    def _make_room(self, wanted):
        """Forget free buffers, small ones first, until all have no more than so many bytes: what is lost costs time."""
        retained = self.size
        for size in sorted(self._shelves):
            kept = []
            for buffer, skip in self._shelves[size]:
                if retained > wanted and sys.getrefcount(buffer) == FREE:
                    retained -= buffer.size
                else:
                    kept.append((buffer, skip))
            self._shelves[size] = kept


def _references():
    """To a free buffer while it is looked at: its shelf's, the variable's, and maybe the counting call's."""
    shelf = [(np.empty(0), 0)]
    return next(sys.getrefcount(buffer) for buffer, _ in shelf)


FREE = _references()


def _rounded(size):
    """A size up to a sixteenth larger: five leading binary digits, then zeros."""
    step = 1 << max(size.bit_length() - 5, 12)
    return -(-size // step) * step


def _fresh(size):
    """New bytes; on huge pages where they are worth it and the system has them (Linux)."""
    if size < HUGE_PAGE or not hasattr(mmap, "MADV_HUGEPAGE"):
        return np.empty(size, np.uint8)
    pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(OSError):  # A kernel without them.
        pages.madvise(mmap.MADV_HUGEPAGE)
    # Its base is not an array, so that arrays made from it refer to itself and count as users.
    return np.frombuffer(pages, np.uint8)


workspace = Workspace()
os.register_at_fork(after_in_child=workspace.renew_lock)
