"""The figures of an experiment, from its tables and records."""

from __future__ import annotations

from math import nan

from kuramotognn.plots.svg_charts import Map, Series, curve_panels, heat_map, line_chart, maps, rank_chart
from kuramotognn.reports.published import title
from kuramotognn.reports.result_tables import Entry, ExperimentResult, Grid, shape
from kuramotognn.sweeps.records import Record

RANKS = "mean ranks"
CURVES = {
    "order": "order parameter r",
    "phase-energy": "phase energy U",
    "dirichlet": "Dirichlet energy",
    "pairwise-distance": "mean distance of two nodes",
}


def charts(result: ExperimentResult) -> list[tuple[str, str]]:
    """The figures of an experiment: a caption and an SVG element each."""
    kind = result.experiment.figure
    if kind is None:
        return [(RANKS, _ranks(grid)) for grid in result.grids if grid.ranking and grid.ranking.decidable]
    if kind == "trajectory":
        return _trajectories(result)
    if kind == "maps":
        return _maps(result)
    draw = _lines if kind == "lines" else _heat_map
    drawn = [grid for grid in result.grids if any(entry.summary for entry in grid.entries)]
    return [(grid.heading or grid.experiment.title, draw(grid)) for grid in drawn]


def _ranks(grid: Grid) -> str:
    assert grid.ranking
    return rank_chart(grid.ranking.ranks, grid.ranking.groups, grid.ranking.critical, _salt(grid))


def _lines(grid: Grid) -> str:
    axis = grid.experiment.columns

    def place(entry: Entry) -> float:
        return float(entry.place.value(axis))

    series = []
    for name, row in grid.rows:
        seen = [(place(entry), entry.summary) for entry in row if entry.summary]
        paper = [(place(entry), entry.paper.mean) for entry in row if entry.paper]
        points, band = [(x, s.mean) for x, s in seen], [(s.low, s.high) for _, s in seen]
        series.append(Series(name, points, band, paper))
    ticks = [place(entry) for entry in grid.rows[0][1]]
    label = {"labels": "labels per class"}.get(axis, axis)
    return line_chart(series, ticks, label, "test accuracy, %", _salt(grid))


def _heat_map(grid: Grid) -> str:
    """The means as a map, ours on the left and the paper's on the right where it has them."""
    panels = {"ours": [[entry.summary.mean if entry.summary else nan for entry in row] for _, row in grid.rows]}
    if grid.has_paper:
        panels["the paper"] = [[entry.paper.mean if entry.paper else nan for entry in row] for _, row in grid.rows]
    rows, columns = ([name.split("= ")[-1] for name in names] for names in (dict(grid.rows), grid.columns))
    return heat_map(panels, rows, columns, (grid.experiment.columns, grid.experiment.rows), _salt(grid))


def _maps(result: ExperimentResult) -> list[tuple[str, str]]:
    """A picture for each data set, with a map for each number: rows and columns as in the tables."""
    experiment, found = result.experiment, []
    for dataset in experiment.datasets:
        of_dataset = [grid for grid in result.grids if grid.entries[0].place.dataset == dataset]
        run = {name for grid in of_dataset for name, row in grid.rows if any(entry.summary for entry in row)}
        if run:
            rows = [name for name, _ in of_dataset[0].rows if name in run]
            columns = [name.split("= ")[-1] for name in of_dataset[0].columns]
            panels = [_map(grid, rows) for grid in of_dataset]
            found.append((dataset, maps(panels, rows, columns, experiment.columns, f"{experiment.name} {dataset}")))
    return found


def _map(grid: Grid, rows: list[str]) -> Map:
    number, table = grid.entries[0].number, dict(grid.rows)
    values = [[entry.summary.mean if entry.summary else nan for entry in table[name]] for name in rows]
    form = ".1f" if number == "test_accuracy" else shape(number)
    return Map(grid.heading.partition(", ")[2], values, form, logarithmic=form.endswith("g"))


def _trajectories(result: ExperimentResult) -> list[tuple[str, str]]:
    """The curves along the flow, a panel for each quantity and a line for each model."""
    groups: dict[str, dict[str, Record]] = {}
    for record in result.records:
        if CURVES.keys() <= record.get("result", {}).get("curves", {}).keys():
            models = groups.setdefault(record["config"]["dataset"], {})
            models.setdefault(title(record["config"]["model"]["name"]), record["result"])
    found = []
    for dataset, models in groups.items():
        panels = {
            label: {model: (result["times"], result["curves"][name]) for model, result in models.items()}
            for name, label in CURVES.items()
        }
        picture = curve_panels(panels, CURVES["order"], f"{result.experiment.name} {dataset}")
        found.append((f"{dataset}, trained models", picture))
    return found


def _salt(grid: Grid) -> str:
    return f"{grid.experiment.name} {grid.heading}"
