import math

import numpy as np
import pytest

from kuramotognn.diagnostics import fit_decay

T = np.arange(1, 65, dtype=float)


def test_exponential_decay_and_its_rate() -> None:
    decay = fit_decay(T, 5 * np.exp(-0.3 * T))
    assert decay.exponential
    assert decay
    assert decay.rate == pytest.approx(0.3, abs=1e-9)
    assert decay.standard_error < 1e-9
    assert decay.fall == pytest.approx(math.exp(0.3 * (decay.last - decay.first)))
    assert "exponential decay, rate 0.3" in decay.describe("layer")


@pytest.mark.parametrize(
    ("values", "law"),
    [
        (3 * T**-2.0, "algebraic"),
        (1e-3 + np.exp(-0.3 * T), "plateau"),
        (1 + 0.01 * np.sin(T), "constant"),
        (0.5 * T, "growth"),
        (np.exp(0.1 * T), "growth"),
        (np.exp(-0.03 * T), "undecided"),  # by a factor of 4 only
    ],
)
def test_other_laws_are_not_oversmoothing(values: np.ndarray, law: str) -> None:
    decay = fit_decay(T, values)
    assert decay.law == law
    assert not decay
    assert not decay.exponential
    assert decay.describe()


def test_the_standard_error_equals_that_of_repeated_experiments() -> None:
    """Each layer multiplies by an independent random factor: log m is a random walk with drift."""
    rng = np.random.default_rng(0)
    fits = [fit_decay(T, np.exp(-np.cumsum(rng.normal(0.35, 0.2, T.size))), skip=0.0) for _ in range(200)]
    rates = [fit.rate for fit in fits]
    assert np.mean(rates) == pytest.approx(0.35, abs=0.005)
    assert np.mean([fit.standard_error for fit in fits]) == pytest.approx(np.std(rates), rel=0.25)
    assert np.mean([fit.exponential for fit in fits]) > 0.85


def test_random_walks_without_drift_are_not_decay() -> None:
    rng = np.random.default_rng(1)
    found = [bool(fit_decay(T, np.exp(np.cumsum(rng.normal(0.0, 0.3, T.size))))) for _ in range(300)]
    assert np.mean(found) < 0.02


def test_rounding_errors_are_ignored() -> None:
    values = np.maximum(np.exp(-1.0 * T), 1e-7)
    assert not fit_decay(T, values, skip=0.0)
    decay = fit_decay(T, values, floor=[2e-7] * T.size, skip=0.0)
    assert decay.exponential
    assert decay.rate == pytest.approx(1.0)
    assert decay.last == 15


def test_collapse_within_a_few_layers() -> None:
    decay = fit_decay(T, np.where(T < 3, 1.0, 0.0))
    assert decay.law == "collapse"
    assert decay
    assert not decay.exponential
    assert "collapsed to rounding errors by depth 3" in decay.describe()


@pytest.mark.parametrize(("values", "words"), [((4, 1), "falls by a factor 4"), ((1, 2, 3), "grows by a factor 3")])
def test_a_shallow_model_gets_values_and_a_sentence(values: tuple[float, ...], words: str) -> None:
    decay = fit_decay(range(1, len(values) + 1), values)
    assert decay.law == "shallow"
    assert not decay
    assert decay.describe() == f"{words} from depth 1 to {len(values)}: a law of decay needs 5 depths"


def test_uneven_depths_and_a_start_at_zero() -> None:
    t = np.array([0, 0.5, 1, 2, 4, 8, 12, 20, 30])
    assert fit_decay(t, np.exp(-0.7 * t), skip=0.0).rate == pytest.approx(0.7)


@pytest.mark.parametrize(
    ("depth", "values", "skip", "sentence"),
    [
        ([], [], 0.25, "there is no depth to measure"),
        ([1, 2, 3, 4, 4], [1] * 5, 0.25, "depths must be ascending"),
        ([1, 2, 3, 4, 5], [1] * 4, 0.25, "the same length, got 5 and 4"),
        ([1, 2, 3, 4, 5], [1, 1, math.nan, 1, 1], 0.25, "finite and not negative, got nan at depth 3"),
        ([1, 2, 3, 4, 5], [1, 1, 1, -1, 1], 0.25, "finite and not negative, got -1.0 at depth 4"),
        ([1, 2, 3, 4, 5], [1] * 5, 1.0, "skip must be at least 0 and below 1, got 1.0"),
    ],
)
def test_wrong_arguments(depth: list[float], values: list[float], skip: float, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        fit_decay(depth, values, skip=skip)
