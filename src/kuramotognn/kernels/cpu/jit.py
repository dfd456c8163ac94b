"""How the kernels are compiled, and how they share the work.

Kernels are serial and release the interpreter lock; threads of our own run them side by side on shares that never add
to the same number, so the bits do not depend on how many threads there are. This compiles faster than numba's parallel
loops and brings no second OpenMP pool into the process, whose waiting threads would take the cores from torch's.
"""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numba import njit

__all__ = ["kernel", "loop", "share_out", "share_rows", "thread_count"]

# Loops over plain arrays (attention, sparse features): `contract` gives FMA, `reassoc` lets dot products vectorise. No
# `nnan` or `ninf`: NaN and inf must reach the output. The flow's kernels use explicit lanes and need no such licence.
LOOP_MATH = {"contract", "reassoc", "nsz"}

kernel = njit(cache=True, nogil=True)
loop = njit(cache=True, nogil=True, fastmath=LOOP_MATH)

_pool: ThreadPoolExecutor | None = None


def thread_count() -> int:
    """As many threads as torch uses: one setting for the whole process."""
    return torch.get_num_threads()


def share_out(function: Callable[..., None], shares: Iterable[tuple[object, ...]]) -> None:
    """Call ``function(*share)`` for every share, on :func:`thread_count` threads, this one among them."""
    waiting = list(shares)
    helpers = min(thread_count(), len(waiting)) - 1
    if helpers <= 0:
        for share in waiting:
            function(*share)
        return
    waiting.reverse()

    def work() -> None:
        while True:
            try:
                share = waiting.pop()  # Atomic: whoever is free takes the next share.
            except IndexError:
                return
            function(*share)

    others = [_executor().submit(work) for _ in range(helpers)]
    try:
        work()
    finally:
        for other in others:
            other.result()


def share_rows(function: Callable[..., None], bounds: np.ndarray[Any, Any], *arguments: object) -> None:
    """Call ``function(lo, hi, *arguments)`` on ranges of rows of about equal work, one for each thread.

    ``bounds`` are the fine-grained shares of equal work of a layout.
    """
    picked = bounds[np.linspace(0, bounds.size - 1, thread_count() + 1).astype(np.intp)]
    share_out(function, [(lo, hi, *arguments) for lo, hi in pairwise(picked) if lo < hi])


def _executor() -> ThreadPoolExecutor:
    global _pool
    if _pool is None:
        _pool = ThreadPoolExecutor(max_workers=64, thread_name_prefix="kuramotognn")
    return _pool


def _forget_pool() -> None:
    global _pool
    _pool = None


# A forked child has none of its parent's threads.
os.register_at_fork(after_in_child=_forget_pool)
