"""Tables and matrices from files of users: CSV, Parquet and npz. Nothing is unpickled."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import scipy.sparse
import torch

from kuramotognn.checks import did_you_mean
from kuramotognn.data.errors import DataError
from kuramotognn.features import Features, SparseFeatures

SEPARATORS = {";": "';'", "\t": "tab", "|": "'|'", ",": "','"}
"""Common separators, as they are given to --separator."""


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
                raise DataError(f"{self.place(row, name)}: the cell is empty; fill it in or leave the column out")
            kind = "is not a number" if numbers[row] is None else "is not finite"
            raise DataError(f"{self.place(row, name)}: {cell!r} {kind}; correct it or leave the column out")
        return numbers.to_numpy().astype(np.float64)

    def maybe_numbers(self, name: str) -> pl.Series:
        """A column as numbers; cells that are not numbers are null."""
        column = self.frame[name]
        if column.dtype == pl.String:
            column = column.str.strip_chars()
        return column.cast(pl.Float64, strict=False)

    def place(self, row: int, column: str | None = None) -> str:
        """Name of a row, or of a cell."""
        return f"{self.name} row {row + self.first_row}" + (f", column {column!r}" if column is not None else "")


def read_table(path: Path, *, separator: str = ",") -> Table:
    """Read a CSV file (UTF-8, with a header) or a Parquet file."""
    content, is_parquet = read_bytes(path), path.suffix.lower() in (".parquet", ".pq")
    with as_data_error(path, "Parquet" if is_parquet else "CSV"):
        if is_parquet:
            table = Table(path.name, pl.read_parquet(io.BytesIO(content), use_pyarrow=False))
        else:
            table = Table(path.name, _csv(path, content, separator), first_row=2)
    if not table.frame.height:
        raise DataError(f"{path} has no rows")
    return table


def read_matrix(path: Path) -> Features:
    """Read a feature matrix: a file of ``scipy.sparse.save_npz``, or an npz file with one 2-D array."""
    arrays = read_arrays(path, read_bytes(path))
    with as_data_error(path, "a matrix in an npz file"):
        if "indptr" in arrays or "row" in arrays:
            return _sparse_matrix(path, arrays)
        matrices = [array for array in arrays.values() if array.ndim == 2]
        if len(matrices) != 1:
            raise DataError(
                f"{path} must hold one matrix, as scipy.sparse.save_npz writes it or as a single 2-D array; "
                f"it holds {', '.join(f'{name} {array.shape}' for name, array in arrays.items()) or 'nothing'}"
            )
        return torch.from_numpy(_finite(path, matrices[0]).copy())


def read_arrays(path: Path | str, content: bytes) -> dict[str, npt.NDArray[Any]]:
    """All arrays of an npz file with this content; pickled objects raise DataError."""
    with as_data_error(path, "npz"):
        archive = np.load(io.BytesIO(content), allow_pickle=False)
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise DataError(f"{path} holds a single array, not an npz archive; write it with numpy.savez")
        try:
            return {name: archive[name] for name in archive.files}
        except ValueError as error:
            if "allow_pickle" in str(error):
                raise DataError(
                    f"{path} holds pickled objects, which can run code; save plain arrays of numbers or text"
                ) from error
            raise


def read_bytes(path: Path) -> bytes:
    """The content of a file that exists and is not empty."""
    try:
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise DataError(f"{path} does not exist") from error
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error
    if not content.strip():
        raise DataError(f"{path} is empty")
    return content


@contextmanager
def as_data_error(path: Path | str, kind: str) -> Iterator[None]:
    """Turn any error of a parser into a DataError of one sentence."""
    try:
        yield
    except DataError:
        raise
    except (Exception, pl.exceptions.PanicException) as error:  # Parsers do not document what they raise.
        lines = str(error).strip().splitlines()
        reason = lines[0].rstrip(".:") if lines else type(error).__name__
        raise DataError(f"{path} cannot be read as {kind}: {reason}") from error


def sparse_features(matrix: Any) -> SparseFeatures:
    """A SciPy sparse matrix as features in float32."""
    entries = scipy.sparse.coo_array(matrix)
    row, col = (torch.from_numpy(index.astype(np.int64)) for index in (entries.row, entries.col))
    return SparseFeatures.from_coo(row, col, torch.from_numpy(entries.data.astype(np.float32)), entries.shape)


def _csv(path: Path, content: bytes, separator: str) -> pl.DataFrame:
    if content[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\0" in content[:4096]:
        raise DataError(f"{path} is UTF-16 or binary, not UTF-8 text; save it as CSV in UTF-8")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        wrong = f"(byte {content[error.start]:#04x})"
        raise DataError(f"{path} line {line} is not UTF-8 {wrong}; save it in UTF-8") from error
    header = text.lstrip("\r\n").splitlines()[0]
    other = next((each for each in SEPARATORS if each in header), None)
    if separator not in header and other is not None:
        raise DataError(
            f"{path} has no {SEPARATORS.get(separator, repr(separator))} in its first line, {header[:60]!r}: "
            f"it seems to be separated by {SEPARATORS[other]}; pass --separator {SEPARATORS[other]}"
        )
    try:
        frame = pl.read_csv(io.BytesIO(text.encode()), separator=separator, infer_schema=False)
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


def _sparse_matrix(path: Path, arrays: dict[str, npt.NDArray[Any]]) -> SparseFeatures:
    for name in ("data", "indices", "indptr", "row", "col"):
        if name in arrays and arrays[name].dtype.kind not in "biuf":
            raise DataError(f"{path}: its array {name!r} holds {arrays[name].dtype}, not numbers")
    stored: Any = scipy.sparse.load_npz(path)
    matrix = stored.tocsr()
    if matrix.ndim != 2:
        raise DataError(f"{path} must hold a matrix, got {matrix.ndim} dimensions")
    matrix.check_format(full_check=True)
    matrix.data = _finite(path, matrix.data)
    return sparse_features(matrix)


def _finite(path: Path, values: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    if values.dtype.kind not in "biuf":
        raise DataError(f"{path}: its matrix holds {values.dtype}, not numbers")
    with np.errstate(over="ignore"):
        numbers = values.astype(np.float32)
    if not np.isfinite(numbers).all():
        place = tuple(int(index) for index in np.argwhere(~np.isfinite(numbers))[0])
        raise DataError(f"{path}: entry {list(place)} of its matrix is {values[place]}; features must be finite")
    return numbers
