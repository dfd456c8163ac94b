"""Named arrays from files: npz, MATLAB's mat, safetensors and torch.save. Nothing that could run code is unpickled."""

from __future__ import annotations

import io
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl
import scipy.sparse
import torch
from torch import Tensor

from kuramotognn.data.data_error import DataError
from kuramotognn.data.file_bytes import ZIP_MAGIC, open_zip, read_bytes
from kuramotognn.data.mat_files import read_mat

Array: TypeAlias = npt.NDArray[Any]
Arrays: TypeAlias = dict[str, Any]
"""Arrays and SciPy sparse matrices by name."""

CSR_PARTS = ("data", "indices", "indptr", "shape")
WIDEST = 10_000_000
"""Rows or columns that a sparse matrix may have, unless a hundredth of them have an entry."""


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


def read_npz(
    path: Path | str, content: bytes, *, keep_going: bool = False, only: Collection[str] | None = None
) -> Arrays:
    """Arrays of an npz file; pickled objects raise DataError, or are left out with ``keep_going``."""
    with as_data_error(path, "npz"):
        if content[:6] == b"\x93NUMPY":
            raise DataError(f"{path} holds a single array, not an npz archive; write it with numpy.savez")
        open_zip(content, path).close()
        found: Arrays = {}
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            for name in archive.files if only is None else set(archive.files) & set(only):
                try:
                    found[name] = archive[name]
                except ValueError as error:
                    if "allow_pickle" not in str(error):
                        raise
                    if not keep_going:
                        raise DataError(
                            f"{path} holds pickled objects, which can run code; save plain arrays of numbers or text"
                        ) from error
        for name, array in found.items():
            if not isinstance(array, np.ndarray) or (array.size and not array.itemsize):
                raise DataError(f"{path}: its member {name!r} is not an array of numbers or text")
        return found


def read_safetensors(path: Path | str, content: bytes) -> Arrays:
    """All tensors of a safetensors file."""
    import safetensors.torch

    with as_data_error(path, "safetensors"):
        return _plain(path, safetensors.torch.load(content))


def read_torch(path: Path | str, content: bytes) -> Arrays:
    """The tensors of a dict or of PyG's ``Data`` written by ``torch.save``, read with ``weights_only=True``."""
    from torch_geometric.data.data import Data, DataEdgeAttr, DataTensorAttr
    from torch_geometric.data.storage import GlobalStorage

    # They keep what they are given and run nothing. Those that are allowed already must stay so afterwards.
    allowed = torch.serialization.get_safe_globals()
    containers = [each for each in (Data, DataEdgeAttr, DataTensorAttr, GlobalStorage) if each not in allowed]
    with as_data_error(path, "a file of torch.save"):
        if content[:4] == ZIP_MAGIC:
            open_zip(content, path).close()
        try:
            # A sparse tensor with wrong indices would be read outside its memory.
            with torch.serialization.safe_globals(containers), torch.sparse.check_sparse_tensor_invariants():  # type: ignore[no-untyped-call]
                saved = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
        except Exception as error:
            if "weights_only" not in str(error) and "Weights only" not in str(error):
                raise
            raise DataError(
                f"{path} holds objects other than tensors, which can run code; save its tensors with "
                "safetensors.torch.save_file(data.to_dict(), ...)"
            ) from error
        return _plain(path, _one_graph(path, saved))


def _one_graph(path: Path | str, saved: Any) -> Arrays:
    """The attributes of a graph; PyG's data sets store a tuple of them and of the borders between graphs."""
    borders = saved[1] if isinstance(saved, tuple) and len(saved) > 1 else None
    if isinstance(borders, dict) and any(len(places) > 2 for places in borders.values()):
        raise DataError(f"{path} holds several graphs; save the one to read with torch.save(data, ...)")
    graph = saved[0] if isinstance(saved, tuple) and saved else saved
    if hasattr(graph, "to_dict"):
        graph = graph.to_dict()
    if not isinstance(graph, dict):
        raise DataError(f"{path} holds {type(graph).__name__}, not a dict of tensors or PyG's Data; save one of these")
    return {str(name): value for name, value in graph.items()}


