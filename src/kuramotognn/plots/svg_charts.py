"""Figures of experiments as SVG elements, from plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from kuramotognn.plots.style import INK, PAGE_STYLE, line_style, svg_element

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Series:
    """A line with a band, and a dotted one of published numbers.

    Attributes:
        label: what the legend calls it.
        points: ``(x, mean)``.
        band: ``(low, high)`` at each of them.
        published: ``(x, mean)``.
    """

    label: str
    points: Points
    band: Points
    published: Points = ()


def line_chart(series: Sequence[Series], ticks: Sequence[float], x_label: str, y_label: str, salt: str) -> str:
    """Lines over a common axis, logarithmic where the ticks span a factor of 16 or more."""
    with matplotlib.rc_context(PAGE_STYLE):
        figure = Figure(figsize=(5.0, 3.5), layout="constrained")
        axes = figure.subplots()
        for place, each in enumerate(series):
            style = line_style(place)
            if each.points:
                xs, means = zip(*each.points, strict=True)
                lows, highs = zip(*each.band, strict=True)
                axes.plot(xs, means, color=style["color"], marker=style["marker"], markersize=5, label=each.label)
                axes.fill_between(xs, lows, highs, color=style["color"], alpha=0.2, linewidth=0)
            if each.published and each.points:
                axes.plot(*zip(*each.published, strict=True), color=style["color"], linestyle=":", linewidth=1.2)
        wide = min(ticks) > 0 and max(ticks) / min(ticks) >= 16
        if wide:
            axes.set_xscale("log", base=2)
        axes.set_xticks(ticks, _tick_labels(ticks) if wide else [f"{value:g}" for value in ticks])
        axes.minorticks_off()
        axes.set(xlabel=x_label, ylabel=y_label)
        axes.grid(alpha=0.25)
        axes.legend(frameon=False, fontsize=9)
        return svg_element(figure, salt)


def heat_map(
    panels: Mapping[str, Sequence[Sequence[float]]],
    rows: Sequence[str],
    columns: Sequence[str],
    labels: tuple[str, str],
    salt: str,
) -> str:
    """Tables of numbers as maps side by side, with one scale of colours; NaN stays empty."""
    shown = [value for panel in panels.values() for row in panel for value in row if not isnan(value)]
    low, high = min(shown), max(shown)
    with matplotlib.rc_context(PAGE_STYLE):
        figure = Figure(figsize=(2.7 * len(panels), 0.34 * len(rows) + 1.0), layout="constrained")
        for axes, (title, panel) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels.items(), strict=True):
            axes.pcolormesh(panel, vmin=low, vmax=high, cmap="viridis", edgecolor="none")
            for y, row in enumerate(panel):
                for x, value in enumerate(row):
                    colour = "#ffffff" if value - low <= 0.6 * (high - low) else "#000000"
                    text = "" if isnan(value) else f"{value:.1f}"
                    axes.text(x + 0.5, y + 0.5, text, ha="center", va="center", color=colour, fontsize=9)
            axes.set_title(title, fontsize=10)
            axes.set_xticks([x + 0.5 for x in range(len(columns))], columns)
            axes.set_yticks([y + 0.5 for y in range(len(rows))], rows)
            axes.set(xlabel=labels[0], ylabel=labels[1])
            axes.invert_yaxis()
            axes.tick_params(length=0)
        return svg_element(figure, salt)


@dataclass(frozen=True)
class Map:
    """A table of numbers to be drawn as colours; NaN stays empty.

    Attributes:
        title: what the numbers are.
        values: rows of numbers.
        form: the format of a number.
        logarithmic: whether colours follow the logarithm.
    """

    title: str
    values: Sequence[Sequence[float]]
    form: str
    logarithmic: bool = False


def maps(panels: Sequence[Map], rows: Sequence[str], columns: Sequence[str], x_label: str, salt: str) -> str:
    """Tables of the same rows and columns, two side by side, each with a scale of colours of its own."""
    across = 2
    down = -(-len(panels) // across)
    with matplotlib.rc_context(PAGE_STYLE):
        figure = Figure(figsize=(5.4 * across, (0.27 * len(rows) + 0.8) * down), layout="constrained")
        grid = figure.subplots(down, across, squeeze=False, sharey=True)
        for axes, panel in zip(grid.flat, panels, strict=False):
            values = np.array(panel.values, dtype=float)
            shown = np.log10(np.maximum(values, np.finfo(float).tiny)) if panel.logarithmic else values
            low, high = np.nanmin(shown), np.nanmax(shown)
            axes.pcolormesh(shown, vmin=low, vmax=high, cmap="viridis", edgecolor="none")
            for (y, x), value in np.ndenumerate(values):
                if not isnan(value):
                    colour = "#ffffff" if shown[y, x] - low <= 0.6 * (high - low) else "#000000"
                    text = format(value, panel.form)
                    axes.text(x + 0.5, y + 0.5, text, ha="center", va="center", color=colour, fontsize=7)
            axes.set_title(panel.title, fontsize=10)
            axes.set_xticks([x + 0.5 for x in range(len(columns))], columns)
            axes.set_yticks([y + 0.5 for y in range(len(rows))], rows, fontsize=8)
            axes.set(xlabel=x_label)
            axes.tick_params(length=0)
        grid[0, 0].invert_yaxis()
        for axes in list(grid.flat)[len(panels) :]:
            axes.set_axis_off()
        return svg_element(figure, salt)


def curve_panels(
    panels: Mapping[str, Mapping[str, tuple[Sequence[float], Sequence[float]]]], bounded: str, salt: str
) -> str:
    """Four panels of curves over time, by title and label; the panel ``bounded`` is linear in [0, 1]."""
    with matplotlib.rc_context(PAGE_STYLE):
        figure = Figure(figsize=(5.4, 4.6), layout="constrained")
        for axes, (title, curves) in zip(figure.subplots(2, 2).flat, panels.items(), strict=True):
            for place, (label, (times, values)) in enumerate(curves.items()):
                style = line_style(place)
                axes.plot(times, values, linestyle=style["linestyle"], color=style["color"], linewidth=1.6, label=label)
            axes.set(xlabel="t")
            axes.set_title(title, fontsize=10)
            axes.grid(alpha=0.25)
            if title == bounded:
                axes.set_ylim(0, 1.02)
                axes.legend(frameon=False, fontsize=8)
            else:
                axes.set_yscale("log")
        return svg_element(figure, salt)


def rank_chart(ranks: Mapping[str, float], groups: Points, critical: float, salt: str) -> str:
    """Demšar's critical-difference diagram: models on an axis of mean ranks, the best on the left.

    Args:
        ranks: mean rank of each model, the best first.
        groups: first and last mean rank of groups without a significant difference, which a bar joins.
        critical: the critical difference, drawn above the axis.
        salt: makes the names inside the SVG its own.
    """
    left = -(-len(ranks) // 2)
    lowest = 1.0 + 0.28 * len(groups)
    low, high = 1, max(len(ranks), 2)
    margin = 0.04 * (high - low)
    with matplotlib.rc_context(PAGE_STYLE):
        figure = Figure(figsize=(6.4, 1.1 + 0.3 * (lowest + left)), layout="constrained")
        axes = figure.subplots()
        axes.plot((low, high), (0, 0), color=INK, linewidth=1)
        for tick in range(low, high + 1):
            axes.plot((tick, tick), (0, -0.3), color=INK, linewidth=1)
            axes.text(tick, -0.45, str(tick), ha="center", va="bottom")
        for place, (name, rank) in enumerate(ranks.items()):
            side = place < left
            depth = lowest + (place if side else len(ranks) - 1 - place)
            end = low - margin if side else high + margin
            axes.plot((rank, rank, end), (0, depth, depth), color=line_style(0)["color"], linewidth=1)
            text = f"{name}  {rank:.2f}" if side else f"{rank:.2f}  {name}"
            axes.text(end + (-margin if side else margin) / 2, depth, text, ha="right" if side else "left", va="center")
        for place, (first, last) in enumerate(groups):
            height = 0.45 + 0.28 * place
            axes.plot((first - margin / 3, last + margin / 3), (height, height), color=INK, linewidth=3.5)
        axes.plot((low, low + critical), (-1.9, -1.9), color=INK, linewidth=1.5, marker="|", markersize=8)
        axes.text(low + critical / 2, -2.15, f"critical difference {critical:.2f}", ha="center", va="bottom")
        axes.set(xlim=(low - 0.5 * (high - low), high + 0.5 * (high - low)), ylim=(lowest + left - 0.4, -3.2))
        axes.set_axis_off()
        return svg_element(figure, salt)


def _tick_labels(values: Sequence[float]) -> list[str]:
    """Labels for ticks on a logarithmic axis; those too near to the one before are left out."""
    labels, last = [], 0.0
    for value in values:
        near = value < 1.5 * last
        labels.append("" if near else f"{value:g}")
        last = last if near else value
    return labels
