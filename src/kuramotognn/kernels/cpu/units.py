"""What kernels multiply by, on the way in and on the way out."""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from kuramotognn.kernels.cpu.layout import Array


class Units(NamedTuple):
    """The kernels' units in the caller's (see `stages`), and numbers in theirs."""

    step: float  # of time, and of gradients by the drive
    inward: np.floating[Any] | None  # what states are multiplied by on their way in; None: phases, in half turns
    outward: np.floating[Any]
    drive: np.floating[Any]
    coupling: np.floating[Any]
    t_coupling: np.floating[Any]  # on the way back
    grad_a: np.floating[Any]
    strength: np.floating[Any]  # of the linear field; phases have it in their couplings
    factor: np.floating[Any]
    one: np.floating[Any]
    coef: Array  # [S, S] Runge-Kutta table

    @classmethod
    def of_field(cls, linear: bool, strength: float, dtype: np.dtype[Any]) -> "Units":
        """One field has the caller's units, but for phases on their way in."""
        real = dtype.type
        one, pull, coef = real(1), real(strength), np.empty((0, 0), dtype)
        if linear:
            return cls(1.0, one, one, one, one, one, pull, pull, pull, one, coef)
        return cls(1.0, None, one, one, pull, pull, pull, real(0), one, one, coef)

    @classmethod
    def of_flow(cls, linear: bool, coefficients: Sequence[float], strength: float, dtype: np.dtype[Any]) -> "Units":
        """A flow counts time in steps, whose slopes' weights add up to their length, and phases in half turns."""
        real = dtype.type
        step, coef = _table(tuple(coefficients), real)
        one, pull = real(1), real(step * strength)
        if linear:
            return cls(step, one, one, real(step), one, one, pull, pull, pull, one, coef)
        half_turn, coupling = real(math.pi), real(step * strength / math.pi)
        return cls(step, None, half_turn, real(step / math.pi), coupling, pull, pull, real(0), half_turn, one, coef)


@lru_cache(maxsize=64)
def _table(coefficients: tuple[float, ...], real: type[np.floating[Any]]) -> tuple[float, Array]:
    """The length of a step, and its table in steps."""
    table = np.array(coefficients, np.float64).reshape(math.isqrt(len(coefficients)), -1)
    step = float(table[-1].sum())
    return step, np.ascontiguousarray(table / step, real)
