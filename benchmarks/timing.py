"""Timing on a shared machine: interleaved, several repeats, ratios within one run."""

from __future__ import annotations

import gc
import resource
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


def interleaved(
    candidates: dict[str, Callable[[], object]],
    repeats: int,
    *,
    quick: dict[str, int] | None = None,
    warm: bool = False,
) -> dict:
    """Seconds of each candidate, taken turn by turn; the first one is what ratios refer to.

    ``quick`` says how often a short candidate is run within one turn (its median counts); ``warm`` that each candidate
    has run before.
    """
    for run in () if warm else candidates.values():
        run()
    seconds: dict[str, list[float]] = {name: [] for name in candidates}
    for _ in range(repeats):
        for name, run in candidates.items():
            gc.collect()  # Not between the runs of a turn: it empties the caches, which training finds warm.
            inner = (quick or {}).get(name, 1)
            seconds[name].append(statistics.median(once(run) for _ in range(inner)))
    reference = next(iter(seconds.values()))
    return {name: summary(values, reference) for name, values in seconds.items()}


def once(run: Callable[[], object]) -> float:
    """Seconds of one call."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def summary(values: list[float], reference: list[float]) -> dict[str, object]:
    """Median seconds, and the ratio to the reference of the same turn with its spread."""
    ratios = [value / base for value, base in zip(values, reference, strict=True)]
    return {
        "seconds": statistics.median(values),
        "ratio": statistics.median(ratios),
        "ratio_range": [min(ratios), max(ratios)],
        "repeats": len(values),
    }


@contextmanager
def memory_watch() -> Iterator[list[int]]:
    """The largest growth of resident memory inside the block, in bytes, looked at every 5 ms (Linux)."""
    page, statm = resource.getpagesize(), Path("/proc/self/statm")

    def resident() -> int:
        return int(statm.read_text().split()[1]) * page

    before, growth, done = resident(), [0], threading.Event()

    def watch() -> None:
        while not done.wait(0.005):
            growth[0] = max(growth[0], resident() - before)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield growth
    finally:
        done.set()
        watcher.join()
