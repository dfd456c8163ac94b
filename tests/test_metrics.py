import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kuramotognn.metrics import balanced_accuracy, confusion_matrix, macro_f1, measure, roc_auc

pairs = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=40)


@given(pairs)
def test_measures_equal_their_definitions(cases: list[tuple[int, int]]) -> None:
    truth, guess = (torch.tensor(part) for part in zip(*cases, strict=True))
    confusion = confusion_matrix(guess, truth, 4)
    for i in range(4):
        for j in range(4):
            assert int(confusion[i, j]) == cases.count((i, j))
    scores, recalls = [], []
    for label in range(4):
        hits = cases.count((label, label))
        members = sum(t == label for t, _ in cases)
        called = sum(g == label for _, g in cases)
        if members or called:
            precision, recall = hits / called if called else 0.0, hits / members if members else 0.0
            scores.append(2 * precision * recall / (precision + recall) if precision + recall else 0.0)
        if members:
            recalls.append(hits / members)
    assert macro_f1(confusion) == pytest.approx(sum(scores) / len(scores))
    assert balanced_accuracy(confusion) == pytest.approx(sum(recalls) / len(recalls))


@given(st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=1, max_size=30))
def test_roc_auc_equals_the_mean_over_all_pairs(cases: list[tuple[int, bool]]) -> None:
    scores, positive = (torch.tensor(part) for part in zip(*cases, strict=True))
    wins = [
        1.0 if good > bad else 0.5 if good == bad else 0.0
        for good, is_good in cases
        for bad, is_bad in cases
        if is_good and not is_bad
    ]
    expected = pytest.approx(sum(wins) / len(wins)) if wins else None
    assert roc_auc(scores.double(), positive) == expected


def test_roc_auc_is_for_two_classes_only() -> None:
    logits, y = torch.tensor([[2.0, 0.0], [0.0, 1.0], [0.0, 3.0]]), torch.tensor([0, 1, 0])
    assert measure(logits, y, torch.arange(3)) == {
        "macro_f1": pytest.approx((2 / 3 + 2 / 3) / 2),
        "balanced_accuracy": pytest.approx(0.75),
        "roc_auc": pytest.approx(0.5),
        "confusion": [[1, 1], [0, 1]],
    }
    assert "roc_auc" not in measure(torch.eye(3), torch.arange(3), torch.arange(3))
