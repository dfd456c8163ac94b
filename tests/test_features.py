import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F
from torch_geometric.transforms import NormalizeFeatures

from kuramotognn import SparseFeatures, normalise_features
from kuramotognn.features import affine, as_features, check_features, compact_features, dropout


@st.composite
def matrices(draw: st.DrawFn) -> torch.Tensor:
    rows, cols = draw(st.integers(0, 6)), draw(st.integers(1, 6))
    entries = st.sampled_from([0.0, 0.0, 0.0, 1.0, -2.5, 7.0])
    values = draw(st.lists(entries, min_size=rows * cols, max_size=rows * cols))
    return torch.tensor(values, dtype=torch.float64).reshape(rows, cols)


@given(matrices())
def test_sparse_and_dense_are_the_same_features(x: torch.Tensor) -> None:
    for sparse in (as_features(x.to_sparse_coo()), as_features(x.to_sparse_csr())):
        assert isinstance(sparse, SparseFeatures)
        assert sparse.to_dense().equal(x)
        assert sparse.shape == tuple(x.shape)
    assert as_features(x) is x


@given(matrices(), st.data())
def test_rows_are_indexed_like_a_dense_matrix(x: torch.Tensor, data: st.DataObject) -> None:
    index = torch.tensor(data.draw(st.lists(st.integers(0, max(len(x) - 1, 0)), max_size=len(x))), dtype=torch.long)
    sparse = as_features(x.to_sparse_coo())
    assert isinstance(sparse, SparseFeatures)
    assert sparse.rows(index).to_dense().equal(x[index])


def test_only_nearly_empty_features_become_sparse() -> None:
    x = torch.zeros(10, 20)
    x[3, 4] = x[9, 0] = 2.0
    sparse = compact_features(x)
    assert isinstance(sparse, SparseFeatures)
    assert sparse.values.numel() == 2
    assert sparse.to_dense().equal(x)
    full = torch.ones(4, 4)
    assert compact_features(full) is full


@given(matrices(), st.sampled_from(["none", "row-sum", "row-l2"]))
def test_normalisation_is_the_same_for_sparse_and_dense(x: torch.Tensor, how) -> None:
    sparse = normalise_features(as_features(x.to_sparse_coo()), how)
    dense = normalise_features(x, how)
    assert isinstance(sparse, SparseFeatures)
    assert isinstance(dense, torch.Tensor)
    torch.testing.assert_close(sparse.to_dense(), dense)


def test_row_sums_are_pygs_for_counts() -> None:
    from torch_geometric.data import Data

    x = torch.tensor([[1.0, 3.0], [0.0, 0.0], [2.0, 0.0]])
    assert normalise_features(x, "row-sum").equal(NormalizeFeatures()(Data(x=x)).x)


def test_affine_map_of_sparse_features_matches_dense_with_gradients() -> None:
    torch.manual_seed(0)
    x = torch.randn(5, 7, dtype=torch.float64) * (torch.rand(5, 7) < 0.3)
    weight, bias = torch.randn(3, 7, dtype=torch.float64), torch.randn(3, dtype=torch.float64)
    gradients = []
    for features in (x, as_features(x.to_sparse_coo())):
        parameters = (weight.clone().requires_grad_(), bias.clone().requires_grad_())
        y = affine(features, *parameters)
        torch.testing.assert_close(y, F.linear(x, weight, bias))
        gradients.append(torch.autograd.grad(y.sin().sum(), parameters))
    torch.testing.assert_close(gradients[0], gradients[1])


def test_dropout_keeps_the_mean_and_touches_stored_entries_only() -> None:
    torch.manual_seed(0)
    x = SparseFeatures.from_coo(torch.arange(4000), torch.zeros(4000).long(), torch.ones(4000), (4000, 2))
    dropped = dropout(x, 0.4, training=True)
    assert isinstance(dropped, SparseFeatures)
    assert dropped.pattern is x.pattern
    assert dropped.values.unique().tolist() == pytest.approx([0.0, 1 / 0.6])
    assert float(dropped.values.mean()) == pytest.approx(1.0, abs=0.05)
    assert dropout(x, 0.4, training=False).values.equal(x.values)  # type: ignore[union-attr]


def dropped_where(dtype: torch.dtype, p: float, *shape: int) -> torch.Tensor:
    """Which ones of many are dropped; what is left must be scaled."""
    out = dropout(torch.ones(*shape, dtype=dtype), p, training=True)
    assert set(out.unique().tolist()) <= {0.0, float(torch.tensor(1 / (1 - p), dtype=dtype))}
    return out == 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_entries_are_dropped_as_often_as_they_should_and_independently(dtype: torch.dtype, p: float) -> None:
    torch.manual_seed(0)
    first, second = dropped_where(dtype, p, 100_001), dropped_where(dtype, p, 100_001)
    bound = 5 * (p * (1 - p) / 50_000) ** 0.5  # five standard errors of half of them
    for mask in (first, first[::2], first[1::2], second):
        assert abs(float(mask.double().mean()) - p) < bound
    both = p**2
    pairs = [(first, second), (first[:-1], first[1:]), (first[:-1:2], first[1::2]), (first[:-64], first[64:])]
    for one, other in pairs:
        assert abs(float((one & other).double().mean()) - both) < 5 * (both / one.numel()) ** 0.5


@pytest.mark.parametrize("shape", [(0,), (1,), (3, 5), (40_001,)])
def test_masks_depend_on_the_seed_alone(shape: tuple[int, ...]) -> None:
    before, seen = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 2):
            torch.set_num_threads(threads)
            torch.manual_seed(3)
            seen.append(dropped_where(torch.float32, 0.5, *shape))
    finally:
        torch.set_num_threads(before)
    assert seen[0].equal(seen[1])
    assert seen[0].equal(seen[2])


def test_dropout_has_a_gradient() -> None:
    x = torch.full((50,), 2.0, requires_grad=True)
    out = dropout(x, 0.5, training=True)
    out.sum().backward()
    assert x.grad is not None
    assert x.grad.equal(out.detach() / 2)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(0,), (1,), (37, 3), (40_001,)], ids=str)
def test_dropout_is_the_same_with_and_without_a_gradient(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    x = torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(0))
    out = []
    for leaf in (x, x.clone().requires_grad_()):
        torch.manual_seed(1)
        out.append(dropout(leaf, 0.3, training=True).detach())
    assert out[0].equal(out[1])
    assert out[0][out[0] != 0].equal(x[out[0] != 0] * torch.tensor(1 / 0.7, dtype=dtype))


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("sparse", [False, True])
def test_features_that_are_not_finite_get_a_sentence(value: float, sparse: bool) -> None:
    x = torch.zeros(3, 4)
    x[2, 1] = value
    with pytest.raises(ValueError, match=f"feature 1 of node 2 is {value}; features must be finite"):
        check_features(as_features(x.to_sparse_coo()) if sparse else x)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (torch.zeros(3), r"features must have shape \[N, F\], got \[3\]"),
        (torch.zeros(3, 2, dtype=torch.long), "features must be floating point, got torch.int64"),
    ],
)
def test_wrong_features_get_a_sentence(x: torch.Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_features(x)
