"""Sparse products against SciPy and dense ones."""

from collections.abc import Callable

import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from kuramotognn.graph import Pattern
from kuramotognn.kernels import affine, spmm, use_backend
from kuramotognn.kernels.pattern_layout import layout
from kuramotognn.kernels.sparse.operator import sampled
from tests.conftest import ring
from tests.kernels.comparing import (
    CHANNELS,
    DTYPES,
    TOLERANCE,
    all_near,
    assert_bits_never_change,
    assert_near,
    assert_same_bits,
    leaves,
    normal,
    random_graph,
    uniform,
    with_gradients,
)

pytestmark = pytest.mark.usefixtures("isa")


@st.composite
def patterns(draw: st.DrawFn) -> Pattern:
    """Rectangular, with empty rows and columns; no row, no column or no entry included."""
    rows, cols = draw(st.integers(0, 12)), draw(st.integers(0, 12))
    density, seed = draw(st.sampled_from([0.0, 0.1, 0.4, 1.0])), draw(st.integers(0, 99))
    row, col = (uniform(seed, rows, cols) < density).nonzero().t().contiguous()
    return Pattern.from_sorted(row, col, rows, cols)


@DTYPES
@settings(max_examples=60)
@given(patterns(), CHANNELS, st.integers(0, 99))
def test_sparse_product_is_scipys(dtype: torch.dtype, pattern: Pattern, channels: int, seed: int) -> None:
    values = normal(seed, pattern.num_entries, dtype=dtype)
    dense = normal(seed + 1, pattern.num_cols, channels, dtype=dtype)
    shape = (pattern.num_rows, pattern.num_cols)
    matrix = sp.csr_matrix((values.double(), pattern.col, pattern.rowptr), shape=shape)
    expected = torch.from_numpy(matrix @ dense.double().numpy())
    assert_near(spmm(pattern, values, dense), expected, TOLERANCE[dtype])


@DTYPES
@settings(max_examples=60)
@given(patterns(), CHANNELS, st.integers(0, 99))
def test_sparse_product_has_the_gradients_of_the_dense_one(
    dtype: torch.dtype, pattern: Pattern, channels: int, seed: int
) -> None:
    inputs = leaves(normal(seed, pattern.num_entries), normal(seed + 1, pattern.num_cols, channels), dtype=dtype)
    upstream = normal(seed + 2, pattern.num_rows, channels, dtype=dtype)
    values, dense = leaves(*inputs, dtype=torch.float64)
    matrix = values.new_zeros(pattern.num_rows, pattern.num_cols).index_put((pattern.row, pattern.col), values)
    expected = with_gradients(matrix @ dense, [values, dense], upstream)
    all_near(with_gradients(spmm(pattern, *inputs), inputs, upstream), expected, TOLERANCE[dtype])


@pytest.mark.parametrize("wanted", [0, 1])
def test_sparse_product_gives_one_gradient_without_the_other(wanted: int) -> None:
    graph = ring(5)
    inputs = [graph.weight.clone(), normal(0, 5, 3)]
    inputs[wanted].requires_grad_()
    matrix = torch.zeros(5, 5, dtype=torch.float64).index_put((graph.pattern.row, graph.pattern.col), inputs[0])
    expected = with_gradients(matrix @ inputs[1], [inputs[wanted]], normal(1, 5, 3))
    all_near(with_gradients(spmm(graph.pattern, *inputs), [inputs[wanted]], normal(1, 5, 3)), expected, 1e-12)


