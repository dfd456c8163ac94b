"""How the kernels are compiled.

Kernels are serial, or share their work by :func:`kuramotognn.kernels.cpu.team.share`, and release the interpreter lock.
This compiles faster than numba's parallel loops, and it lets the threads be torch's own.
"""

import hashlib
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

from numba import njit

__all__ = ["inner", "kernel", "part"]

_internal = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
inner = njit(nogil=True, **_internal)  # Called by kernels, and cached with them.
part = njit(forceinline=True, **_internal)  # Of a kernel: a call would empty the vector registers.


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function on its first call, and keep the result on disk until any file of this folder changes.

    By itself numba looks at the file of the function only, not at those of what it is made of.
    """
    compiled = njit(cache=True, nogil=True)(function)
    index = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    if index is not None:
        index._source_stamp = (index._source_stamp, source_digest(Path(__file__).parent))
    return compiled


@lru_cache
def source_digest(folder: Path) -> str:
    """Changes with any source file of a folder."""
    digest = hashlib.sha256()
    for file in sorted(folder.glob("*.py")):
        digest.update(file.name.encode() + file.read_bytes())
    return digest.hexdigest()
