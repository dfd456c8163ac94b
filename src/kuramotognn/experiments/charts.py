"""Figures of experiments, as SVG that takes its ink from the page: they read in light, in dark and on paper."""

from __future__ import annotations

import re
from collections.abc import Sequence
from io import StringIO
from typing import Any

import matplotlib
from matplotlib.figure import Figure

from kuramotognn.experiments.published import NAMES
from kuramotognn.experiments.records import Record
from kuramotognn.experiments.tables import Entry, ExperimentResult, Grid

#: Stands for the colour of the page's text until the SVG is written.
INK = "#010203"
#: Told apart by eye, in grey and by the colour-blind, on white and on black; markers and dashes repeat it.
COLOURS = ("#3b7dd8", "#d9722e", "#2f9e77", "#b95bb0", "#9a8420", "#c94f55", "#6c7a89", "#4aa3b8")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
STYLE: Any = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 10,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
CURVES = {
    "order": "order parameter r",
    "phase-energy": "phase energy U",
    "dirichlet": "Dirichlet energy",
    "pairwise-distance": "mean distance of two nodes",
}


def charts(result: ExperimentResult) -> list[tuple[str, str]]:
    """The figures of an experiment: a caption and an SVG each."""
    kind = result.experiment.figure
    if kind == "trajectory":
        return _trajectories(result)
    drawn = [grid for grid in result.grids if any(entry.summary for entry in grid.entries)]
    if kind == "lines":
        return [(_caption(grid), _lines(grid)) for grid in drawn]
    if kind == "heat-map":
        return [(_caption(grid), _heat_map(grid)) for grid in drawn]
    return []


def _lines(grid: Grid) -> str:
    """A line for each row over the columns' axis, with its interval as a band; the paper's where it has any."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(5.0, 3.5), layout="constrained")
        axes = figure.subplots()
        axis = grid.experiment.columns
        for place, (name, row) in enumerate(grid.rows):
            colour, marker = COLOURS[place % len(COLOURS)], MARKERS[place % len(MARKERS)]
            seen = [(float(entry.place.value(axis)), entry.summary) for entry in row if entry.summary]
            if seen:
                xs, means = [x for x, _ in seen], [summary.mean for _, summary in seen]
                axes.plot(xs, means, color=colour, marker=marker, markersize=5, linewidth=1.6, label=name)
                lows, highs = [s.low for _, s in seen], [s.high for _, s in seen]
                axes.fill_between(xs, lows, highs, color=colour, alpha=0.2, linewidth=0)
            theirs = [(float(entry.place.value(axis)), entry.paper.mean) for entry in row if entry.paper]
            if theirs and seen:
                axes.plot(*zip(*theirs, strict=True), color=colour, linestyle=":", linewidth=1.2)
        values = [float(entry.place.value(axis)) for entry in grid.rows[0][1]]
        wide = min(values) > 0 and max(values) / min(values) >= 16
        if wide:
            axes.set_xscale("log", base=2)
        axes.set_xticks(values, _tick_labels(values) if wide else [f"{value:g}" for value in values])
        axes.minorticks_off()
        axes.set(xlabel={"labels": "labels a class"}.get(axis, axis), ylabel="test accuracy, %")
        axes.grid(alpha=0.25)
        axes.legend(frameon=False, fontsize=9)
        return svg(figure, f"{grid.experiment.name} {grid.heading}")


def _heat_map(grid: Grid) -> str:
    """The means as a map, ours on the left and the paper's on the right where it has them."""
    panels = [("ours", [[_mean(entry) for entry in row] for _, row in grid.rows])]
    if any(entry.paper for entry in grid.entries):
        theirs = [[entry.paper.mean if entry.paper else float("nan") for entry in row] for _, row in grid.rows]
        panels.append(("the paper", theirs))
    shown = [value for _, panel in panels for row in panel for value in row if value == value]
    low, high = min(shown), max(shown)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(2.7 * len(panels), 0.34 * len(grid.rows) + 1.0), layout="constrained")
        for axes, (title, panel) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
            axes.pcolormesh(panel, vmin=low, vmax=high, cmap="viridis", edgecolor="none")
            for y, row in enumerate(panel):
                for x, value in enumerate(row):
                    if value == value:
                        dark = (value - low) <= 0.6 * (high - low)
                        colour = "#ffffff" if dark else "#000000"
                        axes.text(x + 0.5, y + 0.5, f"{value:.1f}", ha="center", va="center", color=colour, fontsize=9)
            axes.set_title(title, fontsize=10)
            axes.set_xticks([x + 0.5 for x in range(len(grid.columns))], [c.split("= ")[-1] for c in grid.columns])
            axes.set_yticks([y + 0.5 for y in range(len(grid.rows))], [name.split("= ")[-1] for name, _ in grid.rows])
            axes.set(xlabel=grid.experiment.columns, ylabel=grid.experiment.rows)
            axes.invert_yaxis()
            axes.tick_params(length=0)
        return svg(figure, f"{grid.experiment.name} {grid.heading}")


def _trajectories(result: ExperimentResult) -> list[tuple[str, str]]:
    """What happens along the flow, a panel for each quantity and a line for each model."""
    groups: dict[str, list[Record]] = {}
    for record in result.records:
        if "curves" in record.get("result", {}):
            groups.setdefault(record["config"]["dataset"], []).append(record)
    found = []
    for dataset, records in groups.items():
        with matplotlib.rc_context(STYLE):
            figure = Figure(figsize=(5.4, 4.6), layout="constrained")
            for axes, (name, label) in zip(figure.subplots(2, 2).flat, CURVES.items(), strict=True):
                _curves(axes, records, name)
                axes.set(xlabel="t", title=label)
                axes.title.set_fontsize(10)
                axes.grid(alpha=0.25)
                if name == "order":
                    axes.set_ylim(0, 1.02)
                    axes.legend(frameon=False, fontsize=8)
                else:
                    axes.set_yscale("log")
            found.append((f"{dataset}, trained models", svg(figure, f"{result.experiment.name} {dataset}")))
    return found


def _curves(axes: matplotlib.axes.Axes, records: Sequence[Record], name: str) -> None:
    for place, model in enumerate(dict.fromkeys(record["config"]["model"]["name"] for record in records)):
        record = next(record for record in records if record["config"]["model"]["name"] == model)
        style = ("-", "--", "-.", ":")[place % 4]
        times, values = record["result"]["times"], record["result"]["curves"][name]
        colour = COLOURS[place % len(COLOURS)]
        axes.plot(times, values, linestyle=style, color=colour, linewidth=1.6, label=NAMES.get(model, model))


def svg(figure: Figure, salt: str) -> str:
    """A figure as an SVG element: text stays text, ink is the page's, and the same figure gives the same bytes."""
    buffer = StringIO()
    with matplotlib.rc_context({"svg.hashsalt": salt, "svg.fonttype": "none"}):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r' id="[A-Za-z_0-9]*_\d+"', "", text)  # Names of groups, the same in every figure of a page.
    text = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", text))
    return text.replace(INK, "currentColor")


def _tick_labels(values: Sequence[float]) -> list[str]:
    """Labels for ticks on a logarithmic axis; those too near to the one before are left out."""
    labels, last = [], 0.0
    for value in values:
        near = value < 1.5 * last
        labels.append("" if near else f"{value:g}")
        last = last if near else value
    return labels


def _caption(grid: Grid) -> str:
    return grid.heading or grid.experiment.title


def _mean(entry: Entry) -> float:
    return entry.summary.mean if entry.summary else float("nan")
