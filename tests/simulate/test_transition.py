import json
import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from kuramotognn.simulate import Frequencies, Oscillators, simulate, transition

COMMITTED = Path(__file__).parents[2] / "benchmarks" / "results" / "transition.json"


def test_lorentzian_transition_matches_theory() -> None:
    """r = sqrt(1 − K_c/K) within 0.02 for N = 100,000, away from K_c = 2."""
    couplings = np.array([1.0, 2.6, 4.0])
    curve = transition(Oscillators(100_000), couplings, 30.0, step=0.1, transient=20.0, samples=30, dtype="float32")
    np.testing.assert_allclose(curve.order, np.sqrt(np.maximum(0, 1 - 2 / couplings)), atol=0.02)
    np.testing.assert_allclose(curve.theory, np.sqrt(np.maximum(0, 1 - 2 / couplings)))
    assert curve.critical == pytest.approx(2.0)


@pytest.mark.parametrize("shape", ["normal", "uniform"])
def test_other_transitions_match_theory(shape: str) -> None:
    model = Oscillators(20_000, frequencies=Frequencies(shape, centre=0.5, draw="quantiles"))
    curve = transition(model, [0.9, 2.4], 40.0, step=0.1, samples=40)
    np.testing.assert_allclose(curve.order, curve.theory, atol=0.02)


def test_lag_shifts_the_lorentzian_transition() -> None:
    """K cos α replaces K (Ott and Antonsen, 2008)."""
    model = Oscillators(20_000, 5.0, Frequencies(draw="quantiles"), lag=0.8)
    expected = math.sqrt(1 - 2 / (5.0 * math.cos(0.8)))
    assert simulate(model, 40.0, step=0.1).mean_order == pytest.approx(expected, abs=0.02)


@pytest.mark.skipif(not COMMITTED.exists(), reason="python -m benchmarks.simulate has not been run")
def test_committed_transition_matches_theory() -> None:
    curve = json.loads(COMMITTED.read_text())["curve"]
    assert curve["settings"]["oscillators"] == 100_000
    away = [row for row in curve["rows"] if abs(row["coupling"] / curve["critical"] - 1) > 0.1]
    assert len(away) >= 15
    for row in away:
        exact = math.sqrt(max(0.0, 1 - 2 / row["coupling"]))
        assert row["order"] == pytest.approx(exact, abs=0.02)


def test_follow_shows_hysteresis() -> None:
    """With inertia, r at the same K is larger on the way down than on the way up."""
    model = Oscillators(1000, frequencies=Frequencies(draw="quantiles"), inertia=4.0)
    couplings = [2.0, 5.0, 12.0, 5.0]
    curve = transition(model, couplings, 60.0, step=0.1, follow=True)
    assert curve.order[3] > curve.order[1] + 0.3
    assert curve.theory is None


def test_files_of_a_transition(tmp_path: Path) -> None:
    curve = transition(Oscillators(50), [1.0, 3.0], 1.0)
    for name in ("a.csv", "a.parquet", "a.json"):
        curve.save(tmp_path / name)
    assert pl.read_csv(tmp_path / "a.csv").columns == ["coupling", "order", "spread", "theory"]
    assert pl.read_parquet(tmp_path / "a.parquet")["order"].to_list() == curve.order.tolist()
    assert json.loads((tmp_path / "a.json").read_text())["critical"] == pytest.approx(2.0)
    with pytest.raises(ValueError, match="must end in"):
        curve.save(tmp_path / "a.txt")


def test_wrong_arguments() -> None:
    with pytest.raises(ValueError, match="couplings must be a list of numbers"):
        transition(Oscillators(3), [])
