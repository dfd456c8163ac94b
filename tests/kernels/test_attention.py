"""Attention over edges against its definition, and its promises about bits, absent edges and bad numbers."""

from collections.abc import Callable

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import Tensor

from kuramotognn import Graph
from kuramotognn.graph import Pattern
from kuramotognn.kernels import attention as attention_of_both
from kuramotognn.kernels.reference import attention_per_edge
from tests.conftest import graphs, ring
from tests.kernels.comparing import (
    DTYPES,
    TOLERANCE,
    all_near,
    assert_bits_never_change,
    leaves,
    normal,
    random_graph,
    uniform,
    with_gradients,
)

# (heads, width): four heads at a time, of whole vectors, have a kernel of their own.
BY_FOUR = [(4, 8), (4, 16), (8, 16), (12, 24)]
OTHERWISE = [(1, 1), (2, 7), (3, 16), (4, 19), (5, 2), (6, 8)]
KERNELS = pytest.mark.parametrize("shape", [(2, 3), (4, 8), (8, 8)], ids=["any heads", "four heads", "eight heads"])


def attention(pattern: Pattern, key: Tensor, query: Tensor, weight: Tensor) -> Tensor:
    return attention_of_both(pattern, torch.stack([key, query], dim=1), weight)


def with_scores(shape: tuple[int, int], values: list[float], dtype: torch.dtype) -> Tensor:
    """Keys or queries [N, heads, width] whose first channel is a value of each node, and whose others are zero."""
    out = torch.zeros(len(values), *shape, dtype=dtype)
    out[:, :, 0] = torch.tensor(values, dtype=dtype)[:, None]
    return out


@DTYPES
@pytest.mark.parametrize("shapes", [BY_FOUR, OTHERWISE], ids=["by four", "otherwise"])
@settings(max_examples=40)
@given(graphs(weighted=False), st.data(), st.integers(0, 99), st.sampled_from([0.1, 1.0, 30.0]))
def test_attention_is_its_definition_forward_and_backward(
    dtype: torch.dtype, shapes: list[tuple[int, int]], graph: Graph, data: st.DataObject, seed: int, scale: float
) -> None:
    """A third of the edges have weight zero: absent, and so may whole rows be."""
    shape = (graph.num_nodes, *data.draw(st.sampled_from(shapes)))
    weight = (uniform(seed, graph.num_edges) - 0.3).clamp(min=0.0)
    assume(bool(((weight == 0) | (weight > 1e-2)).all()))  # The gradient grows like 1 / weight.
    inputs = leaves(scale * normal(seed + 1, *shape), normal(seed + 2, *shape), weight, dtype=dtype)
    upstream = normal(seed + 3, graph.num_edges, dtype=dtype)
    wide = leaves(*inputs, dtype=torch.float64)
    expected = with_gradients(attention_per_edge(graph.pattern, *wide), wide, upstream)
    ours = with_gradients(attention(graph.pattern, *inputs), inputs, upstream)
    all_near(ours, expected, TOLERANCE[dtype], terms=max(1.0, scale))


def test_attention_gradients_by_finite_differences() -> None:
    graph = ring(5)
    inputs = leaves(normal(0, 5, 2, 3), normal(1, 5, 2, 3), 0.5 + uniform(2, graph.num_edges))
    assert torch.autograd.gradcheck(lambda key, query, weight: attention(graph.pattern, key, query, weight), inputs)


@DTYPES
@KERNELS
def test_an_absent_edge_of_huge_score_takes_nothing_from_the_others(dtype: torch.dtype, shape: tuple[int, int]) -> None:
    """Node 0 hears 1 (absent) and 2; node 1 hears 2 (absent) only; node 2 hears nobody."""
    graph = Graph.from_edge_index(torch.tensor([[1, 2, 2], [0, 0, 1]]), 3, torch.tensor([0.0, 0.5, 0.0]).to(dtype))
    key, query = with_scores(shape, [1.0, 1.0, 1.0], dtype), with_scores(shape, [0.0, 1e4, -1e4], dtype)
    assert attention(graph.pattern, key, query, graph.weight).tolist() == [0.0, 1.0, 0.0]


@DTYPES
@KERNELS
def test_huge_scores_give_the_highest_everything(dtype: torch.dtype, shape: tuple[int, int]) -> None:
    graph = Graph.from_edge_index(torch.tensor([[0, 1, 2], [0, 0, 0]]), 3, dtype=dtype)
    key, query = with_scores(shape, [1e4, 1e4, 1e4], dtype), with_scores(shape, [1e4, 2e4, -3e4], dtype)
    assert attention(graph.pattern, key, query, graph.weight).tolist() == [0.0, 1.0, 0.0]


@DTYPES
@KERNELS
def test_an_absent_edge_has_no_gradient(dtype: torch.dtype, shape: tuple[int, int]) -> None:
    graph = Graph.from_edge_index(torch.tensor([[1, 2], [0, 0]]), 3, torch.tensor([0.0, 0.5]).to(dtype))
    inputs = leaves(normal(0, 3, *shape, dtype=dtype), normal(1, 3, *shape, dtype=dtype), graph.weight)
    attention(graph.pattern, *inputs)[0].backward()
    assert [float(tensor.grad.abs().max()) for tensor in inputs if tensor.grad is not None] == [0.0, 0.0, 0.0]


@DTYPES
@KERNELS
@pytest.mark.parametrize("place", [0, 1])
def test_a_nan_in_a_key_reaches_its_row_and_no_other(dtype: torch.dtype, shape: tuple[int, int], place: int) -> None:
    graph = ring(6, dtype)
    key, query = normal(0, 6, *shape, dtype=dtype), normal(1, 6, *shape, dtype=dtype)
    key[2, place, 1] = float("nan")
    assert attention(graph.pattern, key, query, graph.weight).isnan().equal(graph.pattern.row == 2)


@DTYPES
@KERNELS
def test_a_nan_in_a_query_reaches_the_rows_that_look_at_it(dtype: torch.dtype, shape: tuple[int, int]) -> None:
    graph = ring(6, dtype)
    key, query = normal(0, 6, *shape, dtype=dtype), normal(1, 6, *shape, dtype=dtype)
    query[2, 0, 1] = float("nan")
    looking = (graph.pattern.row == 1) | (graph.pattern.row == 3)
    assert attention(graph.pattern, key, query, graph.weight).isnan().equal(looking)


@KERNELS
@pytest.mark.parametrize(("dtype", "tiny"), [(torch.float32, 1e-40), (torch.float64, 1e-310)], ids=str)
def test_rows_of_tiny_weights_still_sum_to_one(dtype: torch.dtype, tiny: float, shape: tuple[int, int]) -> None:
    graph = ring(4, dtype)
    keys = torch.zeros(4, *shape, dtype=dtype)
    a = attention(graph.pattern, keys, keys, tiny * graph.weight)
    torch.testing.assert_close(a, torch.full_like(a, 0.5))


@DTYPES
@KERNELS
def test_bits_of_attention_do_not_depend_on_threads_or_runs(
    dtype: torch.dtype, shape: tuple[int, int], set_threads: Callable[[int], None]
) -> None:
    graph = random_graph(700, 4000, dtype)
    inputs = leaves(normal(0, 700, *shape, dtype=dtype), normal(1, 700, *shape, dtype=dtype), graph.weight)
    upstream = normal(2, graph.num_edges, dtype=dtype)
    assert_bits_never_change(lambda: with_gradients(attention(graph.pattern, *inputs), inputs, upstream), set_threads)
