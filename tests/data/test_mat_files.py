"""MATLAB files, against scipy.io."""

import io
import struct

import numpy as np
import pytest
import scipy.io
import scipy.sparse

from kuramotognn.data import DataError
from kuramotognn.data.mat_files import read_mat

VARIABLES = {
    "A": scipy.sparse.random(9, 7, density=0.3, format="csc", random_state=0),
    "empty": scipy.sparse.csc_array((3, 3)),
    "small": np.array([[1]], dtype=np.int8),
    "info": np.arange(12, dtype=np.int32).reshape(4, 3),
    "many": np.arange(24.0).reshape(2, 3, 4),
    "half": np.float32([[0.5, 1.5]]),
    "large": np.array([[2**40, -(2**40)]]),
    "words": np.array(["left out"]),
    "record": {"left": 1},
    "imaginary": np.array([[1j]]),
}
NUMERIC = ("A", "empty", "small", "info", "many", "half", "large")


def saved(**options: bool) -> bytes:
    buffer = io.BytesIO()
    scipy.io.savemat(buffer, VARIABLES, **options)
    return buffer.getvalue()


@pytest.mark.parametrize("compressed", [False, True])
def test_numeric_variables_equal_those_of_scipy(compressed: bool) -> None:
    content = saved(do_compression=compressed)
    found, oracle = read_mat("f.mat", content), scipy.io.loadmat(io.BytesIO(content), spmatrix=False)
    assert set(found) == set(NUMERIC)
    for name in NUMERIC:
        if scipy.sparse.issparse(oracle[name]):
            assert found[name].toarray().tolist() == oracle[name].toarray().tolist()
        else:
            assert found[name].tolist() == oracle[name].tolist()


def test_another_byte_order() -> None:
    def element(kind: int, data: bytes) -> bytes:
        return struct.pack(">II", kind, len(data)) + data + bytes(-len(data) % 8)

    body = element(6, struct.pack(">II", 6, 0)) + element(5, struct.pack(">ii", 2, 1)) + element(1, b"x")
    body += element(9, struct.pack(">dd", 1.5, -2))
    content = b"MATLAB 5.0".ljust(124) + b"\x01\x00MI" + element(14, body)
    assert scipy.io.loadmat(io.BytesIO(content))["x"].tolist() == [[1.5], [-2]]
    assert read_mat("f.mat", content)["x"].tolist() == [[1.5], [-2]]


@pytest.mark.parametrize(("content", "sentence"), [
    (b"MATLAB 7.3 MAT-file".ljust(126) + b"IM", "save it with the option -v7"),
    (b"PK", "save it with the option -v7"),
    (saved()[:-9], "ends after the file does"),
])  # fmt: skip
def test_files_that_cannot_be_read(content: bytes, sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        read_mat("f.mat", content)
