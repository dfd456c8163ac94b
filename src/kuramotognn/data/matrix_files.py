"""Feature matrices from files and arrays, dense or sparse."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse
import torch

from kuramotognn.data.array_files import Arrays, as_data_error, check_extent, checked, read_npz
from kuramotognn.data.data_error import DataError
from kuramotognn.data.file_bytes import read_bytes
from kuramotognn.data.mapped_files import MAPPED, open_features
from kuramotognn.features import Features, SparseFeatures

SPARSE_NUMBERS = ("data", "indices", "indptr", "row", "col", "offsets")
"""Arrays of a file of ``scipy.sparse.save_npz`` that hold numbers."""


def read_matrix(path: Path) -> Features:
    """A feature matrix: a file of ``scipy.sparse.save_npz``, or an npz file with one 2-D array.

    One in an npy, safetensors or Parquet file stays on disk.
    """
    if path.suffix.lower() in MAPPED:
        return open_features(path)
    content = read_bytes(path)
    arrays = read_npz(path, content)
    with as_data_error(path, "a matrix in an npz file"):
        if "indptr" in arrays or "row" in arrays or "offsets" in arrays:
            return to_features(path, _stored_sparse(path, content, arrays))
        matrices = [array for array in arrays.values() if array.ndim == 2]
        if len(matrices) != 1:
            raise DataError(
                f"{path} must hold one matrix, as scipy.sparse.save_npz writes it or as a single 2-D array; "
                f"it holds {', '.join(f'{name} {array.shape}' for name, array in arrays.items()) or 'nothing'}"
            )
        return to_features(path, matrices[0])


def to_features(path: Path | str, matrix: Any) -> Features:
    """A matrix as features in float32; the error names the row and column of a number that is not finite."""
    if matrix.ndim != 2:
        raise DataError(f"{path}: its features must be a matrix, one row per node; got {matrix.ndim} dimensions")
    if matrix.dtype.kind not in "biuf":
        raise DataError(f"{path}: its matrix holds {matrix.dtype}, not numbers")
    if isinstance(matrix, np.ndarray):
        return torch.from_numpy(_finite(path, matrix))
    check_extent(path, matrix.shape, matrix.nnz)
    entries = matrix.tocoo()
    _finite(path, entries.data, entries.row, entries.col)
    return sparse_features(entries)


def sparse_features(matrix: Any) -> SparseFeatures:
    """A SciPy sparse matrix as features in float32."""
    entries = scipy.sparse.coo_array(matrix)
    row, col = (torch.from_numpy(index.astype(np.int64)) for index in (entries.row, entries.col))
    return SparseFeatures.from_coo(row, col, torch.from_numpy(entries.data.astype(np.float32)), entries.shape)


def _stored_sparse(path: Path, content: bytes, arrays: Arrays) -> Any:
    for name in SPARSE_NUMBERS:
        if name in arrays and arrays[name].dtype.kind not in "biuf":
            raise DataError(f"{path}: its array {name!r} holds {arrays[name].dtype}, not numbers")
    shape = np.asarray(arrays.get("shape", ()))
    if shape.dtype.kind not in "iu" or shape.ndim != 1:
        raise DataError(f"{path}: its array 'shape' must hold two whole numbers")
    check_extent(path, tuple(int(extent) for extent in shape), arrays["data"].size if "data" in arrays else 0)
    return checked(scipy.sparse.load_npz(io.BytesIO(content)))


def _finite(path: Path | str, values: Any, *place: Any) -> npt.NDArray[np.float32]:
    """The values in float32; ``place`` are the rows and columns of a sparse matrix's entries."""
    with np.errstate(over="ignore"):
        numbers: npt.NDArray[np.float32] = values.astype(np.float32)
    wrong = ~np.isfinite(numbers)
    if wrong.any():
        first = np.argwhere(wrong)[0]
        row, column = (int(index[first[0]]) for index in place) if place else (int(index) for index in first)
        value = values[tuple(first)]
        raise DataError(
            f"{path}: row {row}, column {column} of its matrix is {value}; features must be finite: fill in missing "
            "values or drop the column"
        )
    return numbers
