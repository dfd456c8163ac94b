"""The compiled kernels (``csrc/``) through ctypes: which instruction set, whose threads, and the jobs they take."""

from __future__ import annotations

import ctypes
import os
import struct
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from kuramotognn.checks import check_choice

FILE = Path(os.environ.get("KURAMOTOGNN_LIBRARY") or Path(__file__).with_name("libkuramotognn.so"))
ISA = "KURAMOTOGNN_ISA"  # The environment variable that names the instruction set; the best at hand unless set.
AGAIN = "install the package again"


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
        raise OSError(f"the compiled kernels are missing; {AGAIN} where there is GCC from version 12 on, or Clang")
    with FILE.open("rb") as file:
        header = file.read(64).ljust(64, b"\0")
    sections, size, count = struct.unpack("<40xQ10xHH2x", header)  # An ELF file ends with its table of sections.
    if header.startswith(b"\x7fELF\x02") and FILE.stat().st_size < sections + size * count:
        raise OSError(f"the file of the compiled kernels lacks its end; {AGAIN}")  # Loading it would end the process.
    library = ctypes.CDLL(str(FILE))
    library.kg_instruction_sets.restype, library.kg_sizes.restype = ctypes.c_char_p, ctypes.c_int64
    sizes = [library.kg_sizes(number) for number in range(4)]
    if sizes != [ctypes.sizeof(job) for job in (FlowJob, SparseJob, AttentionJob, OscillatorsJob)]:
        raise OSError(f"the compiled kernels are of another version; {AGAIN}")
    library.kg_use_launcher.argtypes = [ctypes.c_void_p]
    openmp = _torchs_openmp()
    library.kg_use_launcher(openmp and openmp.GOMP_parallel)
    if openmp:
        _prepare_forks(library, openmp)
    return library


def _torchs_openmp() -> ctypes.CDLL | None:
    """The GNU OpenMP library that torch has loaded; None where torch came without one."""
    paths = sorted((Path(torch.__file__).parent / "lib").glob("libgomp*.so*"))
    return ctypes.CDLL(str(paths[0])) if paths else None


def _prepare_forks(library: ctypes.CDLL, openmp: ctypes.CDLL) -> None:
    """End OpenMP's threads before a fork: the child has none of them, but would wait for them."""
    if hasattr(openmp, "omp_pause_resource_all"):  # As of OpenMP 5. 2 ends all threads; the next use starts others.
        os.register_at_fork(before=lambda: openmp.omp_pause_resource_all(2))
    else:
        told = "torch may hang in a forked process; call torch.set_num_threads(1) there, or start it by 'spawn'"
        os.register_at_fork(after_in_child=lambda: (library.kg_use_launcher(None), warnings.warn(told, stacklevel=2)))


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
        raise OSError(PROBLEM)
    isas = instruction_sets()
    chosen = os.environ.get(ISA) or isas[0]
    check_choice(ISA, chosen, tuple(isas))
    return Kernels(LIBRARY, chosen)
