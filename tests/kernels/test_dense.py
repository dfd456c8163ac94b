"""Dense products, transposes and sums of columns against NumPy in float64."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kuramotognn.kernels.cpu import transposed
from kuramotognn.kernels.cpu.dense import Product, multiply, sum_columns
from kuramotognn.kernels.cpu.jit import kernel
from kuramotognn.kernels.cpu.lanes import like
from kuramotognn.kernels.cpu.layout import Array
from kuramotognn.kernels.cpu.team import team_for
from tests.kernels.comparing import DTYPES, TOLERANCE, assert_bits_never_change, assert_near, normal

# Blocks of 6 rows, of 8, 16 or 4 columns and of 128 terms: whole ones, rests, and nothing.
ROWS = st.sampled_from([0, 1, 5, 6, 7, 12, 31, 61, 130])
TERMS = st.sampled_from([0, 1, 3, 64, 127, 128, 129, 300])
COLUMNS = st.sampled_from([0, 1, 3, 4, 7, 8, 12, 16, 24, 33, 48])


@kernel
def _multiply(team, shape, left, right, out):  # type: ignore[no-untyped-def]
    multiply(team, shape, left, right, out)


@kernel
def _sum_columns(team, x, rows, pitch, width, lanes, out):  # type: ignore[no-untyped-def]
    sum_columns(team, x, rows, pitch, width, lanes, out)


def product(left: Array, right: Array, *, transpose_left: bool = False) -> Array:
    """left @ right, or left.T @ right, by the step of that name that kernels are made of."""
    rows, (depth, width) = left.shape[1 if transpose_left else 0], right.shape
    out = np.full((rows, width), np.nan, right.dtype)
    shape = Product.of(rows, depth, width, right.dtype, transpose_left=transpose_left)
    _multiply(team_for(), shape, left.reshape(-1), right.reshape(-1), out.reshape(-1))
    return out


def column_sums(x: Array, width: int) -> Array:
    """Of the first columns of x."""
    out = np.full(width, np.nan, x.dtype)
    _sum_columns(team_for(), x.reshape(-1), x.shape[0], x.shape[1], width, like(x.dtype, 2), out)
    return out


@DTYPES
@pytest.mark.parametrize("by_transpose", [False, True])
@settings(max_examples=80)
@given(ROWS, TERMS, COLUMNS, st.integers(0, 99))
def test_product_is_numpys(
    dtype: torch.dtype, by_transpose: bool, rows: int, terms: int, columns: int, seed: int
) -> None:
    left, right = normal(seed, rows, terms), normal(seed + 1, terms, columns)
    mine = np.ascontiguousarray((left.t() if by_transpose else left).to(dtype).numpy())
    out = product(mine, right.to(dtype).numpy(), transpose_left=by_transpose)
    assert_near(torch.from_numpy(out), torch.from_numpy(left.numpy() @ right.numpy()), TOLERANCE[dtype])


@DTYPES
@given(st.integers(0, 40), st.integers(0, 40))
def test_transposed_is_numpys(dtype: torch.dtype, rows: int, columns: int) -> None:
    x = normal(0, rows, columns, dtype=dtype).numpy()
    out = transposed(x)
    assert out.flags.c_contiguous
    np.testing.assert_array_equal(out, x.T)


@DTYPES
@pytest.mark.parametrize("by_transpose", [False, True])
def test_bits_of_a_product_do_not_depend_on_threads_or_runs(
    dtype: torch.dtype, by_transpose: bool, set_threads: Callable[[int], None]
) -> None:
    left, right = normal(0, 500, 300, dtype=dtype).numpy(), normal(1, 500 if by_transpose else 300, 50, dtype=dtype)
    assert_bits_never_change(
        lambda: [torch.from_numpy(product(left, right.numpy(), transpose_left=by_transpose))], set_threads
    )


@DTYPES
@pytest.mark.parametrize("shape", [(1433, 64), (64, 1433), (333, 222)], ids=str)
def test_large_matrices_are_transposed_by_several_threads(
    dtype: torch.dtype, shape: tuple[int, int], set_threads: Callable[[int], None]
) -> None:
    x = normal(0, *shape, dtype=dtype).numpy()
    set_threads(2)
    np.testing.assert_array_equal(transposed(x), x.T)


@DTYPES
@settings(max_examples=40)
@given(st.sampled_from([0, 1, 3, 9, 10, 200]), COLUMNS, st.integers(0, 5), st.integers(0, 99))
def test_sums_of_columns_are_numpys(dtype: torch.dtype, rows: int, width: int, others: int, seed: int) -> None:
    x = normal(seed, rows, width + others)
    out = column_sums(x.to(dtype).numpy(), width)
    assert_near(torch.from_numpy(out), x[:, :width].sum(0), TOLERANCE[dtype])


def test_sums_of_many_rows_stay_exact_enough(set_threads: Callable[[int], None]) -> None:
    """One after the other a hundred thousand tenths in float32 are wrong in the fourth digit."""
    x = np.full((100_000, 17), 0.1, np.float32)
    np.testing.assert_allclose(column_sums(x, 17), 1e4, rtol=1e-5)
    assert_bits_never_change(lambda: [torch.from_numpy(column_sums(x, 17))], set_threads)
