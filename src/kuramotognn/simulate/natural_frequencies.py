"""Distributions of natural frequencies, and the theory of infinitely many oscillators coupled all to all."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import integrate, optimize, stats

from kuramotognn.checks import check_choice, check_finite, check_positive
from kuramotognn.simulate.arrays import Array

SHAPES = {"lorentzian": stats.cauchy(), "normal": stats.norm(), "uniform": stats.uniform(loc=-1, scale=2)}
DENSITIES: dict[str, Callable[[float], float]] = {
    "lorentzian": lambda x: 1 / (math.pi * (1 + x * x)),
    "normal": lambda x: math.exp(-x * x / 2) / math.sqrt(2 * math.pi),
    "uniform": lambda x: 0.5 if abs(x) <= 1 else 0.0,
}
"""Densities of ``SHAPES``; those of SciPy take a hundred times as long for one number."""
DRAWS = ("random", "quantiles")


@dataclass(frozen=True)
class Frequencies:
    """A symmetric, unimodal distribution g of natural frequencies.

    Attributes:
        shape: ``"lorentzian"``, ``"normal"`` or ``"uniform"``.
        centre: the mean frequency.
        width: half width at half maximum (Lorentzian), standard deviation (normal), half the interval (uniform).
        draw: ``"random"``, or ``"quantiles"`` for the quantiles (i + 1/2)/N in random order, without sampling noise.
    """

    shape: str = "lorentzian"
    centre: float = 0.0
    width: float = 1.0
    draw: str = "random"

    def __post_init__(self) -> None:
        check_choice("frequencies", self.shape, SHAPES)
        check_choice("draw", self.draw, DRAWS)
        check_positive("width", self.width)
        check_finite("centre", self.centre)

    def sample(self, count: int, rng: np.random.Generator) -> Array:
        """``[count]`` frequencies."""
        standard = SHAPES[self.shape]
        if self.draw == "random":
            return np.asarray(standard.rvs(size=count, random_state=rng)) * self.width + self.centre
        quantiles: Array = standard.ppf((np.arange(count) + 0.5) / count)
        return rng.permutation(quantiles) * self.width + self.centre

    def density(self, offset: float) -> float:
        """g(centre + offset)."""
        return DENSITIES[self.shape](offset / self.width) / self.width


def critical_coupling(frequencies: Frequencies) -> float:
    """K_c = 2 / (π g(centre)): above it the incoherent state is unstable (Kuramoto, 1975)."""
    return 2 / (math.pi * frequencies.density(0.0))


def stationary_order(frequencies: Frequencies, coupling: float) -> float:
    """The order parameter r that solves r = K r ∫ cos²θ g(K r sin θ) dθ over [−π/2, π/2]; 0 below K_c.

    For the Lorentzian it is sqrt(1 − K_c / K). Valid for all-to-all coupling without lag, delay, noise or inertia.
    """
    critical = critical_coupling(frequencies)
    if coupling <= critical:
        return 0.0
    if frequencies.shape == "lorentzian":
        return math.sqrt(1 - critical / coupling)

    def excess(r: float) -> float:
        """K ∫ cos²θ g(K r sin θ) dθ − 1; for a uniform density the integral ends where ω = K r sin θ does."""
        reach = coupling * r
        end = math.asin(min(1.0, frequencies.width / reach)) if frequencies.shape == "uniform" else math.pi / 2
        locked, _ = integrate.quad(lambda t: math.cos(t) ** 2 * frequencies.density(reach * math.sin(t)), -end, end)
        return coupling * float(locked) - 1

    return float(optimize.brentq(excess, 1e-6, 1.0, xtol=1e-12))
