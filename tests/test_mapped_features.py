"""Features on disk give what the same features in memory give: products, gradients, dropout, training."""

from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch_geometric import nn as pyg

from kuramotognn import GAT, GCN, GCNII, GraphSAGE, KuramotoGNN, Solver, Split, TrainingConfig, fit, predict
from kuramotognn import mapped_features as module
from kuramotognn.features import affine, check_features, dropout, normalise_features, scale_features, select_rows
from kuramotognn.mapped_features import ArrayRows, MappedFeatures

NODES, WIDTH = 50, 7


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BLOCK_BYTES", 4 * WIDTH * 8)


@pytest.fixture
def dense() -> torch.Tensor:
    return torch.randn(NODES, WIDTH, generator=torch.Generator().manual_seed(0))


def mapped(x: torch.Tensor, folder: Path) -> MappedFeatures:
    np.save(folder / "x.npy", x.numpy())
    return MappedFeatures(ArrayRows(np.load(folder / "x.npy", mmap_mode="r")))


@given(st.integers(0, 30), st.integers(1, 9), st.integers(1, 4), st.booleans())
def test_products_and_gradients_are_those_of_torch(rows: int, columns: int, channels: int, has_bias: bool) -> None:
    random = np.random.RandomState(rows + columns)
    array = random.randn(rows, columns).astype(np.float32)
    upstream = torch.from_numpy(random.randn(rows, channels))
    results = []
    for kind in (MappedFeatures(ArrayRows(array)), torch.from_numpy(array).double()):
        weight = torch.linspace(-1, 1, channels * columns, dtype=torch.float64).view(channels, columns).requires_grad_()
        bias = torch.arange(float(channels), dtype=torch.float64).requires_grad_() if has_bias else None
        out = affine(kind, weight, bias)
        out.backward(upstream)
        results.append([out, weight.grad, *([bias.grad] if bias is not None else [])])
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)


def test_dropout_is_drawn_by_block_and_the_gradient_sees_the_same_mask(dense: torch.Tensor, tmp_path: Path) -> None:
    x = mapped(torch.ones(2000, WIDTH), tmp_path)
    torch.manual_seed(3)
    first, second = dropout(x, 0.3, True), dropout(x, 0.3, True)
    torch.manual_seed(3)
    again = dropout(x, 0.3, True)
    masks = [each.to_dense() for each in (first, second, again)]  # type: ignore[union-attr]
    assert torch.equal(masks[0], masks[2])
    assert not torch.equal(masks[0], masks[1])
    assert sorted(masks[0].unique().tolist()) == pytest.approx([0.0, 1 / 0.7])
    assert float((masks[0] == 0).float().mean()) == pytest.approx(0.3, abs=0.02)
    assert not torch.equal(masks[0][:8], masks[0][8:16]), "blocks have masks of their own"
    weight, upstream = torch.ones(2, WIDTH, requires_grad=True), torch.randn(2000, 2)
    affine(first, weight, None).backward(upstream)
    torch.testing.assert_close(weight.grad, upstream.t() @ masks[0], rtol=1e-4, atol=1e-4)
    assert dropout(x, 0.3, False) is x


def test_some_rows_are_those_of_the_whole_with_its_dropout(dense: torch.Tensor, tmp_path: Path) -> None:
    whole = mapped(dense, tmp_path).with_columns(torch.arange(2.0 * NODES).view(NODES, 2)).normalised("row-l2")
    nodes = torch.cat([torch.arange(3, 21, 2), torch.arange(40, NODES)])
    part = whole.of_nodes(nodes)
    assert part.shape == (nodes.numel(), WIDTH + 2)
    assert torch.equal(part.rows(torch.tensor([4, 0])), whole.rows(nodes[[4, 0]]))
    torch.manual_seed(3)
    expected = dropout(whole, 0.3, True).to_dense()[nodes]
    torch.manual_seed(3)
    assert torch.equal(dropout(part, 0.3, True).to_dense(), expected)


