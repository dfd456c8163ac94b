"""Attention over edges against its definition, and its promises about bits, absent edges and bad numbers."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import Tensor

from kuramotognn import Graph
from kuramotognn.kernels import attention, use_backend
from kuramotognn.kernels.attention.operator import edge_attention
from kuramotognn.kernels.attention.reference import attention_per_edge
from kuramotognn.kernels.pattern_layout import layout
from tests.conftest import graphs, ring
from tests.kernels.comparing import (
    CHANNELS,
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

pytestmark = pytest.mark.usefixtures("isa")
SHAPES = [(1, 1), (2, 7), (3, 16), (4, 19), (5, 2), (6, 8), (4, 16), (8, 32), (12, 24)]  # (heads, width)
KERNELS = pytest.mark.parametrize("shape", [(2, 3), (4, 8)], ids=["short heads", "whole vectors"])


def states_and_projections(seed: int, nodes: int, channels: int, heads: int, width: int) -> list[Tensor]:
    """x [N, d], key and query [heads · width, d], bias [heads · width]."""
    wide = heads * width
    return [
        normal(seed, nodes, channels),
        normal(seed + 1, wide, channels) / channels**0.5,
        normal(seed + 2, wide, channels) / channels**0.5,
        normal(seed + 3, wide),
    ]


def by_definition(graph: Graph, heads: int, x: Tensor, key: Tensor, query: Tensor, bias: Tensor, w: Tensor) -> Tensor:
    shape = (x.size(0), heads, -1)
    return attention_per_edge(graph.pattern, (x @ key.t() + bias).view(shape), (x @ query.t()).view(shape), w)


def no_nodes() -> Graph:
    return Graph.from_edge_index(torch.empty(2, 0, dtype=torch.int64), 0, dtype=torch.float64)


def of_scores(graph: Graph, shape: tuple[int, int], keys: list[float], queries: list[float]) -> Tensor:
    """Attention where the first channel of every head's keys and queries is given, and the others are zero."""
    heads, width = shape
    dtype, first = graph.weight.dtype, torch.zeros(heads * width, 2, dtype=graph.weight.dtype)
    first[::width] = 1
    of_key, of_query = first * torch.tensor([1, 0], dtype=dtype), first * torch.tensor([0, 1], dtype=dtype)
    x = torch.tensor([keys, queries], dtype=dtype).t().contiguous()
    return attention(graph.pattern, x, of_key, of_query, torch.zeros_like(first[:, 0]), graph.weight, heads)


@DTYPES
@settings(max_examples=60)
@given(graphs(weighted=False), st.sampled_from(SHAPES), CHANNELS, st.integers(0, 99), st.sampled_from([0.1, 1.0, 30.0]))
def test_attention_is_its_definition_forward_and_backward(
    dtype: torch.dtype, graph: Graph, shape: tuple[int, int], channels: int, seed: int, scale: float
) -> None:
    """A third of the edges have weight zero: absent, and so may whole rows be."""
    heads, width = shape
    weight = (uniform(seed, graph.num_edges) - 0.3).clamp(min=0.0)
    assume(bool(((weight == 0) | (weight > 1e-2)).all()))  # The gradient grows like 1 / weight.
    operands = states_and_projections(seed + 1, graph.num_nodes, channels, heads, width)
    operands[1:4:2] = (scale * operand for operand in operands[1:4:2])  # keys
    inputs = leaves(*operands, weight, dtype=dtype)
    upstream = normal(seed + 5, graph.num_edges, dtype=dtype)
    wide = leaves(*inputs, dtype=torch.float64)
    expected = with_gradients(by_definition(graph, heads, *wide), wide, upstream)
    ours = with_gradients(attention(graph.pattern, *inputs, heads), inputs, upstream)
    all_near(ours, expected, TOLERANCE[dtype], terms=max(1.0, scale))


@KERNELS
def test_attention_gradients_by_finite_differences(shape: tuple[int, int]) -> None:
    graph = ring(5)
    inputs = leaves(*states_and_projections(0, 5, 3, *shape), 0.5 + uniform(4, graph.num_edges))
    assert torch.autograd.gradcheck(lambda *operands: attention(graph.pattern, *operands, shape[0]), inputs)


@pytest.mark.parametrize("nodes", [0, 1, 50])
def test_torch_and_fused_attention_agree(nodes: int) -> None:
    graph = random_graph(nodes, 300, torch.float64) if nodes else no_nodes()
    inputs, upstream = leaves(*states_and_projections(0, nodes, 7, 4, 8), graph.weight), normal(4, graph.num_edges)
    ours = with_gradients(attention(graph.pattern, *inputs, 4), inputs, upstream)
    with use_backend("torch"):
        theirs = with_gradients(attention(graph.pattern, *inputs, 4), inputs, upstream)
    all_near(ours, theirs, 1e-12)


@DTYPES
@KERNELS
def test_an_absent_edge_of_huge_score_takes_nothing_from_the_others(dtype: torch.dtype, shape: tuple[int, int]) -> None:
    """Node 0 hears 1 (absent) and 2; node 1 hears 2 (absent) only; node 2 hears nobody."""
    graph = Graph.from_edge_index(torch.tensor([[1, 2, 2], [0, 0, 1]]), 3, torch.tensor([0.0, 0.5, 0.0]).to(dtype))
    assert of_scores(graph, shape, [1.0, 1.0, 1.0], [0.0, 1e4, -1e4]).tolist() == [0.0, 1.0, 0.0]


