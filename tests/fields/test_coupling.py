import math

import pytest
import torch
from hypothesis import given

from kuramotognn import Attention, Graph, RandomWalk
from tests.conftest import graphs, ring


@pytest.fixture
def attention() -> Attention:
    torch.manual_seed(0)
    return Attention(6, heads=3).double()


@given(graphs())
def test_rows_sum_to_one_or_to_nothing(graph: Graph) -> None:
    torch.manual_seed(0)
    x = torch.randn(graph.num_nodes, 4, dtype=torch.float64)
    heard = graph.pattern.sum_rows(graph.weight) > 0
    for adjacency in (Attention(4, heads=2).double(), RandomWalk()):
        sums = graph.pattern.sum_rows(adjacency(x, graph))
        torch.testing.assert_close(sums, heard.double())


def test_attention_is_the_dense_formula(attention: Attention) -> None:
    graph = ring(5)
    x = torch.randn(5, 6, dtype=torch.float64)
    mask = torch.zeros(5, 5, dtype=torch.bool)
    mask[graph.pattern.row, graph.pattern.col] = True
    expected = torch.zeros(5, 5, dtype=torch.float64)
    for head in range(3):
        part = slice(2 * head, 2 * head + 2)
        scores = attention.key(x)[:, part] @ attention.query(x)[:, part].t() / math.sqrt(2)
        expected += torch.softmax(scores.masked_fill(~mask, -torch.inf), dim=1) / 3
    torch.testing.assert_close(attention(x, graph), expected[graph.pattern.row, graph.pattern.col])


def test_attention_gradients_by_finite_differences(attention: Attention) -> None:
    edge_index, x = ring(5).edge_index, torch.randn(5, 6, dtype=torch.float64, requires_grad=True)
    weight = (torch.rand(10, dtype=torch.float64) + 0.1).requires_grad_()
    assert torch.autograd.gradcheck(lambda x, w: attention(x, Graph.from_edge_index(edge_index, 5, w)), (x, weight))


def test_edge_weights_enter_the_softmax(attention: Attention) -> None:
    x = torch.randn(3, 6, dtype=torch.float64)
    edges = torch.tensor([[1, 2, 2], [0, 0, 0]])
    twice = attention(x, Graph.from_edge_index(edges, 3, torch.ones(3, dtype=torch.float64)))
    plain = attention(x, Graph.from_edge_index(edges[:, :2], 3, dtype=torch.float64))
    assert twice[1] > plain[1], "a heavier edge is listened to more"


def test_heads_that_do_not_divide_the_width_get_a_sentence() -> None:
    with pytest.raises(ValueError, match="heads must divide the attention width 10, got 4; the nearest that does is 5"):
        Attention(10, heads=4)
    with pytest.raises(ValueError, match="heads must be at least 1, got 0"):
        Attention(10, heads=0)


@pytest.mark.parametrize("adjacency", [RandomWalk(), Attention(2, heads=1).double()])
def test_negative_weights_get_a_sentence(adjacency: Attention | RandomWalk) -> None:
    graph = Graph.from_edge_index(torch.tensor([[0], [1]]), 2, torch.tensor([-2.0], dtype=torch.float64))
    with pytest.raises(ValueError, match=r"edge weights must not be negative, got -2\.0"):
        adjacency(torch.zeros(2, 2, dtype=torch.float64), graph)
