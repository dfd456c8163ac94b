"""Which code does the arithmetic: fused kernels where they can run, torch everywhere else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Literal, TypeAlias

import torch
from torch import Tensor

from kuramotognn.checks import check_choice

Backend: TypeAlias = Literal["auto", "fused", "torch"]
BACKENDS: tuple[Backend, ...] = ("auto", "fused", "torch")

_HAS_NUMBA = find_spec("numba") is not None
_chosen: Backend = "auto"


def set_backend(name: Backend) -> None:
    """Choose for the whole process: ``fused`` CPU kernels, ``torch``, or ``auto`` (fused wherever it can run)."""
    global _chosen
    check_choice("backend", name, BACKENDS)
    if name == "fused" and (reason := why_not_fused()):
        raise ValueError(f"backend 'fused' cannot be used here: {reason}; take 'auto' or 'torch'")
    _chosen = name


@contextmanager
def use_backend(name: Backend) -> Iterator[None]:
    """Choose for the duration of a ``with`` block."""
    before = _chosen
    set_backend(name)
    try:
        yield
    finally:
        set_backend(before)


def backend_in_use(device: str | torch.device = "cpu") -> str:
    """What float32 tensors on ``device`` are computed with: ``fused`` or ``torch``."""
    on_cpu = torch.device(device).type == "cpu"
    return "fused" if on_cpu and _chosen != "torch" and not why_not_fused() else "torch"


def runs_fused(x: Tensor) -> bool:
    """Whether the fused kernels take this tensor."""
    return _chosen != "torch" and x.is_cpu and x.dtype in (torch.float32, torch.float64) and why_not_fused() is None


def why_not_fused() -> str | None:
    """The reason that the fused kernels cannot run on this machine, if there is one."""
    return None if _HAS_NUMBA else "numba is not installed"
