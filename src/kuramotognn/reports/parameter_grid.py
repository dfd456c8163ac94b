"""Accuracy over depth and coupling strength: the maximum, which is what gets published, and the mean."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from scipy.stats import friedmanchisquare

from kuramotognn.models.registry import DEFAULT_MODEL
from kuramotognn.reports.leads import best_on_validation
from kuramotognn.reports.published import published, published_rows
from kuramotognn.reports.result_tables import Entry, ExperimentResult
from kuramotognn.reports.sections import Section

EXPERIMENT = "depth-coupling-grid"
#: The paper finds the coupling strength to matter little from here on.
LARGE_TIME = 8.0


@dataclass(frozen=True)
class ParameterGrid:
    """The grid of one data set.

    Attributes:
        dataset: its name.
        published: the paper's means by T and K.
        ours: our entries that were run.
    """

    dataset: str
    published: Mapping[tuple[float, float], float]
    ours: Sequence[Entry]

    @property
    def deep(self) -> list[Entry]:
        """Our entries from :data:`LARGE_TIME` on."""
        return [entry for entry in self.ours if entry.place.at["T"] >= LARGE_TIME]

    @property
    def spread(self) -> float:
        """Best minus worst of our means at large T."""
        return _spread([entry.mean for entry in self.deep])

    @property
    def spread_of_coupling(self) -> float:
        """The same at one T, the largest of them."""
        times = {entry.place.at["T"] for entry in self.deep}
        by_time = ([entry.mean for entry in self.deep if entry.place.at["T"] == time] for time in times)
        return max(map(_spread, by_time), default=0.0)

    @property
    def published_spread(self) -> float:
        """Best minus worst of the paper's means at large T."""
        return _spread([mean for (time, _), mean in self.published.items() if time >= LARGE_TIME])

    @property
    def deviation(self) -> float:
        """The standard deviation over splits of one of our entries at large T, the mean of them."""
        found = [entry.summary.std for entry in self.deep if entry.summary and not math.isnan(entry.summary.std)]
        return fmean(found) if found else math.nan

    @property
    def friedman(self) -> float:
        """p of the hypothesis that T and K change nothing at large T; splits are the blocks."""
        splits = set.intersection(*(set(entry.by_split) for entry in self.deep)) if self.deep else set()
        if len(self.deep) < 3 or len(splits) < 2:
            return math.nan
        return float(friedmanchisquare(*([e.by_split[split] for split in sorted(splits)] for e in self.deep)).pvalue)


def parameter_grids(result: ExperimentResult) -> list[ParameterGrid]:
    """One for each data set; of several presets the one with the best validation accuracy."""
    found = []
    for dataset in result.experiment.datasets:
        rows = [row for row in published_rows(EXPERIMENT) if row["dataset"] == dataset]
        paper = {(float(row["T"]), float(row["K"])): float(row["mean"]) for row in rows}
        entries = [e for grid in result.grids for e in grid.entries if e.summary and e.place.dataset == dataset]
        best = best_on_validation(entries)
        found.append(ParameterGrid(dataset, paper, [e for e in entries if best and e.place.model == best.place.model]))
    return found


def headline_section(result: ExperimentResult) -> Section:
    """How much of a published number is the choice of T and K."""
    grids, words, rows = parameter_grids(result), [], []
    for grid in grids:
        main = published("main-accuracy", dataset=grid.dataset, model=DEFAULT_MODEL, metric="test_accuracy")
        means = list(grid.published.values())
        deep = [mean for (time, _), mean in grid.published.items() if time >= LARGE_TIME]
        if main and main.mean == max(means):
            words.append(
                f"The published {main.mean:.2f} on {grid.dataset} is the maximum of a published grid of {len(means)} "
                f"settings of T and K; the mean of the {len(deep)} with T ≥ {LARGE_TIME:g} is {fmean(deep):.2f}."
            )
        paper = (
            f"{main.mean:.2f}" if main else "",
            *(f"{value:.2f}" for value in (max(means), fmean(means), fmean(deep))),
        )
        rows.append((grid.dataset, *paper, *_ours(grid)))
    words.append("The maximum of noisy numbers is biased upward, so the mean stands beside it. Test accuracy in %.")
    if not any(grid.ours for grid in grids):
        words.append("Our own grid has not been run yet.")
    elif result.all_stale:
        words.append("Our own grid is of stale runs.")
    deep_mean = f"mean, T ≥ {LARGE_TIME:g}"
    return Section(
        "The range of the headline",
        (" ".join(words),),
        (
            *("data set", "paper, main table", "paper's grid: maximum", "mean", deep_mean),
            *("our grid: chosen on validation", "maximum", "mean", deep_mean),
        ),
        rows,
    )


def _ours(grid: ParameterGrid) -> tuple[str, ...]:
    chosen = best_on_validation(grid.ours)
    if chosen is None:
        return ("–",) * 4
    means, deep = ([entry.mean for entry in entries] for entries in (grid.ours, grid.deep))
    at = ", ".join(f"{axis} = {value:g}" for axis, value in chosen.place.at.items())
    cells = (f"{chosen.mean:.2f} ({at})", f"{max(means):.2f}", f"{fmean(means):.2f}")
    return (*cells, f"{fmean(deep):.2f}" if deep else "–")


def _spread(values: Sequence[float]) -> float:
    return max(values) - min(values) if values else 0.0