@DTYPES
@settings(max_examples=60)
@given(patterns(), CHANNELS, st.integers(0, 99), st.booleans(), st.booleans())
def test_sparse_affine_map_is_the_dense_one(
    dtype: torch.dtype, pattern: Pattern, channels: int, seed: int, biased: bool, of_values: bool
) -> None:
    """With the gradients of weight and bias, and those of the values where they are asked for."""
    values = normal(seed, pattern.num_entries, dtype=dtype)
    parameters = [normal(seed + 1, channels, pattern.num_cols), *([normal(seed + 2, channels)] if biased else [])]
    upstream = normal(seed + 3, pattern.num_rows, channels, dtype=dtype)

    def run(kind: torch.dtype, compute: Callable[..., Tensor]) -> list[Tensor]:
        inputs = leaves(values, *parameters, dtype=kind)
        if not of_values:
            inputs[0] = inputs[0].detach()
        wanted = [each for each in inputs if each.requires_grad]
        return with_gradients(compute(*inputs), wanted, upstream.to(kind))

    def dense(values: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        matrix = values.new_zeros(pattern.num_rows, pattern.num_cols).index_put((pattern.row, pattern.col), values)
        return torch.nn.functional.linear(matrix, weight, bias)

    def sparse(values: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        return affine(pattern, values, weight, bias)

    expected = run(torch.float64, dense)
    all_near(run(dtype, sparse), expected, TOLERANCE[dtype])
    with use_backend("torch"):
        all_near(run(dtype, sparse), expected, TOLERANCE[dtype])


def test_bits_of_a_sparse_affine_map_do_not_depend_on_threads_or_runs(set_threads: Callable[[int], None]) -> None:
    pattern = random_graph(700, 4000, torch.float32).pattern
    inputs = leaves(*(normal(0, pattern.num_entries), normal(1, 37, 700), normal(2, 37)), dtype=torch.float32)
    upstream = normal(3, 700, 37, dtype=torch.float32)
    assert_bits_never_change(lambda: with_gradients(affine(pattern, *inputs), inputs, upstream), set_threads)


def test_a_transposed_weight_is_as_good() -> None:
    """A parameter may lie in memory in another order."""
    pattern, weight = ring(5).pattern, normal(0, 3, 5)
    strided = weight.t().contiguous().t()
    values = normal(1, pattern.num_entries)
    assert_same_bits([affine(pattern, values, strided, None)], [affine(pattern, values, weight, None)])


@DTYPES
def test_bits_of_a_sparse_product_do_not_depend_on_threads_or_runs(
    dtype: torch.dtype, set_threads: Callable[[int], None]
) -> None:
    graph = random_graph(700, 4000, dtype)
    inputs = leaves(graph.weight, normal(0, 700, 37, dtype=dtype))
    upstream = normal(1, 700, 37, dtype=dtype)
    assert_bits_never_change(lambda: with_gradients(spmm(graph.pattern, *inputs), inputs, upstream), set_threads)


def test_second_derivatives_are_those_of_the_dense_product() -> None:
    graph = random_graph(6, 15, torch.float64)
    inputs, pattern = leaves(graph.weight, normal(0, 6, 3)), graph.pattern
    results = []
    for sparse in (True, False):
        values, dense = inputs
        matrix = values.new_zeros(6, 6).index_put((pattern.row, pattern.col), values)
        y = spmm(pattern, values, dense) if sparse else matrix @ dense
        slopes = torch.autograd.grad(y.square().sum(), inputs, create_graph=True)
        results.append(list(torch.autograd.grad(sum(slope.sin().sum() for slope in slopes), inputs)))
    all_near(*results, 1e-10)


def test_offsets_beyond_32_bits() -> None:
    """A matrix of 2³¹ numbers, of which only the rows that are read take memory."""
    many, few, channels = 2**21 + 9, 3, 1024
    tall, small = torch.empty(many, channels), normal(0, few, channels, dtype=torch.float32)
    tall[-few:] = normal(1, few, channels, dtype=torch.float32)
    near, far = torch.arange(few), torch.arange(many - few, many)
    wide = Pattern.from_sorted(near, far, few, many)
    torch.testing.assert_close(spmm(wide, torch.ones(few), tall), tall[-few:])
    expected = (small * tall[-few:]).sum(1)
    torch.testing.assert_close(sampled(layout(wide), small, tall, few), expected)
    torch.testing.assert_close(sampled(layout(Pattern.from_sorted(far, near, many, few)), tall, small, few), expected)
