r"""Fit a law of decay to a measure over depth: over-smoothing is exponential decay (Definition 4.8 of the paper).

Given a measure :math:`m_k` at depths :math:`t_k`, four laws are fitted to the increments of :math:`\log m`:

==============  ==================================  ==========
law             :math:`m(t)`                        parameters
==============  ==================================  ==========
constant        c                                   0
exponential     c e^{−rt}                           1
algebraic       c t^{−p}                            1
plateau         c (b + e^{−rt})                     2
==============  ==================================  ==========

The law with the lowest Bayesian information criterion is chosen. The fit uses increments because each layer multiplies
the result of the one before it: the errors of :math:`\log m` add up along the depth, and regression on levels would
find a trend in a random walk. Values below the rounding floor are ignored.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

Law: TypeAlias = Literal[
    "exponential", "algebraic", "plateau", "constant", "growth", "undecided", "collapse", "shallow"
]
Array: TypeAlias = NDArray[np.float64]

FEWEST = 5
"""Smallest number of depths for a fit."""
LEAST_FALL = 10.0
"""Smallest factor by which a measure must fall to count as exponential decay."""
SIGNIFICANT = 3.0
"""Smallest ratio of the rate to its standard error."""
MARGIN = 2.0
"""Smallest difference of the criterion that decides between exponential decay and another law."""
ROUNDING = 1e-9
"""Added to the residuals of log m, so that the likelihood of a perfect fit is finite."""
PARAMETERS: dict[Law, int] = {"constant": 0, "exponential": 1, "algebraic": 1, "plateau": 2}


@dataclass(frozen=True)
class Decay:
    """How a measure changes with depth.

    Attributes:
        law: ``exponential``, ``algebraic``, ``plateau`` (levels off above zero), ``constant`` (changes by less than a
            factor of 2), ``growth``, ``undecided`` (falls too little or too unevenly), ``collapse`` (reaches
            rounding errors within too few depths for a fit), or ``shallow`` (fewer than five depths).
        rate: the rate r of the exponential fit per unit of depth; NaN for ``collapse`` and ``shallow``.
        standard_error: standard error of the rate, robust to correlated increments (Newey and West).
        fall: the factor by which the measure falls over the fitted depths.
        first: the first fitted depth.
        last: the last fitted depth.
        criteria: the Bayesian information criterion of each law.
    """

    law: Law
    rate: float
    standard_error: float
    fall: float
    first: float
    last: float
    criteria: dict[Law, float]

    @property
    def exponential(self) -> bool:
        """Whether the measure decays exponentially."""
        return self.law == "exponential"

    def __bool__(self) -> bool:
        """Whether the model over-smooths: exponential decay or collapse."""
        return self.law in ("exponential", "collapse")

    def describe(self, unit: str = "unit of depth") -> str:
        """One clause for tables and terminals."""
        if self.law == "collapse":
            return f"collapsed to rounding errors by depth {self.last:g}: over-smoothing"
        if self.law == "shallow":
            if self.first == self.last:
                return f"one depth of this width: nothing to compare, and a law of decay needs {FEWEST}"
            change = (
                f"falls by a factor {self.fall:.3g}" if self.fall >= 1 else f"grows by a factor {1 / self.fall:.3g}"
            )
            return f"{change} from depth {self.first:g} to {self.last:g}: a law of decay needs {FEWEST} depths"
        rate = f"rate {self.rate:.3g} ± {self.standard_error:.2g} per {unit}"
        return {
            "exponential": f"exponential decay, {rate}: over-smoothing",
            "algebraic": f"algebraic decay, by a factor {self.fall:.3g}: no over-smoothing at these depths",
            "plateau": f"levels off, after a factor {self.fall:.3g}: no over-smoothing at these depths",
            "constant": "no decay: no over-smoothing",
            "growth": f"grows, by a factor {1 / self.fall:.3g}: no over-smoothing",
            "undecided": f"falls by a factor {self.fall:.3g}, too little or too unevenly for a law; go deeper",
        }[self.law]


def fit_decay(
    depth: Sequence[float], values: Sequence[float], *, floor: Sequence[float] | None = None, skip: float = 0.25
) -> Decay:
    """Fit the laws of decay to a measure.

    Args:
        depth: ascending layer numbers or times.
        values: the measure at each depth, not negative.
        floor: the size of rounding errors at each depth; depths from the first value below it on are ignored.
        skip: share of the usable depths that is ignored at the beginning, as a transient.
    """
    t, m = np.asarray(depth, dtype=float), np.asarray(values, dtype=float)
    _check(t, m, skip)
    low = np.zeros_like(m) if floor is None else np.asarray(floor, dtype=float)
    below = np.flatnonzero(m <= low)
    end = int(below[0]) if below.size else m.size
    if below.size and end < FEWEST:
        return Decay("collapse", math.nan, math.nan, math.inf, float(t[0]), float(t[end]), {})
    if end < FEWEST:
        fall = float(m[0] / m[-1])
        return Decay("shallow", math.nan, math.nan, fall, float(t[0]), float(t[-1]), {})
    kept = np.arange(min(int(skip * end), end - FEWEST), end)
    kept = kept[t[kept] > 0] if (t[kept] > 0).sum() >= 3 else kept
    return _choose(t[kept], np.log(m[kept]), may_level_off=not below.size)


def _check(t: Array, m: Array, skip: float) -> None:
    if t.size != m.size:
        raise ValueError(f"depth and values must have the same length, got {t.size} and {m.size}")
    if t.size == 0:
        raise ValueError("there is no depth to measure; use a model with at least one layer")
    if not (np.diff(t) > 0).all():
        raise ValueError(f"depths must be ascending, got {t.tolist()}")
    wrong = np.flatnonzero(~(np.isfinite(m) & (m >= 0)))
    if wrong.size:
        raise ValueError(f"values must be finite and not negative, got {m[wrong[0]]} at depth {t[wrong[0]]:g}")
    if not 0 <= skip < 1:
        raise ValueError(f"skip must be at least 0 and below 1, got {skip}")


def _choose(t: Array, y: Array, *, may_level_off: bool) -> Decay:
    dt, dy = np.diff(t), np.diff(y)
    rate = -float(dy @ dt / (dt @ dt))
    residuals: dict[Law, Array] = {"constant": dy, "exponential": dy + rate * dt}
    if may_level_off:
        residuals["plateau"] = _plateau(t, dy, max(rate, 1e-3 / t[-1]))
    if t[0] > 0:
        dlog = np.diff(np.log(t))
        residuals["algebraic"] = dy - (dy @ dlog / (dlog @ dlog)) * dlog
    n = dy.size
    criteria = {
        law: float(n * math.log(r @ r / n + ROUNDING**2) + PARAMETERS[law] * math.log(n))
        for law, r in residuals.items()
    }
    error = _newey_west(dt, residuals["exponential"])
    fall = math.exp(min(float(y[0] - y[-1]), 700.0))
    return Decay(_law(criteria, rate, error, fall), rate, error, fall, float(t[0]), float(t[-1]), criteria)


def _law(criteria: dict[Law, float], rate: float, error: float, fall: float) -> Law:
    if 0.5 < fall < 2:
        return "constant"
    if fall <= 0.5:
        return "growth"
    best = min(criteria, key=criteria.__getitem__)
    if best == "exponential":
        # The exponential is a limit of the plateau, which never fits worse; the criterion counts its parameters.
        clear = all(criteria[law] - criteria[best] > MARGIN for law in criteria if law not in (best, "plateau"))
        return "exponential" if clear and fall >= LEAST_FALL and rate > SIGNIFICANT * error else "undecided"
    clear = criteria["exponential"] - criteria[best] > MARGIN
    return best if clear and best != "constant" else "undecided"


def _plateau(t: Array, dy: Array, rate: float) -> Array:
    """Residuals of the increments of log(b + e^{−rt}), for the best of several starting points."""
    s = t - t[0]

    def residual(log_rate_and_level: Array) -> Array:
        r, b = np.exp(np.clip(log_rate_and_level, -50, 50))
        return np.asarray(dy - np.diff(np.logaddexp(math.log(b), -r * s)))

    starts = [(math.log(k * rate), level) for k in (1.0, 3.0, 10.0, 50.0) for level in (-8.0, -4.0, -1.0)]
    fits = [least_squares(residual, start, max_nfev=200) for start in starts]
    return np.asarray(min(fits, key=lambda fit: float(fit.cost)).fun)


def _newey_west(dt: Array, residual: Array) -> float:
    """Standard error of a slope through the origin with correlated residuals."""
    n = residual.size
    score = dt * residual
    lags = int(4 * (n / 100) ** (2 / 9))
    variance = score @ score
    for lag in range(1, min(lags, n - 1) + 1):
        variance += 2 * (1 - lag / (lags + 1)) * (score[lag:] @ score[:-lag])
    # At least the error for independent residuals: a slowly bending curve has few independent increments.
    variance = max(variance, score @ score) * n / max(n - 1, 1)
    return float(math.sqrt(variance) / (dt @ dt))
