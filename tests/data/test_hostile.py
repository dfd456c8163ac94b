"""Hostile files: one sentence and exit code 2, within 5 seconds and a gigabyte."""

import gzip
import io
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import scipy.io
import torch

from kuramotognn.cli import main
from tests.data.graph_examples import NODES, WHOLE, X, data
from tests.data.limits import limits, make_pipe

BILLION = 10**9


def save_sparse(path: Path, **arrays: object) -> None:
    np.savez(path, **{name: np.array(value) for name, value in arrays.items()})  # type: ignore[arg-type]


def gzip_bomb(path: Path) -> None:
    with gzip.open(path, "wb") as file:
        file.write(b"id,label,x\n")
        for _ in range(200):
            file.write(b"1,1,1\n" * 200_000)


def dense_bomb(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("x.npy", "w") as file:
        np.lib.format.write_array_header_1_0(  # type: ignore[no-untyped-call]
            file, {"descr": "|i1", "fortran_order": False, "shape": (NODES, 3 * 10**7)}
        )
        for _ in range(NODES * 3):
            file.write(bytes(10**7))


def empty_texts(path: Path) -> None:
    buffer = io.BytesIO()
    header = {"descr": "<U0", "fortran_order": False, "shape": (10**12,)}
    np.lib.format.write_array_header_1_0(buffer, header)  # type: ignore[no-untyped-call]
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("label.npy", buffer.getvalue())


def repacked_torch(path: Path) -> None:
    torch.save({"x": torch.zeros(10**8, dtype=torch.int8), "edge_index": 0, "y": torch.zeros(2)}, path)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def torch_of(**changes: Any) -> Callable[[Path], None]:
    return lambda path: torch.save(data().to_dict() | changes, path)


def sparse_tensor(index: int, width: int) -> torch.Tensor:
    place = torch.tensor([[0], [index]])
    return torch.sparse_coo_tensor(place, torch.ones(1), (NODES, width), check_invariants=False)


def mat_bomb(path: Path) -> None:
    scipy.io.savemat(path, {"A": np.zeros(4)}, do_compression=True)
    header, packer, body = path.read_bytes()[:128], zlib.compressobj(9), b""
    for _ in range(30):
        body += packer.compress(bytes(10**7))
    body += packer.flush()
    path.write_bytes(header + struct.pack("<II", 15, len(body)) + body)


def parquet_bomb(path: Path) -> None:
    pl.DataFrame({"id": pl.repeat(1, 5 * 10**7, dtype=pl.Int8, eager=True)}).write_parquet(path)


def absurd_adjacency(path: Path) -> None:
    WHOLE["shchur.npz"](path)
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files if name != "node_names"}
    np.savez(path, **arrays | {"adj_shape": np.array([BILLION, BILLION])})


