"""Plots as plain data, so that a stored plot can be drawn again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from kuramotognn.plots.style import REFERENCE, line_style, save_figure

Scale: TypeAlias = Literal["linear", "log"]


@dataclass(frozen=True)
class Line:
    """A curve; ``reference`` for a bound or a slope that the others are compared with."""

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    reference: bool = False


@dataclass(frozen=True)
class Panel:
    """A pair of axes."""

    title: str
    x_label: str
    y_label: str
    lines: tuple[Line, ...]
    x_scale: Scale = "linear"
    y_scale: Scale = "linear"

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)

    @staticmethod
    def from_dict(record: Mapping[str, Any]) -> Panel:
        """The inverse of :meth:`as_dict`."""
        lines = tuple(
            Line(line["label"], tuple(line["x"]), tuple(line["y"]), line["reference"]) for line in record["lines"]
        )
        return Panel(**{**record, "lines": lines})


def draw(panels: Sequence[Panel], path: Path) -> None:
    """Draw panels side by side, at most two in a row; the ending of ``path`` names the format."""
    from matplotlib.figure import Figure

    columns = min(2, len(panels))
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(5.2 * columns, 3.6 * rows), layout="constrained")
    grid = list(figure.subplots(rows, columns, squeeze=False).flat)
    for axes, panel in zip(grid, panels, strict=False):
        _draw_panel(axes, panel)
    for axes in grid[len(panels) :]:
        axes.set_axis_off()
    save_figure(figure, path)


def _draw_panel(axes: Any, panel: Panel) -> None:
    styles = iter(line_style(place) for place in range(len(panel.lines)))
    for place, line in enumerate(panel.lines):
        if line.reference:
            axes.plot(line.x, line.y, label=line.label, **REFERENCE)
        else:
            every = max(1, len(line.x) // 8)
            # Markers of curves that coincide must not hide each other.
            marks = (place * every // len(panel.lines), every)
            axes.plot(line.x, line.y, label=line.label, markevery=marks, markersize=4.5, linewidth=1.5, **next(styles))
    axes.set(xlabel=panel.x_label, ylabel=panel.y_label, xscale=panel.x_scale, yscale=panel.y_scale)
    axes.set_title(panel.title, fontsize=10)
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, fontsize=8)
