import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from kuramotognn.reports.statistics import compare, holm, summarise


def test_mean_and_standard_deviation_are_numpys() -> None:
    values = [0.81, 0.84, 0.79, 0.86]
    summary = summarise(values)
    assert (summary.mean, summary.std, summary.count) == (
        pytest.approx(np.mean(values)),
        pytest.approx(np.std(values, ddof=1)),
        4,
    )


def test_the_interval_agrees_with_scipys_bootstrap() -> None:
    values = np.random.default_rng(3).normal(80, 2, 40)
    theirs = stats.bootstrap((values,), np.mean, n_resamples=20_000, method="percentile", rng=1).confidence_interval
    ours = summarise(values.tolist())
    assert ours.low == pytest.approx(theirs.low, abs=0.05)
    assert ours.high == pytest.approx(theirs.high, abs=0.05)
    assert ours.covers(80.0) == (theirs.low <= 80.0 <= theirs.high)


def test_the_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    random = np.random.default_rng(0)
    samples = random.normal(5.0, 1.0, (200, 30)).tolist()
    covered = sum(summarise(sample).covers(5.0) for sample in samples)
    assert 180 <= covered <= 198


@given(st.lists(st.floats(0, 1), min_size=2, max_size=12), st.randoms())
def test_the_interval_depends_on_the_values_alone(values: list[float], random: object) -> None:
    shuffled = values.copy()
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert summarise(values) == summarise(shuffled)
    summary = summarise(values)
    assert min(values) - 1e-12 <= summary.low <= summary.high <= max(values) + 1e-12


def test_one_value_has_no_interval() -> None:
    summary = summarise([0.8])
    assert summary.mean == 0.8
    assert math.isnan(summary.std)
    assert math.isnan(summary.low)
    assert not summary.covers(0.8)


def test_holm_on_a_worked_example() -> None:
    """By hand: sorted 0.005 0.01 0.03 0.04, times 4 3 2 1 = 0.02 0.03 0.06 0.04, the last raised to 0.06."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.5]) == [1.0, 1.0]
    assert holm([]) == []


def test_pairs_are_compared_on_common_splits() -> None:
    random = np.random.default_rng(1)
    base = {split: float(value) for split, value in enumerate(random.normal(0.8, 0.02, 20))}
    better = {split: value + 0.01 + 0.001 * split for split, value in base.items() if split != 7}
    other = {split: float(value) for split, value in enumerate(random.normal(0.8, 0.02, 20))}
    found = {(c.first, c.second): c for c in compare({"a": base, "b": better, "c": other})}
    pair = found["a", "b"]
    assert pair.count == 19
    common = [split for split in base if split != 7]
    theirs = stats.wilcoxon([base[s] for s in common], [better[s] for s in common])
    assert pair.p == pytest.approx(theirs.pvalue)
    assert pair.difference == pytest.approx(np.mean([base[s] - better[s] for s in common]))
    assert pair.corrected == pytest.approx(min(1.0, 3 * pair.p))
    assert all(c.corrected >= c.p for c in found.values())


def test_equal_results_are_no_difference() -> None:
    (only,) = compare({"a": {0: 0.5, 1: 0.6}, "b": {0: 0.5, 1: 0.6}})
    assert only.p == only.corrected == 1.0
    assert compare({"a": {0: 0.5}, "b": {1: 0.5}}) == []
