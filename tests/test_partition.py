import sys
from itertools import permutations
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kuramotognn import Graph, partition
from kuramotognn.partition import metis_parts
from tests.conftest import graphs, ring

pytest.importorskip("pymetis", reason="pymetis is not installed; it has no wheels for Windows")


@pytest.fixture(autouse=True)
def data_root(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path_factory.mktemp("partitions")
    monkeypatch.setenv("KURAMOTOGNN_DATA", str(root))
    return root


def cliques(count: int, size: int) -> Graph:
    """Complete graphs, each joined to the next by one edge of one direction."""
    pairs = [(size * k + i, size * k + j) for k in range(count) for i, j in permutations(range(size), 2)]
    pairs += [(size * k + size - 1, size * (k + 1)) for k in range(count - 1)]
    return Graph.from_edge_index(torch.tensor(pairs).t(), count * size)


@pytest.mark.parametrize("count", [2, 3, 5])
def test_cliques_are_the_parts(count: int) -> None:
    parts = metis_parts(cliques(count, 8).pattern, count).view(count, 8)
    assert (parts == parts[:, :1]).all()
    assert sorted(parts[:, 0].tolist()) == list(range(count))


@given(graphs(), st.data())
def test_every_node_has_a_part_whatever_the_graph(graph: Graph, data: st.DataObject) -> None:
    count = data.draw(st.integers(1, graph.num_nodes))
    parts = metis_parts(graph.pattern, count)
    assert parts.shape == (graph.num_nodes,)
    assert parts.dtype == torch.long
    assert 0 <= int(parts.min()) <= int(parts.max()) < count


def test_parts_are_computed_once_and_found_on_disk(data_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pattern = ring(12).pattern
    first = metis_parts(pattern, 3)
    monkeypatch.setattr(partition, "_metis", None)
    assert metis_parts(pattern, 3) is first
    assert torch.equal(metis_parts(ring(12).pattern, 3), first)
    monkeypatch.undo()
    monkeypatch.setenv("KURAMOTOGNN_DATA", str(data_root))
    (file,) = (data_root / "partitions").iterdir()
    for damaged in (b"", b"no array", file.read_bytes()[:-8]):
        file.write_bytes(damaged)
        assert torch.equal(metis_parts(ring(12).pattern, 3), first)


def test_a_folder_that_cannot_be_written_is_no_error(data_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (data_root / "file").touch()
    monkeypatch.setenv("KURAMOTOGNN_DATA", str(data_root / "file"))
    assert metis_parts(ring(6).pattern, 2).bincount().tolist() == [3, 3]


def test_bad_input_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    pattern = ring(6).pattern
    for count in (0, -1, 7):
        with pytest.raises(ValueError, match=f"between 1 and the 6 nodes of the graph, got {count}"):
            metis_parts(pattern, count)
    monkeypatch.setitem(sys.modules, "pymetis", None)
    with pytest.raises(ValueError, match="scale"):
        metis_parts(pattern, 2)
