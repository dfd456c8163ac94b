from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import torch
from scipy import sparse

from kuramotognn import Graph
from kuramotognn.simulate import Oscillators, as_network, random_network, read_network, small_world
from kuramotognn.simulate.networks import parse_network
from tests.conftest import ring


def dense(network: object) -> np.ndarray:
    return network if isinstance(network, np.ndarray) else network.toarray()


def test_all_kinds_of_graphs_give_the_same_network() -> None:
    """A directed edge (j, i) couples i to j: row i, column j."""
    expected = np.array([[0, 0, 2.0], [1.0, 0, 0], [0, 0, 0]])
    graph = nx.DiGraph()
    graph.add_nodes_from(range(3))
    graph.add_edge(0, 1)
    graph.add_edge(2, 0, weight=2.0)
    np.testing.assert_array_equal(dense(as_network(graph)), expected)
    np.testing.assert_array_equal(dense(as_network(expected)), expected)
    np.testing.assert_array_equal(dense(as_network(sparse.coo_array(expected))), expected)


def test_kuramotognn_graph() -> None:
    graph = ring(5)
    np.testing.assert_array_equal(dense(as_network(graph)), nx.to_numpy_array(nx.cycle_graph(5)))
    assert isinstance(graph, Graph)


def test_inputs_are_not_changed() -> None:
    """Edges of weight zero are removed from the network, not from the graph."""
    edges, weights = torch.tensor([[0, 1, 2], [1, 2, 0]]), torch.tensor([0.0, 1.0, 2.0])
    graph = Graph.from_edge_index(edges, 3, weights)
    columns, matrix = graph.pattern.col.clone(), sparse.csr_array(([0.0, 1.0], [1, 0], [0, 1, 2, 2]), shape=(3, 3))
    assert as_network(graph).nnz == 2
    assert as_network(matrix).nnz == 1
    assert torch.equal(graph.pattern.col, columns)
    assert matrix.nnz == 2


def test_random_network_has_the_degrees_of_a_poisson_distribution() -> None:
    network = random_network(20_000, 10.0, np.random.default_rng(0))
    degrees = np.diff(network.indptr)
    assert degrees.mean() == pytest.approx(10, rel=0.01)
    assert degrees.var() == pytest.approx(10, rel=0.05)
    assert not (network - network.T).nnz
    assert not network.diagonal().any()


def test_small_world_is_a_ring_lattice_without_rewiring() -> None:
    network = small_world(12, 4, 0.0, np.random.default_rng(0))
    np.testing.assert_array_equal(network.toarray(), nx.to_numpy_array(nx.watts_strogatz_graph(12, 4, 0.0)))


def test_small_world_rewires_the_given_share() -> None:
    n, rng = 5000, np.random.default_rng(0)
    network = small_world(n, 6, 0.3, rng)
    lattice = small_world(n, 6, 0.0, rng)
    assert network.multiply(lattice).nnz / lattice.nnz == pytest.approx(0.7, abs=0.02)
    assert not network.diagonal().any()
    assert network.nnz == pytest.approx(6 * n, rel=0.01)


def test_files_of_edges(tmp_path: Path) -> None:
    file = tmp_path / "edges.csv"
    file.write_text("source,target\n0,1\n1,0\n1,2\n")
    np.testing.assert_array_equal(dense(read_network(file)), nx.to_numpy_array(nx.path_graph(3)))
    np.testing.assert_array_equal(dense(read_network(file, directed=True)), [[0, 1, 0], [1, 0, 0], [0, 1, 0]])
    file.write_text("source,target,weight\n0,1,0.5\n3,3,-1\n")
    expected = np.zeros((5, 5))
    expected[0, 1] = expected[1, 0] = 0.5
    expected[3, 3] = -1
    np.testing.assert_array_equal(dense(read_network(file, 5)), expected)


def test_files_of_matrices(tmp_path: Path) -> None:
    matrix = np.array([[0, 1.5], [2.0, 0]])
    np.save(tmp_path / "a.npy", matrix)
    sparse.save_npz(tmp_path / "a.npz", sparse.csr_array(matrix))
    for name in ("a.npy", "a.npz"):
        np.testing.assert_array_equal(dense(parse_network(str(tmp_path / name), None, 0)), matrix)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("from,to\n0,1\n", "has no column 'source'; its first line must be source,target"),
        ("source,target\n0,p17\n", "row 2: target 'p17' is not a node number"),
        ("source,target\n0,1\n-1,2\n", "row 3: edge -1 -> 2 is not between the 3 oscillators"),
        ("source,target,weight\n0,1,much\n", "row 2: weight 'much' is not a number"),
        ("source,target,weight\n0,1,inf\n", "couplings must be finite"),
        ("", "is not a table of edges"),
        ("source,target\n", r"couplings must have shape \[N, N\] with N > 0"),
    ],
)
def test_wrong_files_of_edges(tmp_path: Path, content: str, sentence: str) -> None:
    file = tmp_path / "edges.csv"
    file.write_text(content)
    with pytest.raises(ValueError, match=sentence):
        read_network(file)


@pytest.mark.parametrize(
    ("text", "count", "sentence"),
    [
        ("random:3", None, "--graph random:3 needs --oscillators"),
        ("random", 9, "is not of the form random:DEGREE"),
        ("random:many", 9, "is not of the form random:DEGREE"),
        ("random:20", 9, "the average degree must lie between 0 and the number of oscillators 9, got 20"),
        ("small-world:4", 9, "is not of the form small-world:NEIGHBOURS:PROBABILITY"),
        ("small-world:3:0.1", 9, "needs an even number of neighbours"),
        ("small-world:4:2", 9, "the rewiring probability must lie between 0 and 1, got 2"),
        ("missing.csv", None, "graph 'missing.csv' is neither a file nor random:DEGREE"),
    ],
)
def test_wrong_values_of_graph(text: str, count: int | None, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        parse_network(text, count, 0)


def test_wrong_files_of_matrices(tmp_path: Path) -> None:
    for name, sentence in [("a.npz", "cannot be read as a matrix"), ("a.txt", "must end in .csv, .npz or .npy")]:
        (tmp_path / name).write_bytes(b"nothing")
        with pytest.raises(ValueError, match=sentence):
            read_network(tmp_path / name)
    np.save(tmp_path / "a.npy", np.zeros((2, 2)))
    with pytest.raises(ValueError, match="has 2 nodes, but --oscillators is 3"):
        parse_network(str(tmp_path / "a.npy"), 3, 0)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({}, "the number of oscillators is missing"),
        ({"count": 0}, "at least one oscillator, got 0"),
        ({"count": 4, "frequencies": np.zeros(3)}, "sizes differ: 4 oscillators, 3 frequencies"),
        ({"count": 4, "graph": np.zeros((3, 3))}, "sizes differ: 4 oscillators, 3 nodes of the graph"),
        ({"graph": np.zeros((3, 2))}, r"couplings must have shape \[N, N\]"),
        ({"graph": nx.Graph()}, "the graph has no nodes"),
        ({"graph": [[0, 1], [1, 0]]}, "graph must be a Graph, a NetworkX graph"),
        ({"count": 3, "coupling": np.inf}, "coupling must be finite, got inf"),
        ({"count": 3, "noise": -1.0}, "noise must be at least 0 and finite, got -1.0"),
        ({"count": 3, "normalise": "degree"}, "normalise='degree' needs a graph"),
        ({"frequencies": np.array([np.nan])}, "frequencies must be finite numbers"),
    ],
)
def test_wrong_models(settings: dict, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        Oscillators(**settings)
