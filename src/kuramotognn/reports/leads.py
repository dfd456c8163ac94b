"""Where KuramotoGNN leads: its difference from the best other model in each column of a table."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kuramotognn.models.registry import DEFAULT_MODEL
from kuramotognn.reports.published import title
from kuramotognn.reports.result_tables import Entry, ExperimentResult
from kuramotognn.reports.sections import Section, counted, p_value, signed
from kuramotognn.reports.statistics import LEVEL, compare

COMPARED = ("main-accuracy", "labels-per-class", "depth", "heterophilic-webkb")
"""Experiments in which KuramotoGNN is compared with other models."""


@dataclass(frozen=True)
class Lead:
    """KuramotoGNN against the best other model in one column of a table, on the splits that all models there have.

    Attributes:
        ours: of the KuramotoGNN rows, the one with the best validation accuracy.
        best: of the other models, the one with the best mean.
        p: of the paired Wilcoxon test, corrected by Holm over all other models; NaN for too few splits.
        others: how many other models there are.
        published: whether KuramotoGNN has the best mean in the paper; None where the paper has no number.
    """

    ours: Entry
    best: Entry
    p: float
    others: int
    published: bool | None

    @property
    def difference(self) -> float:
        """Of the means."""
        return self.ours.mean - self.best.mean

    @property
    def ahead(self) -> bool:
        """Whether KuramotoGNN is significantly better."""
        return self.difference > 0 and self.p < LEVEL

    @property
    def behind(self) -> bool:
        """Whether it is significantly worse."""
        return self.difference < 0 and self.p < LEVEL

    @property
    def splits(self) -> int:
        """Splits that are compared."""
        return len(self.ours.by_split)

    @property
    def where(self) -> str:
        """The column in words."""
        place = self.ours.place
        return " ".join([place.dataset, *(f"{axis} = {value:g}" for axis, value in place.at.items())])

    @property
    def words(self) -> str:
        """The difference in words."""
        return f"{self.where} {signed(self.difference)} against {title(self.best.place.model)} ({p_value(self.p)})"


def is_ours(entry: Entry) -> bool:
    """Whether an entry is of KuramotoGNN, with any preset."""
    return entry.place.model.partition("@")[0] == DEFAULT_MODEL


def best_on_validation(entries: Iterable[Entry]) -> Entry | None:
    """The entry with the best validation accuracy, of those that were run; test accuracy chooses nothing."""
    run = [entry for entry in entries if entry.summary and not math.isnan(entry.validation)]
    return max(run, key=lambda entry: entry.validation, default=None)


def leads(result: ExperimentResult) -> list[Lead]:
    """One for each column in which KuramotoGNN and another model were run."""
    found = []
    for grid in result.grids:
        for column in range(len(grid.columns)):
            entries = [row[column] for _, row in grid.rows]
            # The main table has the cells with 20 labels.
            if result.experiment.name != "labels-per-class" or entries[0].place.at["labels"] < 20:
                found += _lead(entries)
    return found


def _lead(entries: Sequence[Entry]) -> list[Lead]:
    ours = best_on_validation(entry for entry in entries if is_ours(entry))
    others = [entry for entry in entries if not is_ours(entry) and entry.summary]
    if ours is None or not others:
        return []
    best = max(others, key=lambda entry: entry.mean)
    by_split = {entry.place.model: entry.by_split for entry in (ours, *others)}
    pairs = {pair.second: pair.corrected for pair in compare(by_split, ours.place.model)}
    # The smallest p that Wilcoxon's test can give on so few splits, corrected.
    decidable = len(others) * 2.0 ** (1 - len(ours.by_split)) < LEVEL
    p = pairs[best.place.model] if decidable else math.nan
    papers = [entry.paper.mean for entry in entries if entry.paper and not is_ours(entry)]
    published = ours.paper.mean > max(papers) if ours.paper and papers else None
    return [Lead(ours, best, p, len(others), published)]


def leads_section(results: Mapping[str, ExperimentResult]) -> Section | None:
    """Where KuramotoGNN leads, experiment by experiment; None when none of them is asked for."""
    rows = []
    for name in (name for name in COMPARED if name in results):
        found = leads(results[name])
        lists = (
            [lead for lead in found if lead.ahead],
            [lead for lead in found if lead.difference > 0 and not lead.ahead],
            [lead for lead in found if lead.behind],
        )
        title = results[name].experiment.title + (" (stale runs)" if results[name].all_stale else "")
        rows.append((title, _cells(found), *(_listed(each) if found else "–" for each in lists)))
    if not rows:
        return None
    return Section(
        "Where KuramotoGNN leads",
        (
            "Cells are columns of the tables below. A number is the difference in points of test accuracy from the "
            "best other model, on the splits that all models of the cell have. Of several KuramotoGNN rows the one "
            "with the best validation accuracy is compared. The best other model is the one with the best test "
            "accuracy, which favours the others.",
        ),
        ("experiment", "cells", "significantly ahead", "best mean, not significantly", "significantly behind"),
        rows,
        (
            "Significant: p < 0.05 in the paired Wilcoxon test over splits, corrected by Holm over the other models of "
            "the cell. Cells with too few common splits for that (below 6 for one other model, 9 for seven) are not "
            "tested. Splits of one graph share nodes, so the p-values are optimistic.",
        ),
    )


def _cells(found: Sequence[Lead]) -> str:
    if not found:
        return "not run yet"
    untested = sum(math.isnan(lead.p) for lead in found)
    return counted(len(found), "cell") + (f", {untested} of them not tested" if untested else "")


def _listed(found: Sequence[Lead]) -> str:
    if not found:
        return "none"
    by_dataset: dict[str, list[str]] = {}
    for lead in found:
        values = "".join(f"{axis} = {value:g} " for axis, value in lead.ours.place.at.items())
        by_dataset.setdefault(lead.ours.place.dataset, []).append(values + signed(lead.difference))
    return f"{len(found)}: " + "; ".join(f"{dataset} {', '.join(own)}" for dataset, own in by_dataset.items())
