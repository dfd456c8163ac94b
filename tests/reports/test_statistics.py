import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from kuramotognn.reports.statistics import Ranking, compare, critical_difference, holm, rank_models, summarise


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


#: Demšar 2006, table 6: area under the ROC curve of four learners on fourteen data sets (0.9751: by its printed rank).
DEMSAR = {
    "C4.5": (0.763, 0.599, 0.954, 0.628, 0.882, 0.936, 0.661, 0.583, 0.775, 1.000, 0.940, 0.619, 0.972, 0.957),
    "C4.5+m": (0.768, 0.591, 0.971, 0.661, 0.888, 0.931, 0.668, 0.583, 0.838, 1.000, 0.962, 0.666, 0.981, 0.978),
    "C4.5+cf": (0.771, 0.590, 0.968, 0.654, 0.886, 0.916, 0.609, 0.563, 0.866, 1.000, 0.965, 0.614, 0.9751, 0.946),
    "C4.5+m+cf": (0.798, 0.569, 0.967, 0.657, 0.898, 0.931, 0.685, 0.625, 0.875, 1.000, 0.962, 0.669, 0.975, 0.970),
}


def test_ranks_are_those_of_demsars_example() -> None:
    found = rank_models({name: {str(k): value for k, value in enumerate(row)} for name, row in DEMSAR.items()})
    assert {name: round(rank, 3) for name, rank in found.ranks.items()} == {
        "C4.5+m+cf": 1.964,
        "C4.5+m": 2.0,
        "C4.5+cf": 2.893,
        "C4.5": 3.143,
    }
    assert found.critical == pytest.approx(1.25, abs=0.005)
    assert found.friedman == pytest.approx(0.0167215803), "verified with MATLAB and R in SciPy's own tests"
    assert found.groups == [(pytest.approx(1.964, abs=1e-3), pytest.approx(3.143, abs=1e-3))]
    assert found.decidable


@pytest.mark.parametrize(("models", "quantile"), [(2, 1.960), (4, 2.569), (6, 2.850), (8, 3.031), (10, 3.164)])
def test_the_critical_difference_is_that_of_demsars_table_5(models: int, quantile: float) -> None:
    expected = quantile * math.sqrt(models * (models + 1) / (6 * 6))
    assert critical_difference(models, 6) == pytest.approx(expected, abs=2e-3 * expected)


def test_groups_join_what_does_not_differ() -> None:
    ranking = Ranking({"a": 1.0, "b": 2.0, "c": 3.0, "d": 5.0}, ("x",), 0.01, 1.5)
    assert ranking.groups == [(1.0, 2.0), (2.0, 3.0)]


def test_a_reference_is_compared_with_each_other_model_and_nothing_else() -> None:
    results = {name: {split: ord(name) * (1 + split) for split in range(8)} for name in "abc"}
    assert [(pair.first, pair.second) for pair in compare(results, "b")] == [("b", "a"), ("b", "c")]
    assert all(pair.corrected == pytest.approx(2 * pair.p) for pair in compare(results, "b"))
