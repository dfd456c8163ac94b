"""Numeric variables of MATLAB files, versions 5 to 7.

``scipy.io.loadmat`` reads more, but a damaged file can crash the interpreter in it. Every size is checked here before
anything is read. The layout is that of MathWorks' "MAT-File Format".
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

from kuramotognn.data.data_error import DataError
from kuramotognn.data.file_bytes import check_expansion, expansion_limit

HEADER = 128
ORDERS = {b"IM": "<", b"MI": ">"}
"""The last bytes of the header: how numbers of the file are stored."""
TYPES = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
"""Types of stored numbers."""
MATRIX, COMPRESSED = 14, 15
SPARSE, NUMERIC = 5, range(6, 16)
"""Classes of variables; others (cells, structures, text) are left out."""
COMPLEX = 0x0800

Element = tuple[int, memoryview]


def read_mat(path: Path | str, content: bytes) -> dict[str, Any]:
    """The numeric variables of a file, sparse ones as SciPy matrices."""
    order = ORDERS.get(content[HEADER - 2 : HEADER])
    if order is None or b"MATLAB 7.3" in content[:HEADER]:
        raise DataError(f"{path} is not a MATLAB file of the versions 5 to 7; save it with the option -v7")
    found: dict[str, Any] = {}
    try:
        room = expansion_limit(len(content))
        for kind, body in _elements(memoryview(content)[HEADER:], order):
            if kind == COMPRESSED:
                unpacked = zlib.decompressobj().decompress(body, room + 1)
                room -= len(unpacked)
                if room < 0:
                    check_expansion(path, len(content), expansion_limit(len(content)) - room)
                kind, body = next(_elements(memoryview(unpacked), order), (0, memoryview(b"")))
            if kind == MATRIX and (variable := _variable(body, order)):
                found |= variable
    except (zlib.error, ValueError, IndexError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path} cannot be read as a MATLAB file: {error}; it is damaged") from error
    return found


def _elements(data: memoryview, order: str) -> Iterator[Element]:
    """The type and content of each data element."""
    place = 0
    while place + 8 <= len(data):
        kind, size = np.frombuffer(data[place : place + 8], f"{order}u4").tolist()
        if kind >> 16:  # A small element: size and content stand in the tag.
            kind, size, start, after = kind & 0xFFFF, kind >> 16, place + 4, place + 8
        else:
            start = place + 8
            after = start + size + (0 if kind == COMPRESSED else -size % 8)
        if start + size > len(data):
            raise ValueError(f"an element of {size} bytes ends after the file does")
        yield kind, data[start : start + size]
        place = after


def _variable(data: memoryview, order: str) -> dict[str, Any] | None:
    """A numeric variable by its name."""
    flags, extent, name, *parts = _elements(data, order)
    facts = _numbers(flags, order)
    shape: Any = tuple(_numbers(extent, order).tolist())
    if facts.size < 2 or int(facts[0]) & COMPLEX or len(shape) < 2 or min(shape) < 0:
        return None
    kind, key = int(facts[0]) & 0xFF, bytes(name[1]).decode("ascii", "replace")
    if kind == SPARSE and len(shape) == 2 and len(parts) >= 3:
        rows, starts, values = (_numbers(part, order) for part in parts[:3])
        if starts.size != shape[1] + 1:
            raise ValueError(f"{key!r} has {shape[1]} columns but {starts.size} column pointers")
        stored = int(starts[-1])
        return {key: scipy.sparse.csc_array((values[:stored], rows[:stored], starts), shape)}
    if kind in NUMERIC and parts:
        values = _numbers(parts[0], order)
        if values.size != math.prod(shape):
            raise ValueError(f"{key!r} has shape {list(shape)} but {values.size} numbers")
        return {key: values.reshape(shape, order="F")}
    return None


def _numbers(element: Element, order: str) -> npt.NDArray[Any]:
    kind, data = element
    if kind not in TYPES:
        raise ValueError(f"numbers of the unknown type {kind}")
    dtype = np.dtype(f"{order}{TYPES[kind]}")
    return np.frombuffer(data, dtype).astype(dtype.newbyteorder("="))
