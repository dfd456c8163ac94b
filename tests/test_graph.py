import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given
from torch_geometric.utils import add_remaining_self_loops, coalesce

from kuramotognn import Graph, largest_component
from tests.conftest import graphs


def dense(graph: Graph) -> np.ndarray:
    matrix = np.zeros((graph.num_nodes, graph.num_nodes))
    matrix[graph.pattern.row, graph.pattern.col] = graph.weight
    return matrix


@given(graphs())
def test_csr_is_scipys(graph: Graph) -> None:
    matrix = sp.csr_matrix((graph.weight, graph.pattern.col, graph.pattern.rowptr), shape=(graph.num_nodes,) * 2)
    np.testing.assert_array_equal(matrix.toarray(), dense(graph))
    pattern = graph.pattern.transposed
    values = graph.weight[graph.pattern.transpose]
    transposed = sp.csr_matrix((values, pattern.col, pattern.rowptr), shape=(graph.num_nodes,) * 2)
    np.testing.assert_array_equal(transposed.toarray(), dense(graph).T)
    np.testing.assert_array_equal(pattern.transposed.col, graph.pattern.col)
    np.testing.assert_array_equal(values[pattern.transpose], graph.weight)


def test_repeated_weighted_edges_are_added_as_pyg_does() -> None:
    edge_index = torch.tensor([[0, 2, 0, 1], [1, 1, 1, 0]])
    weight = torch.tensor([1.0, 2.0, 3.0, 4.0])
    graph = Graph.from_edge_index(edge_index, 3, weight)
    index, value = coalesce(edge_index, weight, sort_by_row=False)
    torch.testing.assert_close(graph.edge_index, index)
    torch.testing.assert_close(graph.weight, value)


def test_repeated_unweighted_edges_count_once() -> None:
    graph = Graph.from_edge_index(torch.tensor([[0, 0], [1, 1]]), 2)
    assert graph.weight.tolist() == [1.0]


def test_self_loops_as_pyg_adds_them() -> None:
    edge_index = torch.tensor([[0, 1, 1], [1, 1, 2]])
    weight = torch.tensor([2.0, 3.0, 4.0])
    graph = Graph.from_edge_index(edge_index, 3, weight, self_loops=True)
    expected = coalesce(*add_remaining_self_loops(edge_index, weight, 1.0, 3), sort_by_row=False)
    torch.testing.assert_close(graph.edge_index, expected[0])
    torch.testing.assert_close(graph.weight, expected[1])


def test_gradient_reaches_edge_weights() -> None:
    weight = torch.ones(3, requires_grad=True)
    graph = Graph.from_edge_index(torch.tensor([[0, 0, 1], [1, 1, 0]]), 2, weight)
    (graph.weight * torch.tensor([5.0, 7.0])).sum().backward()
    assert weight.grad is not None
    assert weight.grad.tolist() == [7.0, 7.0, 5.0]


@pytest.mark.parametrize(
    ("edge_index", "weight", "message"),
    [
        (torch.tensor([[0, 3], [1, 0]]), None, r"edge 1 \(3 -> 0\) is out of range: the graph has 3 nodes"),
        (torch.tensor([[0, -1], [1, 0]]), None, r"edge 1 \(-1 -> 0\) is out of range"),
        (torch.tensor([0, 1]), None, r"shape \[2, E\], got \[2\]"),
        (torch.tensor([[0.0], [1.0]]), None, "must be int64, got torch.float32"),
        (torch.tensor([[0], [1]]), torch.ones(2), r"edge_weight must have shape \[1\], got \[2\]"),
        (torch.tensor([[0], [1]]), torch.tensor([float("nan")]), r"edge_weight\[0\] is nan"),
    ],
)
def test_wrong_edges_get_a_sentence(edge_index: torch.Tensor, weight: torch.Tensor | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Graph.from_edge_index(edge_index, 3, weight)


def test_largest_component() -> None:
    edge_index = torch.tensor([[0, 2, 4, 5], [1, 3, 5, 6]])
    assert largest_component(edge_index, 8).tolist() == [4, 5, 6]


def test_empty_graph() -> None:
    graph = Graph.from_edge_index(torch.empty(2, 0, dtype=torch.long), 0)
    assert (graph.num_nodes, graph.num_edges) == (0, 0)
    assert largest_component(graph.edge_index, 0).numel() == 0


def test_conversion_keeps_what_is_already_right() -> None:
    graph = Graph.from_edge_index(torch.tensor([[0], [1]]), 2)
    assert graph.to("cpu") is graph
    assert graph.to(torch.float32) is graph
    assert graph.to(torch.float64).weight.dtype == torch.float64
    assert graph.to("meta").pattern.col.device.type == "meta"
