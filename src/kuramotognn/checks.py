"""Checks that several doors share; each names the value and the remedy."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable

from torch import Tensor


def check_positive(name: str, value: float) -> None:
    """Refuse a number that must be positive and finite."""
    if not (value > 0 and math.isfinite(value)):
        raise ValueError(f"{name} must be positive and finite, got {value}")


def check_dropout(name: str, p: float) -> None:
    """Refuse a dropout that is not a probability below one."""
    if not 0 <= p < 1:
        raise ValueError(f"{name} must be at least 0 and below 1, got {p}")


def check_not_negative(name: str, value: float) -> None:
    """Refuse a number that must be zero or positive, and finite."""
    if not (value >= 0 and math.isfinite(value)):
        raise ValueError(f"{name} must be at least 0 and finite, got {value}")


def check_choice(name: str, value: str, choices: Iterable[str]) -> None:
    """Refuse a name that is not among the choices, and suggest the nearest."""
    known = list(choices)
    if value not in known:
        raise ValueError(f"{name} must be one of {', '.join(known)}, got {value!r}{did_you_mean(str(value), known)}")


def check_shape(name: str, tensor: Tensor, shape: tuple[int, ...]) -> None:
    """Refuse a tensor of another shape."""
    if tuple(tensor.shape) != shape:
        raise ValueError(f"{name} must have shape {list(shape)}, got {list(tensor.shape)}")


def did_you_mean(value: str, choices: Iterable[str]) -> str:
    """``"; did you mean 'x'?"`` when one of the choices is close, else nothing."""
    near = difflib.get_close_matches(value, list(choices), n=1, cutoff=0.5)
    return f"; did you mean {near[0]!r}?" if near else ""
