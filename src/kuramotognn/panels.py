"""Plain data that becomes a picture: what is drawn can be stored, and drawn again from what was stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from io import BytesIO
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from kuramotognn.files import write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure  # Slow to import, and most commands draw nothing.

Scale: TypeAlias = Literal["linear", "log"]

# Dashes and markers differ besides the colour: legible in grey.
LOOKS: tuple[dict[str, Any], ...] = (
    {"color": "#1f4e79", "linestyle": "-", "marker": "o"},
    {"color": "#c44e00", "linestyle": "--", "marker": "s"},
    {"color": "#2e7d32", "linestyle": "-.", "marker": "^"},
    {"color": "#7b1fa2", "linestyle": ":", "marker": "D"},
    {"color": "#555555", "linestyle": (0, (5, 1, 1, 1, 1, 1)), "marker": "v"},
    {"color": "#00838f", "linestyle": (0, (1, 1)), "marker": "P"},
    {"color": "#a0522d", "linestyle": (0, (8, 2)), "marker": "X"},
    {"color": "#000000", "linestyle": (0, (3, 1, 1, 1)), "marker": "*"},
)
REFERENCE: dict[str, Any] = {"color": "black", "linestyle": (0, (1, 3)), "linewidth": 1.2}


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
        """What :meth:`as_dict` gave, after a journey through JSON."""
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


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure whole or not at all, in the format that ``path`` ends in; the same figure gives the same SVG."""
    from matplotlib import rc_context

    buffer, kind = BytesIO(), path.suffix.lstrip(".") or "svg"
    with rc_context({"svg.hashsalt": path.stem}):
        figure.savefig(buffer, format=kind, metadata={"Date": None} if kind == "svg" else None, dpi=150)
    write_atomically(path, buffer.getvalue())


def _draw_panel(axes: Any, panel: Panel) -> None:
    looks = cycle(LOOKS)
    for place, line in enumerate(panel.lines):
        if line.reference:
            axes.plot(line.x, line.y, label=line.label, **REFERENCE)
        else:
            every = max(1, len(line.x) // 8)
            # Markers of curves that coincide must not hide each other.
            marks = (place * every // len(panel.lines), every)
            axes.plot(line.x, line.y, label=line.label, markevery=marks, markersize=4.5, linewidth=1.5, **next(looks))
    axes.set(xlabel=panel.x_label, ylabel=panel.y_label, xscale=panel.x_scale, yscale=panel.y_scale)
    axes.set_title(panel.title, fontsize=10)
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, fontsize=8)
