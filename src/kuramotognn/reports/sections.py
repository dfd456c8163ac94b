"""Parts of a report in words: text, a table, notes; as Markdown here, as HTML by the template of the page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

MINUS = "\N{MINUS SIGN}"


@dataclass(frozen=True)
class Section:
    """A part of a report.

    Attributes:
        title: heading.
        text: paragraphs before the table.
        head: headings of the table's columns; no table without them.
        rows: its cells.
        notes: paragraphs after the table.
    """

    title: str
    text: Sequence[str]
    head: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    notes: Sequence[str] = ()

    @property
    def name(self) -> str:
        """The title as the name of a place in a page."""
        return "-".join("".join(letter if letter.isalnum() else " " for letter in self.title.lower()).split())

    def to_markdown(self) -> str:
        """The section with its heading."""
        table = [markdown_row(row) for row in (self.head, ["---"] * len(self.head), *self.rows)] if self.head else []
        parts = [f"## {self.title}", *self.text, "\n".join(table), *self.notes]
        return "\n\n".join(part for part in parts if part) + "\n"


def markdown_row(cells: Sequence[str]) -> str:
    """A line of a table."""
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


def signed(value: float, form: str = ".2f") -> str:
    """A difference with its sign."""
    return f"{value:+{form}}".replace("-", MINUS)


def p_value(p: float) -> str:
    """The p of a test in words."""
    return "not tested" if math.isnan(p) else "p < 0.001" if p < 0.001 else f"p = {p:.2g}"


def counted(count: int, thing: str, things: str = "") -> str:
    """A number of things."""
    return f"{count} {thing if count == 1 else things or f'{thing}s'}"
