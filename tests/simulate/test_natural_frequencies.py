import math

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from kuramotognn.simulate import Frequencies, critical_coupling, stationary_order

SCIPY = {
    "lorentzian": lambda centre, width: stats.cauchy(centre, width),
    "normal": lambda centre, width: stats.norm(centre, width),
    "uniform": lambda centre, width: stats.uniform(centre - width, 2 * width),
}


@pytest.mark.parametrize("shape", SCIPY)
@pytest.mark.parametrize("draw", ["random", "quantiles"])
def test_samples_follow_the_distribution(shape: str, draw: str) -> None:
    sample = Frequencies(shape, 2.0, 0.5, draw).sample(4000, np.random.default_rng(0))
    fit = stats.kstest(sample, SCIPY[shape](2.0, 0.5).cdf)
    assert fit.pvalue > (0.01 if draw == "random" else 0.999)
    assert abs(np.corrcoef(sample[:-1], sample[1:])[0, 1]) < 0.1, "in random order"


@pytest.mark.parametrize("shape", SCIPY)
def test_density(shape: str) -> None:
    frequencies, scipy_density = Frequencies(shape, 2.0, 0.5), SCIPY[shape](2.0, 0.5)
    for offset in (-0.7, -0.3, 0.0, 0.2):
        assert frequencies.density(offset) == pytest.approx(scipy_density.pdf(2.0 + offset))


def test_critical_couplings_of_the_literature() -> None:
    assert critical_coupling(Frequencies("lorentzian", width=0.5)) == pytest.approx(1.0)
    assert critical_coupling(Frequencies("normal")) == pytest.approx(math.sqrt(8 / math.pi))
    assert critical_coupling(Frequencies("uniform", centre=3.0)) == pytest.approx(4 / math.pi)


@pytest.mark.parametrize("shape", SCIPY)
@pytest.mark.parametrize("excess", [1.05, 1.5, 4.0])
def test_stationary_order_solves_the_equation_over_frequencies(shape: str, excess: float) -> None:
    """r = ∫ over locked ω of sqrt(1 − (ω / K r)²) g(ω) dω: the same equation in another variable."""
    frequencies = Frequencies(shape, width=0.8)
    coupling = excess * critical_coupling(frequencies)
    r = stationary_order(frequencies, coupling)
    assert 0 < r < 1
    end = min(coupling * r, 0.8) if shape == "uniform" else coupling * r
    locked, _ = quad(lambda w: math.sqrt(max(0.0, 1 - (w / (coupling * r)) ** 2)) * frequencies.density(w), -end, end)
    assert locked == pytest.approx(r, abs=1e-8)


def test_no_order_below_the_critical_coupling() -> None:
    assert stationary_order(Frequencies(), 2.0) == 0
    assert stationary_order(Frequencies(), -1.0) == 0


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"shape": "lorenzian"}, "did you mean 'lorentzian'?"),
        ({"draw": "all"}, "draw must be one of"),
        ({"width": 0.0}, "width must be positive"),
        ({"centre": math.nan}, "centre must be finite"),
    ],
)
def test_wrong_arguments(settings: dict, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        Frequencies(**settings)
