"""Where a model's settings are worth searching: plain data that a tuner reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class Uniform:
    """Any number from ``low`` to ``high``."""

    low: float
    high: float


@dataclass(frozen=True)
class LogUniform:
    """Any number from ``low`` to ``high``, every factor equally likely."""

    low: float
    high: float


@dataclass(frozen=True)
class Choice:
    """One of ``options``."""

    options: tuple[str | int | float | bool | tuple[float, ...] | None, ...]


Range: TypeAlias = Uniform | LogUniform | Choice
#: Dotted names of settings, as in a config file, and where to look: ``{"model.time": Uniform(1.0, 16.0)}``.
SearchSpace: TypeAlias = Mapping[str, Range]
