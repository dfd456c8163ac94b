import torch
from hypothesis import given

from kuramotognn import Graph
from kuramotognn.explore.graph_layout import force_layout, make_layout, sample_nodes
from tests.conftest import graphs, ring


def test_neighbours_lie_closer_than_others() -> None:
    """Two complete graphs, joined by an edge."""
    clique = torch.combinations(torch.arange(20)).t()
    edges = torch.cat([clique, clique + 20, torch.tensor([[0], [20]])], dim=1)
    positions = force_layout(edges, 40)
    distance = torch.cdist(positions, positions)
    assert distance[:20, 20:].mean() > 2 * distance[:20, :20].mean()


@given(graphs(weighted=False))
def test_every_graph_gets_different_places_in_the_unit_square(graph: Graph) -> None:
    layout = make_layout(graph)
    assert layout.nodes.tolist() == list(range(graph.num_nodes))
    assert layout.positions.min() >= 0
    assert layout.positions.max() <= 1
    assert layout.positions.unique(dim=0).size(0) == graph.num_nodes


def test_edges_are_shown_once_and_without_loops() -> None:
    edges = torch.tensor([[0, 1, 1, 2, 2], [1, 0, 1, 1, 2]])
    layout = make_layout(Graph.from_edge_index(edges, 3))
    assert layout.edges.t().tolist() == [[0, 1], [1, 2]]
    assert layout.num_edges == 2


def test_the_same_graph_gives_the_same_layout() -> None:
    first, second = (make_layout(ring(300), most_nodes=50) for _ in range(2))
    assert first.nodes.equal(second.nodes)
    assert first.positions.equal(second.positions)


def test_a_sample_has_the_wanted_size_and_keeps_neighbours_together() -> None:
    """Of 1000 nodes in a ring, 100 drawn one by one would have 10 edges between them in the mean."""
    nodes = sample_nodes(ring(1000), 100)
    layout = make_layout(ring(1000), most_nodes=100)
    assert nodes.unique().numel() == 100
    assert layout.edges.size(1) > 50
    assert layout.num_edges == 1000


def test_nodes_without_edges_can_be_sampled() -> None:
    graph = Graph.from_edge_index(torch.empty(2, 0, dtype=torch.long), 40)
    assert sample_nodes(graph, 39).unique().numel() == 39


def test_edges_are_thinned() -> None:
    clique = torch.combinations(torch.arange(20)).t()
    layout = make_layout(Graph.from_edge_index(clique, 20), most_edges=30)
    assert layout.edges.unique(dim=1).size(1) == 30
    assert layout.num_edges == 190
