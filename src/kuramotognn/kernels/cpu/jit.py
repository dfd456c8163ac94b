"""How the kernels are compiled, and how they share the work.

Kernels are serial and release the interpreter lock; a team of threads runs them side by side on shares that never add
to the same number, so the bits do not depend on how many threads there are. This compiles faster than numba's parallel
loops, and it lets the team be torch's own (:mod:`kuramotognn.kernels.cpu.team`).
"""

import math
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numba import njit

from kuramotognn.kernels.cpu.team import run_team

__all__ = ["kernel", "part", "share_out", "share_rows", "thread_count"]

kernel = njit(cache=True, nogil=True)
part = njit(forceinline=True)  # Of a kernel: a call would empty the vector registers.


def thread_count() -> int:
    """As many threads as torch uses: one setting for the whole process."""
    return torch.get_num_threads()


SHARED_WORK = 3_000_000  # Numbers to be touched that are worth waking the other threads for: a millisecond's work.


def share_out(function: Callable[..., None], shares: Iterable[tuple[object, ...]], *, work: float = math.inf) -> None:
    """Call ``function(*share)`` for every share, on :func:`thread_count` threads, this one among them.

    Little ``work`` is not shared: waking a team and passing the interpreter's lock around would take longer.
    """
    waiting = list(shares)
    threads = min(thread_count(), len(waiting)) if work > SHARED_WORK else 1
    if threads <= 1:
        for share in waiting:
            function(*share)
        return
    waiting.reverse()
    failures: list[BaseException] = []

    def work() -> None:
        try:
            while not failures:
                try:
                    share = waiting.pop()  # Atomic: whoever is free takes the next share.
                except IndexError:
                    return
                function(*share)
        except BaseException as failure:
            failures.append(failure)

    run_team(work, threads)
    if failures:
        raise failures[0]


def share_rows(
    function: Callable[..., None], bounds: np.ndarray[Any, Any], *arguments: object, work: float = math.inf
) -> None:
    """Call ``function(lo, hi, *arguments)`` on ranges of rows of about equal work, one for each thread.

    ``bounds`` are the fine-grained shares of equal work of a layout.
    """
    threads, last = thread_count(), bounds.size - 1
    picked = [bounds[share * last // threads] for share in range(threads + 1)]
    share_out(function, [(lo, hi, *arguments) for lo, hi in pairwise(picked) if lo < hi], work=work)
