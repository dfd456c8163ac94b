"""How the kernels are compiled, and on how many threads they run."""

import os

# numba's OpenMP layer starts a parallel region in about 2 µs, its workqueue in about 100 µs; tbb is rarely installed.
os.environ.setdefault("NUMBA_THREADING_LAYER_PRIORITY", "omp tbb workqueue")
# libgomp reads this when numba loads it: wait some 20 µs for the other threads, then sleep. The default spins for
# milliseconds and takes a core from torch's own pool, or from another process.
os.environ.setdefault("GOMP_SPINCOUNT", "10000")

import numba
from numba import njit, prange

__all__ = ["loop", "parallel_loop", "parallel_sweep", "prange", "sweep", "use_threads"]

# Only `prange` is wanted: numba's other parallel rewrites cost compile time.
ONLY_PRANGE = {
    "prange": True,
    "fusion": False,
    "numpy": False,
    "setitem": False,
    "reduction": False,
    "comprehension": False,
    "inplace_binop": False,
    "stencil": False,
}
# Plain loops (attention, sparse features): `contract` gives FMA, `reassoc` lets dot products vectorise. No
# `nnan` or `ninf`: NaN and inf must reach the output. The flow's kernels use explicit lanes and need no such licence.
LOOP_MATH = {"contract", "reassoc", "nsz"}

sweep = njit(cache=True)
parallel_sweep = njit(cache=True, parallel=ONLY_PRANGE, nogil=True)
loop = njit(cache=True, fastmath=LOOP_MATH)
parallel_loop = njit(cache=True, fastmath=LOOP_MATH, parallel=ONLY_PRANGE, nogil=True)


def use_threads(count: int) -> None:
    """Threads for the kernels called from this Python thread (numba keeps the number per thread)."""
    numba.set_num_threads(max(1, min(count, numba.config.NUMBA_NUM_THREADS)))
