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

    A buffer is free when nobody but this list refers to it. Views handed out (and tensors made from them) keep it
    taken for as long as they live, so nothing has to be given back by hand.
    """

    def __init__(self, retain_bytes=3 << 30):
        self.retain_bytes = retain_bytes
        self._buffers = []
        self._lock = threading.Lock()

    def empty(self, shape, dtype):
        """An uninitialised C-contiguous array, aligned to a cache line."""
        dtype = np.dtype(dtype)
        count = math.prod(shape)
        align = HUGE_PAGE if count * dtype.itemsize >= HUGE_FROM else 64
        with self._lock:
            buffer = self._take(count * dtype.itemsize + align)
            skip = -buffer.ctypes.data % align
            return buffer[skip : skip + count * dtype.itemsize].view(dtype).reshape(shape)

    def renew_lock(self):
        """A child may have been forked while another thread of its parent held the lock."""
        self._lock = threading.Lock()

    def zeros(self, shape: tuple[int, ...], dtype: type[np.generic]) -> Array:
        """The same, filled with zeros."""
        out = self.empty(shape, dtype)
        out.fill(0)
        return out

    def _take(self, size):
        fitting = [n for n, buffer in enumerate(self._buffers) if size <= buffer.size <= 2 * size + 4096]
        for n in sorted(fitting, key=lambda n: self._buffers[n].size):
            if self._is_free(n):
                return self._buffers[n]
        free = [n for n in range(len(self._buffers)) if self._is_free(n)]
        retained = sum(b.size for b in self._buffers)
        for n in reversed(free):  # make room before growing, so that the peak stays bounded
            if retained + size <= self.retain_bytes:
                break
            retained -= self._buffers[n].size
            del self._buffers[n]
        self._buffers.append(_fresh(size))
        return self._buffers[-1]

    def _is_free(self, n):
        """Nobody but this list (and, for the moment, the call that counts) refers to the buffer."""
        return sys.getrefcount(self._buffers[n]) == 2

    def clear(self):
        """Forget every free buffer."""
        with self._lock:
            self._buffers = [b for b in self._buffers if sys.getrefcount(b) > 3]


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
