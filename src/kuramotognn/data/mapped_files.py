"""Dense feature matrices that are read in blocks from npy, safetensors and Parquet files of any size."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl
import safetensors
import torch

from kuramotognn.data.array_files import as_data_error
from kuramotognn.data.data_error import DataError
from kuramotognn.documents import check_regular
from kuramotognn.mapped_features import ArrayRows, MappedFeatures, RowSource
from kuramotognn.typing import Index, Nodes

SAFETENSORS_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "<i1"}
SAFETENSORS_TYPES |= {"U8": "<u1", "BOOL": "?"}
ROWS_AT_ONCE = 1 << 16
"""Rows of a Parquet file that are read to take some of them."""


def open_features(path: Path | str) -> MappedFeatures:
    """A feature matrix that stays on disk, one row a node; nothing but its shape is read now.

    Args:
        path: a file that ends with npy, safetensors (one matrix in it) or parquet (all columns are numbers).

    Raises:
        DataError: there is no such file, or it holds no matrix of numbers.
    """
    path = Path(path)
    kind = path.suffix.lower()
    if kind not in MAPPED:
        raise DataError(f"{path} cannot be read from disk: its name must end with {', '.join(MAPPED)}")
    try:
        check_regular(path)
    except (OSError, ValueError) as error:
        what = "does not exist" if isinstance(error, FileNotFoundError) else f"cannot be read: {error}"
        raise DataError(f"{path} {what}") from error
    with as_data_error(path, f"a feature matrix ({kind[1:]})"):
        return MappedFeatures(MAPPED[kind](path))


def map_array(path: Path, mode: Literal["r", "c"] = "r") -> npt.NDArray[Any]:
    """The array of an npy file, mapped into memory: read-only, or with mode ``c`` so that changes stay in memory."""
    with as_data_error(path, "npy"):
        array: npt.NDArray[Any] = np.load(path, mmap_mode=mode, allow_pickle=False)
        return array


def _npy(path: Path) -> RowSource:
    return ArrayRows(_matrix(path, map_array(path)))


def _safetensors(path: Path) -> RowSource:
    with safetensors.safe_open(path, framework="np"):  # It checks the header and the length of the file.
        pass
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
    tensors = {name: facts for name, facts in header.items() if name != "__metadata__" and len(facts["shape"]) == 2}
    if len(tensors) != 1:
        raise DataError(f"{path} must hold one matrix; it holds {', '.join(tensors) or 'none'}")
    ((name, facts),) = tensors.items()
    if (kind := SAFETENSORS_TYPES.get(facts["dtype"])) is None:
        raise DataError(f"{path}: its matrix {name!r} holds {facts['dtype']}; convert it to F32")
    start = 8 + length + facts["data_offsets"][0]
    return ArrayRows(np.memmap(path, kind, "r", start, tuple(facts["shape"])))


def _matrix(path: Path, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if array.ndim != 2:
        raise DataError(f"{path}: its features must be a matrix, one row per node; got {array.ndim} dimensions")
    if array.dtype.kind not in "biuf":
        raise DataError(f"{path}: its matrix holds {array.dtype}, not numbers")
    return array


class ParquetRows:
    """The rows of a Parquet file whose columns are all numeric. Compressed: each pass over it unpacks it again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        for name, kind in self._scan().collect_schema().items():
            if not (kind.is_numeric() or kind == pl.Boolean):
                raise DataError(f"{path}: its column {name!r} holds {kind}, not numbers; leave it out of the file")

    @cached_property
    def shape(self) -> tuple[int, int]:
        """``(N, F)``."""
        return int(self._scan().select(pl.len()).collect().item()), len(self._scan().collect_schema())

    def read(self, start: int, stop: int) -> Nodes:
        """Some consecutive rows; an empty cell is not a number."""
        frame = self._scan().slice(start, stop - start).cast(pl.Float32).collect()
        return torch.from_numpy(np.array(frame.to_numpy()))

    def take(self, rows: Index) -> Nodes:
        """Some rows."""
        wanted = rows.cpu()
        found = torch.empty(wanted.numel(), self.shape[1])
        for start in range(0, self.shape[0], ROWS_AT_ONCE):
            here = ((wanted >= start) & (wanted < start + ROWS_AT_ONCE)).nonzero().flatten()
            if here.numel():
                found[here] = self.read(start, start + ROWS_AT_ONCE)[wanted[here] - start]
        return found

    def _scan(self) -> pl.LazyFrame:
        return pl.scan_parquet(self.path)


MAPPED: dict[str, Callable[[Path], RowSource]] = {
    ".npy": _npy,
    ".safetensors": _safetensors,
    ".parquet": ParquetRows,
}
"""Readers of feature matrices of any size, by suffix."""
