"""The style of all pictures: one palette, and how figures are written."""

from __future__ import annotations

import re
import warnings
from io import BytesIO, StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kuramotognn.atomic_write import write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure  # Slow to import, and most commands draw nothing.

#: Lines differ in colour, dashes and marker: legible in grey and for the colour-blind, on white and on black.
LINES: tuple[dict[str, Any], ...] = (
    {"color": "#3b7dd8", "linestyle": "-", "marker": "o"},
    {"color": "#d9722e", "linestyle": "--", "marker": "s"},
    {"color": "#2f9e77", "linestyle": "-.", "marker": "^"},
    {"color": "#b95bb0", "linestyle": ":", "marker": "D"},
    {"color": "#9a8420", "linestyle": (0, (5, 1, 1, 1, 1, 1)), "marker": "v"},
    {"color": "#c94f55", "linestyle": (0, (1, 1)), "marker": "P"},
    {"color": "#6c7a89", "linestyle": (0, (8, 2)), "marker": "X"},
    {"color": "#4aa3b8", "linestyle": (0, (3, 1, 1, 1)), "marker": "*"},
)
REFERENCE: dict[str, Any] = {"color": "black", "linestyle": (0, (1, 3)), "linewidth": 1.2}
"""A bound or a slope that the lines are compared with."""
INK = "#010203"
"""Stands for the colour of the page's text until an SVG element is written."""
PAGE_STYLE: Any = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 10,
    **dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), INK),
    "axes.spines.top": False,
    "axes.spines.right": False,
}
"""Of figures that are part of an HTML page."""


def line_style(place: int) -> dict[str, Any]:
    """The style of the line number ``place`` of a picture."""
    return LINES[place % len(LINES)]


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure, whole or not at all, in the format of the suffix; the same figure gives the same SVG."""
    from matplotlib import rc_context

    buffer, kind = BytesIO(), path.suffix.lstrip(".") or "svg"
    with rc_context({"svg.hashsalt": path.stem}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")  # A class may have a name in any script.
        figure.savefig(buffer, format=kind, metadata={"Date": None} if kind == "svg" else None, dpi=150)
    write_atomically(path, buffer.getvalue())


def svg_element(figure: Figure, salt: str) -> str:
    """A figure as an SVG element: text stays text, ink is the page's, and the same figure gives the same bytes."""
    from matplotlib import rc_context

    buffer = StringIO()
    with rc_context({"svg.hashsalt": salt, "svg.fonttype": "none"}):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r' id="[A-Za-z_0-9]*_\d+"', "", text)  # Names of groups, the same in every figure of a page.
    text = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", text))
    return text.replace(INK, "currentColor")
