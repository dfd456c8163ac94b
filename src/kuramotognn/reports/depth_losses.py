"""What a deep flow loses against the best depth of the same model."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from kuramotognn.reports.leads import best_on_validation
from kuramotognn.reports.result_tables import FEWEST_SPLITS, Entry, Grid
from kuramotognn.reports.sections import p_value, signed
from kuramotognn.reports.statistics import compare

DEEP = (64.0, 100.0)


@dataclass(frozen=True)
class DepthLosses:
    """Of one model on one data set.

    Attributes:
        best: at the depth with the best validation accuracy.
        deep: at each of :data:`DEEP` that was run.
    """

    best: Entry
    deep: Sequence[Entry]

    @property
    def means(self) -> list[float]:
        """Mean differences from the best depth, on common splits."""
        return [fmean(self._paired(entry)) for entry in self.deep]

    @property
    def splits(self) -> int:
        """The largest number of common splits."""
        return max(len(self._paired(entry)) for entry in self.deep)

    @property
    def words(self) -> str:
        """Differences, their standard errors, and p where there are enough splits."""
        best = self.best.place.at["T"]
        told = ", ".join(f"{self._told(entry)} at T = {entry.place.at['T']:g}" for entry in self.deep)
        return f"{self.best.place.dataset} {told} against T = {best:g}"

    def _paired(self, entry: Entry) -> list[float]:
        common = sorted(entry.by_split.keys() & self.best.by_split.keys())
        return [entry.by_split[split] - self.best.by_split[split] for split in common]

    def _told(self, entry: Entry) -> str:
        differences = self._paired(entry)
        n = len(differences)
        error = f" ± {stdev(differences) / math.sqrt(n):.2f}" if n > 1 else ""
        tested = n >= FEWEST_SPLITS and entry is not self.best
        p = compare({"deep": entry.by_split, "best": self.best.by_split})[0].p if tested else math.nan
        return signed(fmean(differences)) + error + ("" if math.isnan(p) else f" ({p_value(p)})")


def losses_with_depth(grid: Grid, chosen: Callable[[Entry], bool]) -> DepthLosses | None:
    """Of the chosen rows, that with the best mean validation accuracy; None when too little was run."""
    rows = [[entry for entry in row if entry.summary] for _, row in grid.rows if chosen(row[0])]
    row = max((row for row in rows if row), key=lambda row: fmean(entry.validation for entry in row), default=[])
    best = best_on_validation(row)
    deep = [
        entry for entry in row if best and entry.place.at["T"] in DEEP and entry.by_split.keys() & best.by_split.keys()
    ]
    return DepthLosses(best, deep) if best and deep else None
