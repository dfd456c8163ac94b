"""Edges from files: CSV and Parquet, and edge lists with comments, with any blanks between ids and without a header."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from kuramotognn.data.array_files import as_data_error
from kuramotognn.data.data_error import DataError
from kuramotognn.data.file_bytes import read_bytes
from kuramotognn.data.table_files import SEPARATORS, Table, decoded, is_parquet, parse_csv, read_parquet

COMMENTS = ("#", "%")
MATRIX_MARKET = "%%MatrixMarket"
NAMES = ("source", "target", "weight")
"""Columns of an edge list without a header."""


def read_edges(path: Path, *, separator: str, is_node: Callable[[str], bool]) -> tuple[Table, str | None]:
    """The table of edges, and what was recognised if it is no ordinary table.

    Args:
        path: the file.
        separator: separator of CSV cells.
        is_node: whether a text is the id of a node: a first row of ids is no header.
    """
    content = read_bytes(path)
    if is_parquet(content):
        return read_parquet(path, content), None
    text = decoded(path, content)
    with as_data_error(path, "a list of edges"):
        rest, skipped = _without_comments(text)
        if not rest.strip():
            raise DataError(f"{path} has no rows")
        if text.startswith(MATRIX_MARKET):
            rest, skipped = rest.lstrip("\r\n").partition("\n")[2], "Matrix Market"  # The first line has sizes.
        first = rest.lstrip("\r\n").partition("\n")[0].rstrip("\r")
        if not _is_separated(first, separator):
            rest, separator = _with_tabs(rest, first), "\t"
            first = rest.lstrip("\n").partition("\n")[0]
        cells = [cell.strip(' "') for cell in first.split(separator)]
        headed = not _is_edge(cells, is_node)
        start = text.count("\n") - rest.count("\n") + 1
        frame = parse_csv(path, rest, separator, header=headed)
        if not headed:
            names = [*NAMES[: len(cells)], *(f"column {place + 1}" for place in range(len(NAMES), len(cells)))]
            frame = frame.rename(dict(zip(frame.columns, names, strict=False)))
        table = Table(path.name, frame, first_row=start + headed).not_empty()
    facts = [skipped, None if headed else "no header", "blanks between cells" if separator == "\t" else None]
    said = ", ".join(fact for fact in facts if fact)
    return table, f"edge list ({said})" if skipped or not headed else None


def _without_comments(text: str) -> tuple[str, str | None]:
    """The text without lines of comments, if it begins with one."""
    mark = text.lstrip()[:1]
    if mark not in COMMENTS:
        return text, None
    return re.sub(rf"(?m)^[ \t]*{mark}.*\n?", "", text), f"comments with {mark}"


def _is_separated(line: str, separator: str) -> bool:
    """Whether a line has the separator, or another than blanks that the user should name."""
    return separator in line or any(each in line for each in SEPARATORS if each != "\t") or not line.split()[1:]


def _with_tabs(text: str, first: str) -> str:
    """Cells separated by single tabs; blanks belong to cells if the first line has tabs."""
    plain = text.replace("\r\n", "\n")
    if "\t" in first.strip():
        return plain
    return re.sub(r"[ \t]+", "\t", plain).replace("\t\n", "\n").replace("\n\t", "\n").strip("\t")


def _is_edge(cells: Sequence[str], is_node: Callable[[str], bool]) -> bool:
    ends = cells[:2]
    return len(ends) == 2 and (all(re.fullmatch("[0-9]{1,19}", end) for end in ends) or all(map(is_node, ends)))
