"""Scalar oscillators in time by the compiled kernels (csrc/oscillators.h), on NumPy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from kuramotognn.kernels.library import OscillatorsJob, kernels
from kuramotognn.kernels.memory import pool

MEAN_FIELD, SPARSE, DENSE = range(3)


def lanes(dtype: type[np.floating[Any]]) -> int:
    """Oscillators in a tile: 64 bytes."""
    return 64 // np.dtype(dtype).itemsize


def zeros(shape: tuple[int, ...], dtype: type[np.floating[Any]]) -> np.ndarray[Any, Any]:
    """Zeros that are aligned as the kernels want them."""
    kind = torch.float32 if dtype is np.float32 else torch.float64
    return pool.empty(int(np.prod(shape)), kind).zero_().numpy().reshape(shape)


class OscillatorKernels:
    """The arrays of a simulation (see csrc/api.h for their shapes), and what is done with them."""

    def __init__(self, **fields: Any) -> None:
        self.fields = fields  # Keeps the arrays alive.
        self._job = OscillatorsJob(**{name: _plain(value) for name, value in fields.items()})

    def advance(self, first: int, steps: int, noise: np.ndarray[Any, Any] | None) -> None:
        """Make the steps ``first`` to ``first + steps``."""
        self._run("oscillators_advance", start=first, steps=steps, noise=noise)

    def begin(self, stage: int, shift: float) -> None:
        """Set sines and cosines of a stage to those of the phases ``phase + shift * frequency``."""
        self._run("oscillators_begin", start=stage, shift=shift)

    def wrap(self, turns: np.ndarray[Any, Any]) -> None:
        """Bring phases into [−π, π] and add the turns taken off."""
        self._run("oscillators_wrap", turns=turns)

    def _run(self, kernel: str, **fields: Any) -> None:
        for name, value in (fields | {"threads": torch.get_num_threads()}).items():
            setattr(self._job, name, _plain(value))
        kernels()(kernel, self._job)


def _plain(value: Any) -> Any:
    """The address of an array's numbers; anything else as it is."""
    return value.ctypes.data if isinstance(value, np.ndarray) else value
