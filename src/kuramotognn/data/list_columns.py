"""Table columns that hold lists of numbers or masks, as in DGL's CSV files."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import torch

from kuramotognn.data.data_error import DataError
from kuramotognn.data.table_files import Table
from kuramotognn.features import Features

MASK_COLUMNS = {"train_mask": "train", "val_mask": "validation", "test_mask": "test"}
TRUE, FALSE = ("true", "1", "1.0"), ("false", "0", "0.0")


def take_masks(table: Table) -> tuple[Table, dict[str, npt.NDArray[Any]]]:
    """The table without its three columns of masks, and the masks ``[1, N]`` by part; none if one is missing."""
    if not set(MASK_COLUMNS) <= set(table.frame.columns):
        return table, {}
    masks = {}
    for name, part in MASK_COLUMNS.items():
        texts = table.texts(name, "a mask").str.to_lowercase().fill_null(FALSE[0])
        wrong = (~texts.is_in([*TRUE, *FALSE])).arg_true()
        if wrong.len():
            row = int(wrong[0])
            raise DataError(f"{table.place(row, name)}: {texts[row]!r} is neither true nor false; write 1 or 0")
        masks[part] = texts.is_in(list(TRUE)).to_numpy()[None]
    return replace(table, frame=table.frame.drop(list(MASK_COLUMNS))), masks


def take_lists(table: Table, skip: Collection[str | None]) -> tuple[Table, Features | None]:
    """The table without columns whose cells are lists of numbers such as ``"0.1, 0.2"``, and these as a matrix."""
    found = {}
    for name, column in zip(table.frame.columns, table.frame.get_columns(), strict=True):
        if column.dtype == pl.String and name not in skip and _is_list(first := column[0] or ""):
            found[name] = _matrix(table, name, column, first.count(",") + 1)
    if not found:
        return table, None
    return replace(table, frame=table.frame.drop(list(found))), torch.cat(list(found.values()), dim=1)


def _is_list(cell: str) -> bool:
    if "," not in cell:
        return False
    try:
        return all(isfinite(float(number)) for number in cell.strip("[] ").split(","))
    except ValueError:
        return False


def _matrix(table: Table, name: str, column: pl.Series, width: int) -> torch.Tensor:
    cells = column.fill_null("").str.strip_chars("[] ").str.split(",")
    wrong = (cells.list.len() != width).arg_true()
    if wrong.len():
        row = int(wrong[0])
        raise DataError(f"{table.place(row, name)}: the list has {cells[row].len()} numbers, the first one has {width}")
    numbers = cells.explode().str.strip_chars().cast(pl.Float32, strict=False).to_numpy().reshape(-1, width)
    if not np.isfinite(numbers).all():
        row, place = np.argwhere(~np.isfinite(numbers))[0].tolist()
        raise DataError(f"{table.place(row, name)}: {cells[row][place]!r} is not a finite number; correct it")
    return torch.from_numpy(numbers.copy())