def zeros(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(3 << 30)


def csr(rows: int, columns: int) -> Callable[[Path], None]:
    return lambda path: save_sparse(
        path, format=b"csr", shape=[rows, columns], data=[1.0], indices=[0], indptr=[0] + [1] * NODES
    )


FILES: dict[str, tuple[str, Callable[[Path], object], str]] = {
    "gzip bomb": ("n.csv.gz", gzip_bomb, "decompression bomb"),
    "zip bomb": ("n.npz", dense_bomb, "decompression bomb"),
    "zip bomb of torch": ("n.pt", repacked_torch, "decompression bomb"),
    "bomb of MATLAB": ("n.mat", mat_bomb, "decompression bomb"),
    "bomb of Parquet": ("n.parquet", parquet_bomb, "decompression bomb"),
    "texts without letters": ("n.npz", empty_texts, "not an array of numbers or text"),
    "absurd adjacency": ("n.npz", absurd_adjacency, "declares a matrix of shape [1000000000, 1000000000]"),
    "stride of zero": ("n.pt", torch_of(x=torch.zeros(1).expand(BILLION, 99)), "claims shape"),
    "meta tensor": ("n.pt", torch_of(x=torch.zeros(BILLION, 99, device="meta")), "without plain numbers"),
    "absurd sparse tensor": (
        "n.pt",
        torch_of(x=sparse_tensor(index=0, width=10**12)),
        "declares a matrix of shape",
    ),
    "sparse tensor with a wrong index": (
        "n.pt",
        torch_of(x=sparse_tensor(index=10**9, width=3)),
        "cannot be read as a file of torch.save",
    ),
    "pipe": ("n.csv", make_pipe, "is a pipe, socket or device"),
    "device": ("n.csv", lambda path: path.symlink_to("/dev/zero"), "is a pipe, socket or device"),
    "zeros": ("n.csv", zeros, "begins with 4096 zero bytes"),
    "folder": ("n.csv", lambda path: path.mkdir(), "does not exist"),
}
MATRICES: dict[str, tuple[Callable[[Path], object], str]] = {
    "rows": (csr(10**12, 3), "declares a matrix of shape [1000000000000, 3]"),
    "columns": (csr(NODES, 10**12), "declares a matrix of shape [12, 1000000000000]"),
    "entries": (
        lambda path: save_sparse(path, format=b"coo", shape=[10**12, 10**12], data=[1.0], row=[0], col=[0]),
        "declares a matrix of shape",
    ),
    "index out of range": (
        lambda path: save_sparse(path, format=b"csc", shape=[NODES, 1], data=[1.0], indices=[10**8], indptr=[0, 1]),
        "cannot be read as a matrix",
    ),
    "bomb": (dense_bomb, "decompression bomb"),
    "pipe": (make_pipe, "is a pipe, socket or device"),
}


def assert_refused(arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    with limits(5):
        assert main(arguments) == 2
    told = capsys.readouterr().err
    assert sentence in told
    assert told.count("\n") == 1


@pytest.fixture
def edges(tmp_path: Path) -> str:
    (tmp_path / "e.csv").write_text("a,b\n0,1\n")
    return str(tmp_path / "e.csv")


@pytest.mark.parametrize(("name", "write", "sentence"), FILES.values(), ids=FILES)
def test_nodes(
    name: str,
    write: Callable[[Path], object],
    sentence: str,
    tmp_path: Path,
    edges: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write(tmp_path / name)
    assert_refused(["check", "--nodes", str(tmp_path / name), "--edges", edges], sentence, capsys)


@pytest.mark.parametrize(("write", "sentence"), MATRICES.values(), ids=MATRICES)
def test_features(
    write: Callable[[Path], object], sentence: str, tmp_path: Path, edges: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [f"{node},{node % 2},{X[node, 0]}" for node in range(NODES)]
    (tmp_path / "n.csv").write_text("id,label,x\n" + "\n".join(rows))
    write(tmp_path / "f.npz")
    files = ["--nodes", str(tmp_path / "n.csv"), "--edges", edges, "--features", str(tmp_path / "f.npz")]
    assert_refused(["check", *files], sentence, capsys)


@pytest.mark.parametrize(("arguments", "sentence"), [
    (["--nodes", "~nouser/n.csv"], "'~nouser/n.csv' names a home folder that does not exist"),
    (["--nodes", "{npz}", "--edges", "{pipe}"], "is a pipe, socket or device"),
    (["--nodes", "{pipe}"], "is a pipe, socket or device"),
    (["--nodes", "{npz}", "--splits", "1000000000"], "splits must be less than or equal to 10000"),
    (["--nodes", "{npz}", "--splits", "9000"], "split 8999 does not exist: own-split has 2 splits"),
    (["--data-root", "~nouser", "--dataset", "texas"], "'~nouser' names a home folder that does not exist"),
    (["--model", "~nouser/m.py:Net"], "names a home folder that does not exist"),
])  # fmt: skip
def test_train(
    arguments: list[str],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    WHOLE["heterophilous.npz"](tmp_path / "g.npz")
    if any("{pipe}" in each for each in arguments):
        make_pipe(tmp_path / "pipe")
    given = [each.format(npz=tmp_path / "g.npz", pipe=tmp_path / "pipe") for each in arguments]
    assert_refused(["train", *given, "--quiet"], sentence, capsys)
    assert not (tmp_path / "runs").exists()