@DTYPES
@KERNELS
def test_huge_scores_give_the_highest_everything(dtype: torch.dtype, shape: tuple[int, int]) -> None:
    graph = Graph.from_edge_index(torch.tensor([[0, 1, 2], [0, 0, 0]]), 3, dtype=dtype)
    assert of_scores(graph, shape, [1e4, 1e4, 1e4], [1e4, 2e4, -3e4]).tolist() == [0.0, 1.0, 0.0]


@DTYPES
@KERNELS
def test_an_absent_edge_has_no_gradient(dtype: torch.dtype, shape: tuple[int, int]) -> None:
    graph = Graph.from_edge_index(torch.tensor([[1, 2], [0, 0]]), 3, torch.tensor([0.0, 0.5]).to(dtype))
    inputs = leaves(*states_and_projections(0, 3, 5, *shape), graph.weight, dtype=dtype)
    attention(graph.pattern, *inputs, shape[0])[0].backward()
    assert [float(tensor.grad.abs().max()) for tensor in inputs if tensor.grad is not None] == [0.0] * 5


def with_a_nan_score(
    dtype: torch.dtype, shape: tuple[int, int], channel: int, *, in_key: bool
) -> tuple[Graph, list[Tensor]]:
    """A ring, and projections by which one channel of node 2's key (or query) is infinite where all others' are zero.

    Infinity times zero is not a number, in the scores of one head.
    """
    graph = ring(6, dtype)
    x, *projections, bias = (operand.to(dtype) for operand in states_and_projections(0, 6, 5, *shape))
    x[:, 0] = 0
    x[2, 0] = torch.finfo(dtype).max
    mine, other = projections if in_key else projections[::-1]
    mine[channel] = torch.tensor([2, 0, 0, 0, 0], dtype=dtype)
    other[channel], bias[channel] = 0, 0
    others = torch.arange(len(mine)) != channel
    mine[others, 0] = other[others, 0] = 0
    return graph, [x, *projections, bias]


@DTYPES
@KERNELS
@pytest.mark.parametrize("head", [0, 1])
def test_a_nan_score_of_a_key_reaches_its_row_and_no_other(
    dtype: torch.dtype, shape: tuple[int, int], head: int
) -> None:
    graph, operands = with_a_nan_score(dtype, shape, head * shape[1] + 1, in_key=True)
    a = attention(graph.pattern, *operands, graph.weight, shape[0])
    assert a.isnan().equal(graph.pattern.row == 2)


@DTYPES
@KERNELS
def test_a_nan_score_of_a_query_reaches_the_rows_that_look_at_it(dtype: torch.dtype, shape: tuple[int, int]) -> None:
    graph, operands = with_a_nan_score(dtype, shape, 1, in_key=False)
    a = attention(graph.pattern, *operands, graph.weight, shape[0])
    assert a.isnan().equal((graph.pattern.row == 1) | (graph.pattern.row == 3))


@KERNELS
@pytest.mark.parametrize(("dtype", "tiny"), [(torch.float32, 1e-40), (torch.float64, 1e-310)], ids=str)
def test_rows_of_tiny_weights_still_sum_to_one(dtype: torch.dtype, tiny: float, shape: tuple[int, int]) -> None:
    graph, nothing = ring(4, dtype), [0.0] * 4
    a = of_scores(replace(graph, weight=tiny * graph.weight), shape, nothing, nothing)
    torch.testing.assert_close(a, torch.full_like(a, 0.5))


@DTYPES
@KERNELS
def test_bits_of_attention_do_not_depend_on_threads_or_runs(
    dtype: torch.dtype, shape: tuple[int, int], set_threads: Callable[[int], None]
) -> None:
    """From keys and queries on: what BLAS does for the projections is its own affair."""
    graph, (heads, width) = random_graph(700, 4000, dtype), shape
    inputs = leaves(normal(0, 700, heads * width), normal(1, 700, heads * width), graph.weight, dtype=dtype)
    upstream, block = normal(4, graph.num_edges, dtype=dtype), layout(graph.pattern)
    assert_bits_never_change(
        lambda: with_gradients(edge_attention(block, *inputs, heads)[0], inputs, upstream), set_threads
    )


def test_second_derivatives_are_those_of_the_definition() -> None:
    graph = random_graph(6, 15, torch.float64)
    inputs = leaves(*states_and_projections(0, 6, 3, 2, 3), graph.weight)
    results = []
    for compute in (lambda *each: attention(graph.pattern, *each, 2), lambda *each: by_definition(graph, 2, *each)):
        slopes = torch.autograd.grad(compute(*inputs).square().sum(), inputs, create_graph=True)
        results.append(list(torch.autograd.grad(sum(slope.sin().sum() for slope in slopes), inputs)))
    all_near(*results, 1e-9)


def test_offsets_beyond_32_bits() -> None:
    """Keys and queries of 2³¹ numbers each, of which only the rows that are read take memory."""
    nodes, heads, width = 2**21 + 9, 2, 512
    tall = torch.empty(nodes, heads * width)
    tall[-3:] = normal(0, 3, heads * width, dtype=torch.float32)
    edges = torch.tensor([[0, 1, 2, 0], [1, 0, 0, 2]])
    here, far = (Graph.from_edge_index(edges + first, size) for first, size in ((0, 3), (nodes - 3, nodes)))
    shape = (3, heads, width)
    expected = attention_per_edge(here.pattern, tall[-3:].view(shape), tall[-3:].view(shape), here.weight)
    torch.testing.assert_close(edge_attention(layout(far.pattern), tall, tall, far.weight, heads)[0], expected)