def _plain(path: Path | str, tensors: Arrays) -> Arrays:
    return {name: _array(path, name, value) for name, value in tensors.items() if isinstance(value, Tensor)}


def _array(path: Path | str, name: str, tensor: Tensor) -> Any:
    tensor = tensor.detach()
    if tensor.is_meta or tensor.is_quantized or tensor.is_complex():
        raise DataError(f"{path}: {name!r} is a tensor without plain numbers ({tensor.dtype}, {tensor.device})")
    if tensor.layout != torch.strided:
        check_extent(path, tuple(tensor.shape), tensor._nnz())
        entries = tensor.to_sparse(layout=torch.sparse_coo).coalesce()
        index, values = entries.indices().numpy(), entries.values()
        return scipy.sparse.coo_array((_number_type(values).numpy(), tuple(index)), tuple(tensor.shape))
    # A stride of 0 lets one number stand for any number of them.
    if tensor.numel() * tensor.element_size() > tensor.untyped_storage().nbytes():
        raise DataError(f"{path}: {name!r} claims shape {list(tensor.shape)} but stores less; save it contiguous")
    return _number_type(tensor).numpy()


def _number_type(tensor: Tensor) -> Tensor:
    narrow = tensor.dtype.is_floating_point and tensor.dtype not in (torch.float32, torch.float64)
    return tensor.float() if narrow else tensor


def check_extent(path: Path | str, shape: tuple[int, ...], entries: int) -> None:
    """Raise DataError for a sparse matrix whose declared shape alone would exhaust memory."""
    if len(shape) != 2 or min(shape) < 0:
        raise DataError(f"{path} must hold a matrix, got one of shape {list(shape)[:4]}")
    if max(shape) > max(WIDEST, 100 * entries):
        raise DataError(
            f"{path} declares a matrix of shape {list(shape)} but has {entries} entries; "
            f"rows and columns may be at most {WIDEST}"
        )


def csr_matrix(path: Path | str, arrays: Arrays, prefix: str) -> Any:
    """The CSR matrix whose parts are stored as ``prefix_data``, ``_indices``, ``_indptr`` and ``_shape``."""
    parts = [arrays.get(f"{prefix}_{part}") for part in CSR_PARTS]
    if any(part is None for part in parts):
        raise DataError(f"{path} lacks one of {prefix}_data, {prefix}_indices, {prefix}_indptr and {prefix}_shape")
    with as_data_error(path, f"a graph: {prefix}_* is no CSR matrix"):
        *entries, extent = (np.asarray(part) for part in parts)
        if any(part.dtype.kind not in "biuf" or part.ndim != 1 for part in (*entries, extent)):
            raise DataError(f"{path}: the arrays {prefix}_* must be one-dimensional and hold numbers")
        shape: Any = tuple(extent.astype(np.int64).tolist())
        check_extent(path, shape, entries[0].size)
        return checked(scipy.sparse.csr_array(tuple(entries), shape))


def checked(matrix: Any) -> Any:
    """A sparse matrix as CSR whose indices are within its shape."""
    if hasattr(matrix, "check_format"):
        matrix.check_format(full_check=True)  # Before any conversion, which would write where indices point.
    return matrix.tocsr()


def _read_graph_npz(path: Path | str, content: bytes, only: Collection[str] | None) -> Arrays:
    return read_npz(path, content, keep_going=True, only=only)


READERS: dict[str, Callable[[Path | str, bytes, Collection[str] | None], Arrays]] = {
    ".npz": _read_graph_npz,
    ".mat": lambda path, content, _: read_mat(path, content),
    ".safetensors": lambda path, content, _: read_safetensors(path, content),
    ".pt": lambda path, content, _: read_torch(path, content),
    ".pth": lambda path, content, _: read_torch(path, content),
}
"""Readers of files with named arrays, by suffix; where that saves time, they read only what is asked for."""


def read_arrays(path: Path, only: Collection[str] | None = None) -> Arrays | None:
    """The arrays of a file, all or some of them; None if the suffix is not that of a file of arrays."""
    reader = READERS.get(path.suffix.lower())
    return None if reader is None else reader(path, read_bytes(path), only)
