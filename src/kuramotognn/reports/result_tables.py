"""Tables of an experiment from the records of its runs, each number beside the paper's."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean
from typing import Any

from kuramotognn.reports.published import Published, published, title
from kuramotognn.reports.statistics import Comparison, Ranking, Summary, compare, rank_models, summarise
from kuramotognn.sweeps.catalogue import Experiment, Place
from kuramotognn.sweeps.cells import Case
from kuramotognn.sweeps.outcomes import FIRST_TUNING_SPLIT
from kuramotognn.sweeps.plan import Sweep
from kuramotognn.sweeps.records import Record, Records

#: Below this many common splits no difference could be significant in Wilcoxon's test at 5 %.
FEWEST_SPLITS = 6
WHOLE = ".0f"
"""Format of numbers without digits after the point, which are shown without their spread."""
#: Labels of the numbers of a case, their scale, and the format in which they are shown.
NUMBERS = {
    "test_accuracy": ("test accuracy, %", 100.0, ".2f"),
    "mean_evaluations": ("evaluations", 1.0, WHOLE),
    "epoch_evaluations": ("evaluations an epoch", 1.0, WHOLE),
    "epoch_ms": ("ms an epoch", 1.0, ".1f"),
    "evaluation_ms": ("ms an evaluation", 1.0, ".2f"),
    "dirichlet": ("Dirichlet energy", 1.0, ".2g"),
    "rayleigh": ("Rayleigh quotient", 1.0, ".2g"),
    "mad": ("MAD over neighbours", 1.0, ".2g"),
    "effective_rank": ("effective rank", 1.0, ".1f"),
}


@dataclass(frozen=True)
class Entry:
    """One number of one case.

    Attributes:
        place: where it stands.
        number: its name.
        samples: the numbers of all seeds, by split.
        validations: the validation accuracies of the same runs, where they have one.
        failed: why runs failed.
        paper: the paper's number.
    """

    place: Place
    number: str
    samples: Mapping[int, tuple[float, ...]]
    validations: Mapping[int, tuple[float, ...]]
    failed: tuple[str, ...]
    paper: Published | None

    @cached_property
    def by_split(self) -> dict[int, float]:
        """The mean over seeds on each split."""
        return {split: sum(values) / len(values) for split, values in self.samples.items()}

    @cached_property
    def summary(self) -> Summary | None:
        """Over splits, or over seeds where there is one split; None when nothing was run."""
        means = list(self.by_split.values())
        sample = means if len(means) > 1 else [value for values in self.samples.values() for value in values]
        return summarise(sample) if sample else None

    @property
    def mean(self) -> float:
        """The mean; NaN when nothing was run."""
        return self.summary.mean if self.summary else math.nan

    @property
    def validation(self) -> float:
        """The mean validation accuracy in %, by which settings are chosen; NaN where there is none."""
        means = [fmean(values) for values in self.validations.values()]
        return 100 * fmean(means) if means else math.nan

    @property
    def runs(self) -> int:
        """The number of runs."""
        return sum(len(values) for values in self.samples.values())

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's."""
        return self.summary.mean - self.paper.mean if self.summary and self.paper else None

    @property
    def within(self) -> bool | None:
        """Whether the paper's mean lies within our interval; None where there is no interval."""
        if not self.summary or not self.paper or math.isnan(self.summary.low):
            return None
        return self.summary.covers(self.paper.mean)


