"""Tables from files of users: CSV and Parquet."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from kuramotognn.checks import did_you_mean
from kuramotognn.data.array_files import as_data_error
from kuramotognn.data.data_error import DataError
from kuramotognn.data.file_bytes import check_expansion, read_bytes

SEPARATORS = {";": "';'", "\t": "tab", "|": "'|'", ",": "','"}
"""Common separators, as they are given to --separator."""

Codes: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of equal length.

    Attributes:
        name: the file's name, for error messages.
        frame: the columns; all columns of a CSV file are text.
        first_row: number of the first row, as a spreadsheet shows it.
    """

    name: str
    frame: pl.DataFrame
    first_row: int = 1

    def column(self, name: str, what: str) -> pl.Series:
        """A column; the error for a missing one lists those there are."""
        if name not in self.frame.columns:
            shown = ", ".join(repr(column) for column in self.frame.columns[:12])
            more = len(self.frame.columns) - 12
            raise DataError(
                f"{self.name} has no column {name!r} ({what}){did_you_mean(name, self.frame.columns)}; "
                f"it has {shown}{f' and {more} more' if more > 0 else ''}"
            )
        return self.frame[name]

    def texts(self, name: str, what: str) -> pl.Series:
        """A column as text without surrounding blanks; empty cells are null."""
        column = self.column(name, what)
        if column.dtype.is_float():
            column = column.fill_nan(None)
        if column.dtype.is_nested() or column.dtype in (pl.Object, pl.Binary):
            raise DataError(f"{self.name}, column {name!r}: cells of type {column.dtype} cannot be read as {what}")
        if column.dtype.is_float():
            # Many programs write a column of whole numbers with decimals if a cell is empty.
            whole = column.drop_nulls()
            if whole.len() and whole.is_finite().all() and (whole == whole.round()).all() and whole.abs().max() < 2**53:  # type: ignore[operator]
                column = column.cast(pl.Int64)
        text = column.cast(pl.String).str.strip_chars()
        return text.set(text == "", None)

    def numbers(self, name: str, what: str) -> npt.NDArray[np.float64]:
        """A column as finite numbers; the error names the first cell that is not one."""
        column, numbers = self.column(name, what), self.maybe_numbers(name)
        wrong = (numbers.is_null() | ~numbers.is_finite().fill_null(False)).arg_true()
        if wrong.len():
            row = int(wrong[0])
            cell = column[row]
            if cell is None or (isinstance(cell, str) and not cell.strip()):
                remedy = "fill it in, leave the column out, or name it with --label if it holds the classes"
                raise DataError(f"{self.place(row, name)}: the cell is empty; {remedy}")
            kind = "is not a number" if numbers[row] is None else "is not finite"
            raise DataError(f"{self.place(row, name)}: {cell!r} {kind}; correct it or leave the column out")
        return numbers.to_numpy().astype(np.float64)

    def maybe_numbers(self, name: str) -> pl.Series:
        """A column as numbers; cells that are not numbers are null."""
        column = self.frame[name]
        if column.dtype == pl.String:
            column = column.str.strip_chars()
        return column.cast(pl.Float64, strict=False)

    def many_numbers(
        self, names: Sequence[str]
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Columns as numbers ``[n, N]``, NaN for other cells; how many cells of each are filled, how many are numbers.

        All columns at once: a file may have a hundred thousand of them.
        """
        found = dict(zip(self.frame.columns, self.frame.get_columns(), strict=True))
        texts = [name for name in names if found[name].dtype == pl.String]
        values = np.full((len(names), self.frame.height), np.nan)
        filled, numbers = np.zeros((2, len(names)), dtype=np.int64)
        if texts:
            where = np.flatnonzero([found[name].dtype == pl.String for name in names])
            cells = pl.concat([found[name].alias("") for name in texts]).str.strip_chars()
            parsed = cells.cast(pl.Float64, strict=False)
            shape = (len(texts), self.frame.height)
            values[where] = parsed.to_numpy().reshape(shape)
            filled[where] = (cells != "").fill_null(False).to_numpy().reshape(shape).sum(axis=1)
            numbers[where] = parsed.is_not_null().to_numpy().reshape(shape).sum(axis=1)
        for place, name in enumerate(names):
            dtype = found[name].dtype
            if dtype != pl.String:
                filled[place] = self.frame.height
                if dtype.is_numeric() or dtype == pl.Boolean:
                    numbers[place] = self.frame.height
                    values[place] = found[name].cast(pl.Float64, strict=False).to_numpy()
        return values, filled, numbers

    def not_empty(self) -> Table:
        """The table itself; DataError if it has no rows."""
        if not self.frame.height:
            raise DataError(f"{self.name} has no rows")
        return self

    def place(self, row: int, column: str | None = None) -> str:
        """Name of a row, or of a cell."""
        return f"{self.name} row {row + self.first_row}" + (f", column {column!r}" if column is not None else "")


def read_table(path: Path, *, separator: str = ",") -> Table:
    """Read a CSV file (UTF-8, with a header) or a Parquet file."""
    content = read_bytes(path)
    if is_parquet(content):
        return read_parquet(path, content)
    with as_data_error(path, "CSV"):
        return Table(path.name, parse_csv(path, decoded(path, content), separator), first_row=2).not_empty()


def is_parquet(content: bytes) -> bool:
    """Whether the content is that of a Parquet file."""
    return content[:4] == b"PAR1"


def read_parquet(path: Path, content: bytes) -> Table:
    """The table in a Parquet file."""
    with as_data_error(path, "Parquet"), _without_panics():
        lazy = pl.scan_parquet(io.BytesIO(content))
        # A constant column takes no room, whatever the number of its rows.
        check_expansion(path, len(content), 8 * lazy.select(pl.len()).collect().item() * len(lazy.collect_schema()))
        return Table(path.name, pl.read_parquet(io.BytesIO(content), use_pyarrow=False)).not_empty()


@contextmanager
def _without_panics() -> Iterator[None]:
    """Drop what is written to the error stream: for a damaged file polars prints Rust's backtrace before it raises."""
    try:
        kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    except OSError:  # There is no error stream.
        yield
        return
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def decoded(path: Path, content: bytes) -> str:
    """The text of a file in UTF-8."""
    if content[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\0" in content[:4096]:
        raise DataError(f"{path} is UTF-16 or binary, not UTF-8 text; save it as CSV in UTF-8")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        wrong = f"(byte {content[error.start]:#04x})"
        raise DataError(f"{path} line {line} is not UTF-8 {wrong}; save it in UTF-8") from error


def parse_csv(path: Path, text: str, separator: str, *, header: bool = True) -> pl.DataFrame:
    """The columns of a CSV file, all as text; without a header they are called ``column_1``, ``column_2``, …"""
    first = text.lstrip("\r\n").partition("\n")[0].rstrip("\r")
    other = next((each for each in SEPARATORS if each in first), None)
    if separator not in first and other is not None:
        raise DataError(
            f"{path} has no {SEPARATORS.get(separator, repr(separator))} in its first line, {first[:60]!r}: "
            f"it seems to be separated by {SEPARATORS[other]}; pass --separator {SEPARATORS[other]}"
        )
    try:
        frame = pl.read_csv(io.BytesIO(text.encode()), separator=separator, has_header=header, infer_schema=False)
    except pl.exceptions.ComputeError as error:
        if "more fields" not in str(error):
            raise
        raise DataError(_long_row(path, text, separator)) from error
    blank = [place for place, name in enumerate(frame.columns) if not name.strip()]
    return frame.rename({frame.columns[place]: f"column {place + 1}" for place in blank}).rename(str.strip)


def _long_row(path: Path, text: str, separator: str) -> str:
    rows = csv.reader(io.StringIO(text), delimiter=separator)
    columns = len(next(rows))
    number, row = next(((n, row) for n, row in enumerate(rows, start=2) if len(row) > columns), (None, []))
    if number is None:
        return f"{path} has a row with more cells than the header's {columns}"
    return f"{path} row {number} has {len(row)} cells but the header has {columns}; quote text with {separator!r}"


def positions(values: pl.Series, among: Sequence[str] | pl.Series) -> Codes:
    """The position of each value among different ones, −1 for others."""
    positions = pl.int_range(len(among), eager=True)
    return values.replace_strict(among, positions, default=-1, return_dtype=pl.Int64).to_numpy(writable=True)
