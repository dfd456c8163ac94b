"""The compiled kernels (``csrc/``) through ctypes: which instruction set, whose threads, and the jobs they take."""

from __future__ import annotations

import ctypes
import os
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from kuramotognn.checks import check_choice

FILE = Path(os.environ.get("KURAMOTOGNN_LIBRARY") or Path(__file__).with_name("libkuramotognn.so"))
ISA = "KURAMOTOGNN_ISA"  # The environment variable that names the instruction set; the best at hand unless set.


class Job(ctypes.Structure):
    """A struct of csrc/api.h; tensors are passed as the addresses of their numbers, and the caller keeps them alive."""

    def __init__(self, **fields: Any) -> None:
        plain = {name: value.data_ptr() if isinstance(value, Tensor) else value for name, value in fields.items()}
        super().__init__(**plain)


def _job(declaration: str) -> type[Job]:
    """A struct with the fields of ``"type: names; ..."``."""
    types = {"double": ctypes.c_double, "int64": ctypes.c_int64, "int32": ctypes.c_int32, "pointer": ctypes.c_void_p}
    parts = (part.split(":") for part in declaration.split(";"))
    fields = [(name, types[kind.strip()]) for kind, names in parts for name in names.split()]
    return type("Job", (Job,), {"_fields_": fields})


FlowJob = _job(
    """pointer: layout table; double: strength; int64: channels steps stages segment;
    int32: is_double linear only_slope threads;
    pointer: a x source out tape grad grad_a grad_x grad_source grad_strength scratch"""
)
SparseJob = _job(
    "pointer: layout; int64: channels; int32: is_double transposed threads unused; pointer: values left dense out"
)
AttentionJob = _job(
    """pointer: layout; int64: heads width; int32: is_double threads;
    pointer: keys queries weight a shares grad_a grad_keys grad_queries grad_weight scratch"""
)
OscillatorsJob = _job(
    """int64: start steps stages delay tiles block blocks kept summed entries;
    double: cosine sine step kick inertia shift; int32: is_double kind threads unused;
    pointer: reach weights scale rowptr place weight matrix noise
        phase frequency slope velocity stage_velocity velocity_slope features live sums turns"""
)


class Kernels:
    """The compiled functions for one instruction set."""

    def __init__(self, library: ctypes.CDLL, isa: str) -> None:
        self.library, self.isa = library, isa
        getattr(library, f"kg_flow_scratch_{isa}").restype = ctypes.c_int64

    def __call__(self, name: str, job: Job) -> Any:
        """Run a function on a job; other Python threads go on meanwhile."""
        return getattr(self.library, f"kg_{name}_{self.isa}")(ctypes.byref(job))


def _load() -> ctypes.CDLL:
    """The library; an OSError with a sentence where it cannot be used."""
    if not FILE.exists():
        raise OSError("the compiled kernels are missing, for no C++ compiler was found when the package was installed")
    library = ctypes.CDLL(str(FILE))
    library.kg_instruction_sets.restype, library.kg_sizes.restype = ctypes.c_char_p, ctypes.c_int64
    sizes = [library.kg_sizes(number) for number in range(4)]
    if sizes != [ctypes.sizeof(job) for job in (FlowJob, SparseJob, AttentionJob, OscillatorsJob)]:
        raise OSError("the compiled kernels are of another version; install the package again")
    library.kg_use_launcher.argtypes = [ctypes.c_void_p]
    library.kg_use_launcher(_torchs_launcher())
    # A forked child has none of its parent's threads, and GNU OpenMP hangs in it.
    os.register_at_fork(after_in_child=lambda: library.kg_use_launcher(None))
    return library


def _torchs_launcher() -> int | None:
    """The address of GOMP_parallel in the OpenMP library that torch has loaded; None where torch came without one."""
    for path in sorted((Path(torch.__file__).parent / "lib").glob("libgomp*.so*")):
        return ctypes.cast(ctypes.CDLL(str(path)).GOMP_parallel, ctypes.c_void_p).value
    return None


LIBRARY: ctypes.CDLL | None = None
PROBLEM: str | None = None  # why the compiled kernels cannot be used, if so
try:
    LIBRARY = _load()
except (OSError, AttributeError) as error:
    PROBLEM = str(error)


def instruction_sets() -> list[str]:
    """Those that the library holds and this processor has, the fastest first."""
    return LIBRARY.kg_instruction_sets().decode().split() if LIBRARY else []


@cache
def kernels() -> Kernels:
    """The compiled kernels for the fastest instruction set, or for the one that ``KURAMOTOGNN_ISA`` names."""
    if LIBRARY is None:
        raise RuntimeError(PROBLEM)
    isas = instruction_sets()
    chosen = os.environ.get(ISA) or isas[0]
    check_choice(ISA, chosen, tuple(isas))
    return Kernels(LIBRARY, chosen)
