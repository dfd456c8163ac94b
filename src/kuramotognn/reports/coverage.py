"""How many of the paper's numbers have ours beside them, and why the others have none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from kuramotognn.config.resolve import recommended, resolve
from kuramotognn.models.registry import DEFAULT_MODEL, MODELS
from kuramotognn.reports.published import published_rows, published_tables, title
from kuramotognn.reports.result_tables import Entry, ExperimentResult
from kuramotognn.reports.sections import Section

#: Data sets of the paper that cannot be measured, and why.
UNAVAILABLE = {
    "roman-empire": "its node features are not at hand",
    "amazon-ratings": "only 98.8 % of its edges and none of its masks are at hand",
    "ogbn-arxiv": "its node features are not at hand",
}
NOT_RUN = "not run yet"
#: Tables of the paper that list settings: the column that they give, and the setting of ours.
SETTINGS = {"tuned-time": ("T", "time"), "tuned-coupling": ("K", "coupling")}


@dataclass
class Coverage:
    """Of one of the paper's tables: its numbers, those with ours beside them, and the rest by reason and data set."""

    table: str
    numbers: int
    ours: int = 0
    stale: int = 0
    missing: Counter[tuple[str, str]] = field(default_factory=Counter)


def coverage(results: Mapping[str, ExperimentResult]) -> list[Coverage]:
    """Of every table of the paper."""
    found = []
    for table in published_tables():
        own = Coverage(table, len(published_rows(table)))
        if table in SETTINGS:
            _count_settings(own)
        elif table in results:
            _count_entries(own, results[table])
        else:
            own.missing[NOT_RUN, "all"] += own.numbers
        found.append(own)
    return found


def coverage_section(results: Mapping[str, ExperimentResult]) -> Section:
    """The table of coverage."""
    found = coverage(results)
    numbers, ours, stale = (sum(getattr(each, name) for each in found) for name in ("numbers", "ours", "stale"))
    words = f"{ours} of the paper's {numbers} numbers have ours beside them"
    words += f"; {stale} of these come from stale runs, which today's code does not reproduce." if stale else "."
    rows = [(each.table, str(each.numbers), str(each.ours), str(each.stale), _reasons(each)) for each in found]
    head = ("table", "numbers", "ours beside them", "of these stale", "the others")
    return Section("The paper's numbers", (words,), head, rows)


def settings_section() -> Section:
    """The paper's T and K beside those of the recommended settings."""
    rows = []
    for row in published_rows("tuned-time"):
        model = _model(row["model"])
        coupling = [each for each in published_rows("tuned-coupling") if _place(each) == _place(row)]
        times = (row["mean"], _shown(_setting(row["dataset"], model, "time")))
        strengths = (coupling[0]["mean"], _shown(_setting(row["dataset"], model, "coupling"))) if coupling else ("", "")
        rows.append((row["dataset"], row["model"], *times, *strengths))
    return Section(
        "Integration times and coupling strengths",
        (
            "The paper's fine-tuned T and K beside those of the recommended settings, which a search chose by "
            "validation accuracy. They need not agree: other settings differ too. –: nothing is recommended yet.",
        ),
        ("data set", "model", "T, paper", "T, ours", "K, paper", "K, ours"),
        rows,
    )


def _count_entries(own: Coverage, result: ExperimentResult) -> None:
    cells: dict[tuple[object, ...], list[Entry]] = {}
    for entry in (entry for grid in result.grids for entry in grid.entries if entry.paper):
        place = entry.place
        key = (place.dataset, place.model.partition("@")[0], *place.at.values(), entry.number)
        cells.setdefault(key, []).append(entry)
    for (dataset, *_), entries in cells.items():
        if any(entry.summary for entry in entries):
            own.ours += 1
            own.stale += result.all_stale
        else:
            failed = "failed" if any(entry.failed for entry in entries) else NOT_RUN
            own.missing[UNAVAILABLE.get(str(dataset), failed), str(dataset)] += 1


def _count_settings(own: Coverage) -> None:
    for row in published_rows(own.table):
        if _setting(row["dataset"], _model(row["model"]), SETTINGS[own.table][1]) is None:
            own.missing["nothing is recommended yet", row["dataset"]] += 1
        else:
            own.ours += 1


def _setting(dataset: str, model: str, name: str) -> float | None:
    if not recommended(dataset, model):
        return None
    value: float | None = getattr(resolve({"dataset": dataset, "model.name": model}).config.model, name, None)
    return value


def _model(printed: str) -> str:
    return next((name for name in MODELS if title(name) == printed), DEFAULT_MODEL)


def _place(row: Mapping[str, str]) -> tuple[str, str]:
    return row["dataset"], row["model"]


def _shown(value: float | None) -> str:
    return "–" if value is None else f"{value:g}"


def _reasons(own: Coverage) -> str:
    by_reason: dict[str, list[str]] = {}
    for (reason, dataset), count in own.missing.items():
        by_reason.setdefault(reason, []).append(f"{dataset} ({count})")
    return "; ".join(f"{', '.join(datasets)}: {reason}" for reason, datasets in by_reason.items())
