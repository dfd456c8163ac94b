import pytest
import scipy.sparse as sp
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.utils import softmax

from kuramotognn import Graph
from kuramotognn.kernels.attention.reference import row_softmax
from kuramotognn.kernels.flow.reference import kuramoto_exact, kuramoto_local_order, kuramoto_per_edge
from kuramotognn.kernels.sparse.reference import row_normalise, spmm
from tests.conftest import graphs, ring


def states(graph: Graph, seed: int, scale: float = 1.0, channels: int = 3) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return scale * torch.randn(graph.num_nodes, channels, generator=generator, dtype=torch.float64)


@given(graphs(), st.integers(0, 99), st.sampled_from([1e-3, 1.0, 50.0]))
def test_exact_coupling_is_the_per_edge_sum_forward_and_backward(graph: Graph, seed: int, scale: float) -> None:
    x = states(graph, seed, scale).requires_grad_()
    a = graph.weight.clone().requires_grad_()
    upstream = states(graph, seed + 1)
    results = []
    for form in (kuramoto_exact, kuramoto_per_edge):
        y = form(graph.pattern, a, x)
        results.append((y, *torch.autograd.grad(y, (a, x), upstream)))
    for ours, definition in zip(*results, strict=True):
        torch.testing.assert_close(ours, definition, atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize("form", [kuramoto_exact, kuramoto_per_edge, kuramoto_local_order])
def test_gradients_by_finite_differences(form) -> None:
    graph = ring(5)
    a = (torch.rand(graph.num_edges, dtype=torch.float64) + 0.1).requires_grad_()
    x = states(graph, 0).requires_grad_()
    assert torch.autograd.gradcheck(lambda a, x: form(graph.pattern, a, x), (a, x))
    assert torch.autograd.gradgradcheck(lambda a, x: form(graph.pattern, a, x), (a, x))


@given(graphs(), st.integers(0, 99))
def test_sparse_product_is_scipys(graph: Graph, seed: int) -> None:
    x = states(graph, seed)
    matrix = sp.csr_matrix((graph.weight, graph.pattern.col, graph.pattern.rowptr), shape=(graph.num_nodes,) * 2)
    torch.testing.assert_close(spmm(graph.pattern, graph.weight, x), torch.from_numpy(matrix @ x.numpy()))


def test_local_order_agrees_to_third_order_in_the_phase_spread() -> None:
    graph = ring(7)
    a = row_normalise(graph.pattern, torch.rand(graph.num_edges, dtype=torch.float64))
    x = states(graph, 1)
    errors = [
        (kuramoto_local_order(graph.pattern, a, e * x) - kuramoto_exact(graph.pattern, a, e * x)).abs().max()
        for e in (1e-1, 1e-2)
    ]
    assert errors[0] > 0, "an approximation, not an identity"
    assert 2.9 < torch.log10(errors[0] / errors[1]) < 3.1


def test_local_order_has_a_finite_gradient_where_the_mean_phasor_vanishes() -> None:
    # Node 0 hears two opposite phases of equal weight, node 3 nobody: R = 0 for both.
    graph = Graph.from_edge_index(torch.tensor([[1, 2], [0, 0]]), 4, dtype=torch.float64)
    x = torch.tensor([[0.3], [torch.pi / 2], [-torch.pi / 2], [1.0]], dtype=torch.float64, requires_grad=True)
    kuramoto_local_order(graph.pattern, graph.weight / 2, x).sum().backward()
    assert x.grad is not None
    assert torch.isfinite(x.grad).all()


@given(graphs(weighted=False), st.integers(0, 99))
def test_row_softmax_is_pygs(graph: Graph, seed: int) -> None:
    scores = 30 * torch.randn(graph.num_edges, 2, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    ours = row_softmax(graph.pattern, scores, graph.weight)
    torch.testing.assert_close(ours, softmax(scores, graph.pattern.row, num_nodes=graph.num_nodes))


def test_an_edge_of_weight_zero_gets_nothing_and_the_row_still_sums_to_one() -> None:
    graph = Graph.from_edge_index(torch.tensor([[1, 2], [0, 0]]), 3, torch.tensor([0.0, 0.5]))
    # The removed edge has the higher score by far: it must not push the other one into underflow.
    shares = row_softmax(graph.pattern, torch.tensor([[800.0], [-800.0]]), graph.weight)
    assert shares.flatten().tolist() == [0.0, 1.0]
