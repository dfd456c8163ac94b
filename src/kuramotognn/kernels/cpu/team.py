"""A team of threads: torch's own OpenMP team where it can be had, threads of ours elsewhere.

After each of its operators torch's idle threads spin for milliseconds, so as to start the next one at once. A second
pool would have to share the cores with them just then. GNU OpenMP's ``GOMP_parallel`` in the library that torch has
loaded hands work to the very threads that spin.
"""

import ctypes
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch

_Callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Teams:
    """What this process can run teams with."""

    def __init__(self) -> None:
        self.gomp = _loaded_gomp()
        self.pool: ThreadPoolExecutor | None = None

    def forget_threads(self) -> None:
        """A forked child has none of its parent's threads, and GNU OpenMP hangs in it."""
        self.gomp = self.pool = None


def run_team(work: Callable[[], None], threads: int) -> None:
    """Run ``work`` once on each of ``threads`` threads, this one among them, and wait for all. It must not raise."""
    if _teams.gomp is not None:
        _teams.gomp.GOMP_parallel(_Callback(lambda _: work()), None, threads, 0)
        return
    if _teams.pool is None:
        _teams.pool = ThreadPoolExecutor(max_workers=64, thread_name_prefix="kuramotognn")
    others = [_teams.pool.submit(work) for _ in range(threads - 1)]
    work()
    for other in others:
        other.result()


def _loaded_gomp() -> ctypes.CDLL | None:
    """The GNU OpenMP library beside torch's own, which torch has loaded; None where torch came without one."""
    for path in sorted((Path(torch.__file__).parent / "lib").glob("libgomp*.so*")):
        gomp = ctypes.CDLL(str(path))
        gomp.GOMP_parallel.argtypes = [_Callback, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint]
        gomp.GOMP_parallel.restype = None
        return gomp
    return None


_teams = _Teams()
os.register_at_fork(after_in_child=_teams.forget_threads)
