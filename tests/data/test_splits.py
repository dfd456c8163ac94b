import hashlib
from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kuramotognn import Split, fraction, k_fold, load_dataset, random_per_class


@given(st.integers(0, 10_000), st.integers(1, 8), st.integers(60, 120))
def test_parts_of_random_per_class(seed: int, per_class: int, development: int) -> None:
    labels = torch.arange(200) % 4
    split = random_per_class(labels, seed, per_class=per_class, development=development)
    assert torch.bincount(labels[split.train]).tolist() == [per_class] * 4
    assert split.train.numel() + split.validation.numel() == development
    everything = torch.cat([split.train, split.validation, split.test])
    assert sorted(everything.tolist()) == list(range(200))
    assert (split.protocol, split.number) == ("random-per-class", seed)


def test_a_split_depends_on_its_arguments_only() -> None:
    labels = torch.arange(300) % 3
    torch.manual_seed(1)
    first = random_per_class(labels, 7, development=150)
    torch.manual_seed(2)
    again = random_per_class(labels, 7, development=150)
    other = random_per_class(labels, 8, development=150)
    assert first.train.equal(again.train)
    assert not first.train.equal(other.train)


def digest(split: Split) -> str:
    parts = torch.cat([split.train, split.validation, split.test]).numpy().astype("<i8")
    return hashlib.sha256(parts.tobytes()).hexdigest()[:16]


def test_splits_are_the_same_on_every_platform() -> None:
    """Committed results are valid for these splits only."""
    labels = load_dataset("cora").largest_component().y
    found = [digest(random_per_class(labels, seed)) for seed in (0, 1, 1000)]
    assert found == ["b18fbe7b97e91ab7", "20053cfccd0be4b3", "9b665d4e9268914b"]


def test_too_few_nodes_of_a_class() -> None:
    labels = torch.tensor([0] * 98 + [1] * 2)
    with pytest.raises(
        ValueError, match=r"class 'rare' has \d of the 50 development nodes of split 3, fewer than the 5"
    ):
        random_per_class(labels, 3, per_class=5, development=50, class_names=("common", "rare"))


@pytest.mark.parametrize("development", [0, 100, 101])
def test_development_must_leave_test_nodes(development: int) -> None:
    with pytest.raises(ValueError, match=r"development must be between 1 and 99 \(100 nodes\)"):
        random_per_class(torch.zeros(100).long(), 0, development=development)


def test_per_class_must_be_positive() -> None:
    with pytest.raises(ValueError, match="per_class must be at least 1, got 0"):
        random_per_class(torch.zeros(100).long(), 0, per_class=0, development=50)


labelled = st.lists(st.integers(-1, 2), max_size=60).map(lambda extra: torch.tensor([0, 1, 2] * 5 + extra))


@given(labelled, st.integers(0, 1000))
def test_fraction_splits_each_class(labels: torch.Tensor, seed: int) -> None:
    split = fraction(labels, seed, train=0.5, validation=0.25)
    everything = torch.cat([split.train, split.validation, split.test])
    assert sorted(everything.tolist()) == (labels >= 0).nonzero().flatten().tolist()
    for label in range(3):
        count = int((labels == label).sum())
        found = [int((labels[part] == label).sum()) for part in (split.train, split.validation, split.test)]
        assert min(found) >= 1
        assert abs(found[0] - 0.5 * count) <= 1
        assert abs(found[1] - 0.25 * count) <= 1
    assert fraction(labels, seed, train=0.5, validation=0.25).train.equal(split.train)


@given(labelled, st.integers(0, 5), st.integers(3, 5))
def test_every_labelled_node_is_tested_once_per_shuffle(labels: torch.Tensor, shuffle: int, folds: int) -> None:
    splits = [k_fold(labels, shuffle * folds + fold, folds=folds) for fold in range(folds)]
    known = (labels >= 0).nonzero().flatten().tolist()
    assert sorted(torch.cat([split.test for split in splits]).tolist()) == known
    for this, following in zip(splits, [*splits[1:], splits[0]], strict=True):
        assert this.validation.equal(following.test)
        assert sorted(torch.cat([this.train, this.validation, this.test]).tolist()) == known
        for label in range(3):
            share = int((labels == label).sum()) / folds
            assert abs(int((labels[this.test] == label).sum()) - share) < 1


def test_unlabelled_nodes_are_left_out() -> None:
    labels = torch.cat([torch.arange(90) % 3, torch.full((30,), -1)])[torch.randperm(120)]
    split = random_per_class(labels, 0, per_class=5, development=40)
    assert int(labels[torch.cat([split.train, split.validation, split.test])].min()) == 0


@pytest.mark.parametrize(
    ("draw", "sentence"),
    [
        (lambda: fraction(torch.tensor([0, 0, 0, 1]), 0), "class '1' has 1 labelled node, but the fraction protocol"),
        (lambda: fraction(torch.tensor([-1, -1]), 0), "no node has a label"),
        (lambda: fraction(torch.zeros(9).long(), 0, train=0.9, validation=0.1), "a sum below 1"),
        (lambda: k_fold(torch.zeros(9).long(), 0, folds=2), "folds must be at least 3"),
        (lambda: k_fold(torch.zeros(3).long(), 0), "5 folds needs 5 of each class"),
    ],
)
def test_splits_that_cannot_be_drawn(draw: Callable[[], Split], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        draw()