@pytest.mark.parametrize("how", ["none", "row-sum", "row-l2"])
def test_preparation_is_that_of_tensors(dense: torch.Tensor, tmp_path: Path, how: str) -> None:
    dense[3] = 0
    x = mapped(dense, tmp_path)
    beside = torch.randn(NODES, 2)
    for plain, disk in ((dense, x), (torch.cat([beside, dense], dim=1), x.with_columns(beside))):
        expected = scale_features(normalise_features(plain, how), 2.5)  # type: ignore[arg-type]
        found = scale_features(normalise_features(disk, how), 2.5)  # type: ignore[arg-type]
        index = torch.tensor([4, 3, 3, 49])
        assert isinstance(found, MappedFeatures)
        assert found.shape == tuple(plain.shape)
        torch.testing.assert_close(found.to_dense(), expected)
        torch.testing.assert_close(select_rows(found, index), select_rows(expected, index))


def test_numbers_that_are_not_finite_are_named(dense: torch.Tensor, tmp_path: Path) -> None:
    dense[41, 5] = float("nan")
    with pytest.raises(ValueError, match="feature 5 of node 41 is nan"):
        check_features(mapped(dense, tmp_path))
    huge = MappedFeatures(ArrayRows(np.full((3, 2), 1e300)))
    with pytest.raises(ValueError, match="feature 0 of node 0 is inf"):
        check_features(huge)


def make(name: str) -> nn.Module:
    torch.manual_seed(0)
    none = {"dropout": 0.0, "input_dropout": 0.0}
    if name == "kuramotognn":
        return KuramotoGNN(WIDTH, 8, 3, time=2.0, heads=2, solver=Solver(steps=4), **none)
    if name == "gat":
        return GAT(WIDTH, 8, 2, 3, heads=2, attention_dropout=0.0, **none)
    if name == "pyg":
        return pyg.GCN(WIDTH, 8, 2, 3)
    return {"gcn": GCN, "graphsage": GraphSAGE, "gcnii": GCNII}[name](WIDTH, 8, 2, 3, **none)


@pytest.mark.parametrize("batch", ["none", "nodes"])
@pytest.mark.parametrize("name", ["kuramotognn", "gcn", "graphsage", "gcnii", "gat", "pyg"])
def test_models_train_as_on_features_in_memory(name: str, batch: str, dense: torch.Tensor, tmp_path: Path) -> None:
    y = torch.arange(NODES) % 3
    edges = torch.randint(NODES, (2, 150), generator=torch.Generator().manual_seed(1))
    split = Split(torch.arange(20), torch.arange(20, 35), torch.arange(35, NODES), "test", 0)
    config = TrainingConfig(epochs=5, batch=batch, parts=4, parts_per_batch=2)  # type: ignore[arg-type]
    found = []
    for x in (dense, mapped(dense, tmp_path)):
        model = make(name)
        fit(model, x, edges, y, split, config=config)
        found.append(predict(model, x, edges))
    torch.testing.assert_close(*found, rtol=1e-5, atol=1e-5)


def test_logits_are_those_of_features_in_memory(dense: torch.Tensor, tmp_path: Path) -> None:
    edges = torch.randint(NODES, (2, 150), generator=torch.Generator().manual_seed(1))
    for name in ("kuramotognn", "gcn"):
        model = make(name)
        torch.testing.assert_close(
            predict(model, mapped(dense, tmp_path), edges), predict(model, dense, edges), rtol=1e-6, atol=1e-6
        )


def test_forward_keeps_no_block_for_the_gradient(dense: torch.Tensor, tmp_path: Path) -> None:
    weight = torch.randn(3, WIDTH, requires_grad=True)
    kept: list[torch.Tensor] = []
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: kept.append(tensor) or tensor, lambda tensor: tensor):
        out = affine(mapped(dense, tmp_path), weight, None)
    assert not kept
    torch.testing.assert_close(out, F.linear(dense, weight))
