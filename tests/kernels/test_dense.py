"""Dense products and transposes against NumPy in float64."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kuramotognn.kernels.cpu import product, transposed
from tests.kernels.comparing import DTYPES, TOLERANCE, assert_bits_never_change, assert_near, normal

# Blocks of 6 rows, of 8, 16 or 4 columns and of 128 terms: whole ones, rests, and nothing.
ROWS = st.sampled_from([0, 1, 5, 6, 7, 12, 31, 61, 130])
TERMS = st.sampled_from([0, 1, 3, 64, 127, 128, 129, 300])
COLUMNS = st.sampled_from([0, 1, 3, 4, 7, 8, 12, 16, 24, 33, 48])


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
        lambda: [torch.from_numpy(product(left, right.numpy(), transpose_left=by_transpose).copy())], set_threads
    )


@DTYPES
@pytest.mark.parametrize("shape", [(1433, 64), (64, 1433), (333, 222)], ids=str)
def test_large_matrices_are_transposed_by_several_threads(
    dtype: torch.dtype, shape: tuple[int, int], set_threads: Callable[[int], None]
) -> None:
    x = normal(0, *shape, dtype=dtype).numpy()
    set_threads(2)
    np.testing.assert_array_equal(transposed(x), x.T)
