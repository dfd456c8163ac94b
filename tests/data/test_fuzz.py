"""A mutated file is read or raises DataError, never another exception, within 10 seconds and a gigabyte."""

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import scipy.sparse

from kuramotognn.data import DataError, GraphFiles, read_graph, read_graphml
from kuramotognn.data.matrix_files import read_matrix
from tests.data.graph_examples import WHOLE, edge_lists
from tests.data.limits import limits
from tests.data.test_own_graph import EDGES, MEANING, NODES

GRAPHML = """<?xml version="1.0" encoding="utf-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="k" for="node" attr.name="topic" attr.type="string"/><key id="v" for="node" attr.name="v" attr.type="double"/>
<graph edgedefault="undirected">
<node id="a"><data key="k">x</data><data key="v">1.5</data></node><node id="b"><data key="v">2</data></node>
<edge source="a" target="b"/></graph></graphml>"""
JUNK = [
    b"\0",
    b"\xff\xfe",
    b"\n",
    b"\r\n",
    b'"',
    b",",
    b";",
    b"nan",
    b"inf",
    b"-1",
    b"1e999",
    b"",
    "é".encode(),
    b"\xe9",
]


def mutate(content: bytes, rnd: random.Random) -> bytes:
    """A few random edits: cut, repeat, flip, insert, swap."""
    data = bytearray(content)
    for _ in range(rnd.randint(1, 4)):
        start = rnd.randrange(len(data) + 1)
        end = min(len(data), start + rnd.choice([1, 1, 2, 8, 64]))
        kind = rnd.randrange(6)
        if kind == 0:
            del data[start:end]
        elif kind == 1:
            data[start:start] = data[start:end] * rnd.choice([1, 3])
        elif kind == 2 and start < len(data):
            data[start] ^= 1 << rnd.randrange(8)
        elif kind == 3:
            data[start:start] = rnd.choice(JUNK)
        elif kind == 4:
            data[start:end] = bytes(rnd.randrange(256) for _ in range(end - start))
        elif rnd.random() < 0.2:
            del data[start:]
    return bytes(data)


def formats(folder: Path) -> dict[str, tuple[bytes, Callable[[Path], object]]]:
    """For each format: the content of a valid file, and its reader."""
    nodes, edges = folder / "good-nodes.csv", folder / "good-edges.csv"
    nodes.write_text(NODES)
    edges.write_text(EDGES)
    for path in (nodes, edges):
        pl.read_csv(path).write_parquet(path.with_suffix(".parquet"))
    np.savez(folder / "nodes.npz", x=np.ones((6, 2)), paper=np.array(list("abcdef")), topic=np.array(list("uvuvuv")))
    scipy.sparse.save_npz(folder / "words.npz", scipy.sparse.eye(6, 9, format="csr"))
    np.savez_compressed(folder / "dense.npz", x=np.arange(12.0).reshape(6, 2))

    def as_nodes(path: Path) -> object:
        return read_graph(GraphFiles(path, edges, **MEANING))  # type: ignore[arg-type]

    def as_npz_nodes(path: Path) -> object:
        return read_graph(GraphFiles(path, edges, label="topic", id="paper"))

    def as_edges(path: Path) -> object:
        return read_graph(GraphFiles(nodes, path, weight="strength", **MEANING))  # type: ignore[arg-type]

    def as_features(path: Path) -> object:
        return read_graph(GraphFiles(nodes, edges, features=path, **MEANING))  # type: ignore[arg-type]

    def as_graphml(path: Path) -> object:
        return read_graphml(path, label="topic")

    def as_graph(path: Path) -> object:
        return read_graph(GraphFiles(path))

    (folder / "whole").mkdir()
    for name, write in WHOLE.items():
        write(folder / "whole" / name)
    whole = {name: ((folder / "whole" / name).read_bytes(), as_graph) for name in WHOLE if name != "nodes.csv"}

    def as_dgl_nodes(path: Path) -> object:
        return read_graph(GraphFiles(path, folder / "whole" / "edges.csv"))

    def as_edge_list(path: Path) -> object:
        return read_graph(GraphFiles(folder / "whole" / "shchur.npz", path))

    return {
        "nodes.csv": (NODES.encode(), as_nodes),
        "edges.csv": (EDGES.encode(), as_edges),
        "nodes.parquet": (nodes.with_suffix(".parquet").read_bytes(), as_nodes),
        "edges.parquet": (edges.with_suffix(".parquet").read_bytes(), as_edges),
        "nodes.npz": ((folder / "nodes.npz").read_bytes(), as_npz_nodes),
        "words.npz": ((folder / "words.npz").read_bytes(), as_features),
        "dense.npz": ((folder / "dense.npz").read_bytes(), read_matrix),
        "graph.graphml": (GRAPHML.encode(), as_graphml),
        **whole,
        "dgl.csv": ((folder / "whole" / "nodes.csv").read_bytes(), as_dgl_nodes),
        **{f"edges-{name}": (content, as_edge_list) for name, content in edge_lists().items()},
    }


NAMES = [
    "nodes.csv", "edges.csv", "nodes.parquet", "edges.parquet", "nodes.npz", "words.npz", "dense.npz", "graph.graphml",
    *(name for name in WHOLE if name != "nodes.csv"), "dgl.csv", *(f"edges-{name}" for name in edge_lists()),
]  # fmt: skip


def run(name: str, folder: Path, count: int, least: int) -> None:
    good, read = formats(folder)[name]
    path = folder / f"mutated-{name}"
    path.write_bytes(good)
    read(path)
    rnd = random.Random(name)
    sentences = []
    for _ in range(count):
        path.write_bytes(mutate(good, rnd))
        try:
            with limits(10):
                read(path)
        except DataError as error:
            sentences.append(str(error))
    assert len(sentences) >= least, "too few mutations were errors"
    assert all(sentence and "\n" not in sentence for sentence in sentences)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore")
def test_a_mutated_file_is_read_or_raises_data_error(
    name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run(name, tmp_path, count=7, least=0)
    assert capfd.readouterr().err == ""


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore")
def test_many_mutated_files(name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run(name, tmp_path, count=115, least=5)
    assert capfd.readouterr().err == ""


@pytest.mark.filterwarnings("ignore")
def test_a_panic_of_polars_prints_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    good, read = formats(tmp_path)["nodes.parquet"]
    for seed in (633, 717, 938, 1170):  # Each made polars 2.1 print a backtrace.
        (tmp_path / "mutated.parquet").write_bytes(mutate(good, random.Random(seed)))
        with pytest.raises(DataError):
            read(tmp_path / "mutated.parquet")
    assert capfd.readouterr().err == ""
