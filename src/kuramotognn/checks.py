"""Shared argument validation. Each error names the value and what is allowed."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable
from numbers import Integral, Real

from torch import Tensor


def check_positive(name: str, value: float) -> None:
    """Raise ValueError unless the number is positive and finite."""
    if not 0 < value < math.inf:
        raise ValueError(f"{name} must be positive and finite, got {value}")


def check_number(name: str, value: object) -> None:
    """Raise ValueError unless the value is a positive, finite number."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ValueError(f"{name} must be a number, got {value!r}")
    check_positive(name, float(value))


def check_whole(name: str, value: object) -> None:
    """Raise ValueError unless the value is a positive whole number."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise ValueError(f"{name} must be a whole number, got {value!r}")
    check_positive(name, int(value))


def check_dropout(name: str, p: float) -> None:
    """Raise ValueError unless the dropout probability is at least 0 and below 1."""
    if not 0 <= p < 1:
        raise ValueError(f"{name} must be at least 0 and below 1, got {p}")


def check_finite(name: str, value: float) -> None:
    """Raise ValueError if the number is infinite or NaN."""
    if not -math.inf < value < math.inf:
        raise ValueError(f"{name} must be finite, got {value}")


def check_not_negative(name: str, value: float) -> None:
    """Raise ValueError unless the number is at least 0 and finite."""
    if not 0 <= value < math.inf:
        raise ValueError(f"{name} must be at least 0 and finite, got {value}")


def check_choice(name: str, value: str, choices: Iterable[str]) -> None:
    """Raise ValueError unless the value is one of the choices; the message suggests the nearest one."""
    known = list(choices)
    if value not in known:
        raise ValueError(f"{name} must be one of {', '.join(known)}, got {value!r}{did_you_mean(str(value), known)}")


def check_shape(name: str, tensor: Tensor, shape: tuple[int, ...]) -> None:
    """Raise ValueError unless the tensor has this shape."""
    if tuple(tensor.shape) != shape:
        raise ValueError(f"{name} must have shape {list(shape)}, got {list(tensor.shape)}")


def did_you_mean(value: str, choices: Iterable[str]) -> str:
    """``"; did you mean 'x'?"`` if one of the choices is close, else the empty string."""
    near = difflib.get_close_matches(value, list(choices), n=1, cutoff=0.5)
    return f"; did you mean {near[0]!r}?" if near else ""