@dataclass(frozen=True)
class Grid:
    """A table: rows and columns of entries.

    Attributes:
        experiment: what it belongs to.
        heading: the data set and model it is about, where neither is a row or column.
        corner: what rows are.
        columns: headings.
        rows: heading and entries of each row.
        comparisons: of the rows' models, by column.
        ranking: of the rows' models over the data sets that are columns.
    """

    experiment: Experiment
    heading: str
    corner: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Entry, ...]], ...]
    comparisons: Mapping[str, Sequence[Comparison]]
    ranking: Ranking | None = None

    @property
    def entries(self) -> list[Entry]:
        """All entries."""
        return [entry for _, row in self.rows for entry in row]

    @property
    def empty(self) -> bool:
        """Whether nothing of it was run."""
        return not any(entry.runs or entry.failed for entry in self.entries)

    @property
    def coverage(self) -> str:
        """How many of how many: splits and seeds that were run, beside the protocol's and the paper's."""
        seen = [entry for entry in self.entries if entry.summary]
        splits = sorted({len(entry.by_split) for entry in seen})
        seeds = sorted({max(1, entry.runs // max(1, len(entry.by_split))) for entry in seen})
        of = self.experiment.most_splits
        words = f"{_span(splits)} of {of} split{'s' * (of > 1)}"
        if self.experiment.outcome == "accuracy":
            words += f", {_span(seeds)} of the paper's 20 seeds"
        failed = sum(bool(entry.failed) and not entry.summary for entry in self.entries)
        empty = sum(not entry.failed and not entry.summary for entry in self.entries)
        for count, what in ((failed, "failed"), (empty, "not run")):
            words += f"; {count} of {len(self.entries)} cells {what}" if count else ""
        return words

    @property
    def has_paper(self) -> bool:
        """Whether the paper has numbers to compare with."""
        return any(entry.paper for entry in self.entries)


def turned(grid: Grid) -> Grid:
    """Rows as columns; comparisons of models belong to columns and are left out."""
    rows = zip(grid.columns, zip(*(row for _, row in grid.rows), strict=True), strict=True)
    names = tuple(name for name, _ in grid.rows)
    return replace(grid, corner=grid.experiment.columns, columns=names, rows=tuple(rows), comparisons={}, ranking=None)


def compact(grid: Grid) -> Grid:
    """A table without rows and columns of which nothing was run."""
    kept = [k for k in range(len(grid.columns)) if any(row[k].summary for _, row in grid.rows)]
    rows = tuple((name, tuple(row[k] for k in kept)) for name, row in grid.rows if any(entry.summary for entry in row))
    return replace(grid, columns=tuple(grid.columns[k] for k in kept), rows=rows)


@dataclass(frozen=True)
class ExperimentResult:
    """All tables of an experiment, and where their numbers come from.

    Attributes:
        experiment: what was run.
        grids: its tables.
        records: the runs in them.
        stale: how many runs were found whose numbers today's code does not reproduce. They are left out, unless there
            are no others: then they are shown, and marked.
    """

    experiment: Experiment
    grids: tuple[Grid, ...]
    records: tuple[Record, ...]
    stale: int = 0

    @property
    def provenance(self) -> dict[str, str]:
        """Versions, commits and machines of the runs."""
        left_out = {"left out": f"{self.stale} stale runs"} if self.stale and not self.all_stale else {}
        return provenance_of(self.records) | left_out

    @property
    def all_stale(self) -> bool:
        """Whether the tables show stale runs, for want of others."""
        return self.stale > 0 and self.stale == len(self.records)


def experiment_result(
    experiment: Experiment, records: Records, tuned: Mapping[tuple[str, str], Mapping[str, Any]] | None = None
) -> ExperimentResult:
    """Put the records of an experiment's cases into its tables."""
    return _result(experiment, [(place, place.case(tuned)) for place in experiment.places()], records)


def sweep_result(sweep: Sweep, records: Records) -> ExperimentResult:
    """The same for the cases of a sweep."""
    return _result(sweep.experiment, sweep.cases, records)


def _result(experiment: Experiment, cases: Sequence[tuple[Place, Case]], records: Records) -> ExperimentResult:
    found = [[record for record in records.of(case) if record["split"] < FIRST_TUNING_SPLIT] for _, case in cases]
    current = [
        [record for record in own if case.is_current(record)] for own, (_, case) in zip(found, cases, strict=True)
    ]
    shown = current if any(current) else found  # Stale runs and others never meet in a table.
    entries = [
        _entry(place, number, own)
        for (place, _), own in zip(cases, shown, strict=True)
        for number in experiment.numbers
    ]
    stale = sum(map(len, found)) - sum(map(len, current))
    return ExperimentResult(experiment, _grids(experiment, entries), tuple(itertools.chain(*shown)), stale)


def _entry(place: Place, number: str, records: Sequence[Record]) -> Entry:
    samples: dict[int, tuple[float, ...]] = {}
    validations: dict[int, tuple[float, ...]] = {}
    for record in records:
        result, split = record.get("result", {}), record["split"]
        if number in result:
            # A table has one protocol; a case names it in its settings, so this cannot fail unless a file was changed.
            if result["protocol"] != place.experiment.protocol:
                raise ValueError(f"a result of protocol {result['protocol']} cannot stand in {place.experiment.name}")
            samples[split] = (*samples.get(split, ()), scale(number) * result[number])
            if "validation_accuracy" in result:
                validations[split] = (*validations.get(split, ()), result["validation_accuracy"])
    failed = tuple(str(record["failed"]) for record in records if "failed" in record)
    return Entry(place, number, samples, validations, failed, published_number(place, number))


def published_number(place: Place, number: str) -> Published | None:
    """The paper's number at a place of an experiment."""
    experiment = place.experiment
    if experiment.published is None:
        return None
    axes = {axis.published: place.at[axis.name] for axis in experiment.axes if axis.published}
    model = None if experiment.outcome == "statistics" else place.model
    return published(experiment.published, dataset=place.dataset, model=model, metric=number, **axes)


def _grids(experiment: Experiment, entries: Sequence[Entry]) -> tuple[Grid, ...]:
    named = ("dataset", "model", *(axis.name for axis in experiment.axes))
    varied = {name for name in named if len({entry.place.value(name) for entry in entries}) > 1}
    apart = [name for name in named if name in varied - {experiment.rows, experiment.columns}]
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        words = [_heading(name, entry) for name in dict.fromkeys(("dataset", *apart)) if name not in _sides(experiment)]
        if len(experiment.numbers) > 1 and "metric" not in _sides(experiment):
            words.append(_heading("metric", entry))
        groups.setdefault(", ".join(words), []).append(entry)
    return tuple(_grid(experiment, heading, group) for heading, group in groups.items())


def _grid(experiment: Experiment, heading: str, entries: Sequence[Entry]) -> Grid:
    table: dict[str, dict[str, Entry]] = {}
    for entry in entries:
        table.setdefault(_heading(experiment.rows, entry), {})[_heading(experiment.columns, entry)] = entry
    columns = tuple(dict.fromkeys(column for row in table.values() for column in row))
    for row in table.values():  # A preset has settings for some data sets only.
        model = next(iter(row.values())).place.model
        for column in (column for column in columns if column not in row):
            there = next(other[column] for other in table.values() if column in other)
            place = replace(there.place, model=model)
            row[column] = Entry(place, there.number, samples={}, validations={}, failed=(), paper=None)
    if experiment.rows == "model":
        _keep_common_splits(table, columns)
    rows = tuple((name, tuple(row[column] for column in columns)) for name, row in table.items())
    comparisons = {}
    if experiment.rows == "model" and experiment.outcome == "accuracy":
        for column in columns:
            results = {name: row[column].by_split for name, row in table.items() if row[column].by_split}
            found = [pair for pair in compare(results) if pair.count >= FEWEST_SPLITS]
            if found:
                comparisons[column] = found
    ranking = _ranking(table, columns) if (experiment.rows, experiment.columns) == ("model", "dataset") else None
    return Grid(experiment, heading, experiment.rows, columns, rows, comparisons, ranking)


def _ranking(table: Mapping[str, Mapping[str, Entry]], columns: Sequence[str]) -> Ranking | None:
    """Rank the models by their means on the data sets that all models without a preset have.

    A preset may have no settings for a data set, and must not take the data set from all others.
    """
    run = {name: row for name, row in table.items() if any(entry.summary for entry in row.values())}
    if any(row[columns[0]].number != "test_accuracy" for row in run.values()):
        return None
    plain = [row for row in run.values() if "@" not in row[columns[0]].place.model]
    shared = [column for column in columns if plain and all(row[column].summary for row in plain)]
    means = {name: {column: row[column].mean for column in shared if row[column].summary} for name, row in run.items()}
    complete = {name: own for name, own in means.items() if len(own) == len(shared)}
    return rank_models(complete) if shared and len(complete) > 1 else None


def _keep_common_splits(table: dict[str, dict[str, Entry]], columns: Sequence[str]) -> None:
    """Models are compared on the splits that all of them have; a column of a table drops the others."""
    for column in columns:
        run = [set(row[column].samples) for row in table.values() if row[column].samples]
        common = set.intersection(*run) if run else set()
        for row in table.values():
            samples, validations = (
                {split: values for split, values in of.items() if split in common}
                for of in (row[column].samples, row[column].validations)
            )
            row[column] = replace(row[column], samples=samples, validations=validations)


def _sides(experiment: Experiment) -> tuple[str, str]:
    return experiment.rows, experiment.columns


def _heading(axis: str, entry: Entry) -> str:
    if axis == "metric":
        return NUMBERS.get(entry.number, (entry.number,))[0]
    value = entry.place.value(axis)
    if axis == "model":
        return title(str(value))
    return value if isinstance(value, str) else f"{axis} = {value:g}"


def scale(number: str) -> float:
    """From what is recorded to what is shown."""
    return NUMBERS[number][1] if number in NUMBERS else 1.0


def shape(number: str) -> str:
    """The format in which a number is shown."""
    return NUMBERS[number][2] if number in NUMBERS else WHOLE


def provenance_of(records: Sequence[Record]) -> dict[str, str]:
    """Versions, commits, machines and numbers of splits and seeds that records come from, as words."""
    if not records:
        return {}
    sources = [record["provenance"] for record in records]
    machines = [
        f"{source['machine']['system']} {source['machine']['architecture']}, "
        f"{source['machine']['processors']} processors, {source['machine']['threads']} thread(s) a run"
        for source in sources
    ]
    return {
        "version": _several([f"kuramotognn {source['kuramotognn']}" for source in sources]),
        "commit": _several([str(source["commit"] or "installed")[:12] + _changed(source) for source in sources]),
        "torch": _several([str(source["packages"].get("torch")) for source in sources]),
        "machine": _several(machines),
        "kernels": _several([str(record["backend"]) for record in records]),
        "splits": _range([record["split"] for record in records]),
        "seeds": _range([record["seed"] for record in records]),
        "runs": str(len(records)),
        "finished": f"{min(r['finished'] for r in records)} to {max(r['finished'] for r in records)}",
    }


def _changed(source: Mapping[str, Any]) -> str:
    return "+changes" if str(source["commit"]).endswith("+changes") else ""


def _several(words: Sequence[str]) -> str:
    return "; ".join(sorted(set(words)))


def _range(numbers: Sequence[int]) -> str:
    low, high = min(numbers), max(numbers)
    return str(low) if low == high else f"{low}–{high}"


def _span(counts: Sequence[int]) -> str:
    return "0" if not counts else str(counts[0]) if len(counts) == 1 else f"{counts[0]}–{counts[-1]}"
