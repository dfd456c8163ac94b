"""How the kernels are compiled.

Kernels are serial, or share their work by :func:`kuramotognn.kernels.cpu.team.share`, and release the interpreter lock.
This compiles faster than numba's parallel loops, and it lets the threads be torch's own.
"""

from numba import njit

__all__ = ["inner", "kernel", "part"]

kernel = njit(cache=True, nogil=True)
_internal = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
inner = njit(nogil=True, **_internal)  # Called by kernels, and cached with them.
part = njit(forceinline=True, **_internal)  # Of a kernel: a call would empty the vector registers.
