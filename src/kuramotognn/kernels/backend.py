"""Which code does the arithmetic: compiled kernels where they can run, torch everywhere else."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Literal, TypeAlias

import torch
from torch import Tensor

from kuramotognn.checks import check_choice
from kuramotognn.kernels import library

Backend: TypeAlias = Literal["auto", "fused", "torch"]
BACKENDS: tuple[Backend, ...] = ("auto", "fused", "torch")

_default: Backend = "auto"
_chosen: ContextVar[Backend | None] = ContextVar("kuramotognn_backend", default=None)


def set_backend(name: Backend) -> None:
    """Choose the default of the process: ``fused`` kernels, ``torch``, or ``auto`` (fused wherever it can run)."""
    global _default
    _check(name)
    _default = name


@contextmanager
def use_backend(name: Backend) -> Iterator[None]:
    """Choose for the duration of a ``with`` block, in this thread or task only."""
    _check(name)
    token = _chosen.set(name)
    try:
        yield
    finally:
        _chosen.reset(token)


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def chosen_backend() -> Backend:
    """What :func:`use_backend` or else :func:`set_backend` asked for."""
    return _chosen.get() or _default


def backend_in_use(device: str | torch.device = "cpu") -> str:
    """What float32 tensors on ``device`` are computed with: ``fused`` or ``torch``."""
    on_cpu = torch.device(device).type == "cpu"
    return "fused" if on_cpu and chosen_backend() != "torch" and library.PROBLEM is None else "torch"


def runs_fused(x: Tensor) -> bool:
    """Whether the compiled kernels take this tensor."""
    if chosen_backend() == "torch" or not x.is_cpu or x.dtype not in (torch.float32, torch.float64):
        return False
    if library.PROBLEM is not None:
        _tell_once(library.PROBLEM)
    return library.PROBLEM is None


def widened(x: Tensor) -> Tensor:
    """float16 and bfloat16 as float32: sums over neighbours and steps need its digits."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


@cache
def _tell_once(reason: str) -> None:
    warnings.warn(f"computing with torch, several times slower than compiled kernels: {reason}", stacklevel=3)


def _check(name: Backend) -> None:
    check_choice("backend", name, BACKENDS)
    if name == "fused" and library.PROBLEM is not None:
        raise ValueError(f"backend 'fused' cannot be used here: {library.PROBLEM}; take 'auto' or 'torch'")
