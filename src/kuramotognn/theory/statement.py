"""A statement of the paper and its checks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from kuramotognn.plots.panels import Line, Panel


@dataclass(frozen=True)
class Check:
    """A number compared with a tolerance.

    Attributes:
        claim: the claim.
        measured: the measured number.
        relation: how it must compare with the tolerance.
        tolerance: the tolerance.
        as_written: whether the claim is worded as in the paper and known to fail; ``measured`` is a counter-example.
    """

    claim: str
    measured: float
    relation: Literal["≤", "≥"]
    tolerance: float
    as_written: bool = False

    @property
    def holds(self) -> bool:
        """Whether the number is within the tolerance."""
        return self.measured <= self.tolerance if self.relation == "≤" else self.measured >= self.tolerance

    @property
    def expected(self) -> bool:
        """Whether a claim holds, or fails if it is known to fail."""
        return self.holds != self.as_written

    @property
    def verdict(self) -> str:
        """The outcome in a few words, for tables."""
        if self.as_written:
            return "not refuted" if self.holds else "fails as written"
        return "holds" if self.holds else "FAILS"

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self) | {"verdict": self.verdict, "expected": self.expected}


@dataclass(frozen=True)
class Finding:
    """The result of an experiment."""

    checks: tuple[Check, ...]
    panels: tuple[Panel, ...]


@dataclass(frozen=True)
class Statement:
    """A statement of the paper.

    Attributes:
        name: name on the command line.
        place: place in the paper.
        says: the statement.
        verdict: whether it holds, under which assumptions, and what holds otherwise.
        run: the experiment.
    """

    name: str
    place: str
    says: str
    verdict: str
    run: Callable[[], Finding]


def slope(x: ArrayLike, y: ArrayLike) -> float:
    """The slope of log y against log x by least squares."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def line(label: str, x: Iterable[float], y: Iterable[float], *, reference: bool = False) -> Line:
    """A curve of a figure."""
    return Line(label, tuple(map(float, x)), tuple(map(float, y)), reference)
