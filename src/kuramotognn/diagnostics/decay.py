r"""Does a measure of difference decay exponentially with depth? Definition 4.8 of the paper, as a statistical question.

The nodes over-smooth when their differences go to zero *exponentially*. Given a measure :math:`m_k` at depths
:math:`t_k`, four laws are fitted to the increments of :math:`\log m`:

==============  ==================================  ==========
law             :math:`m(t)`                        parameters
==============  ==================================  ==========
constant        c                                   0
exponential     c e^{−rt}                           1
algebraic       c t^{−p}                            1
plateau         c (b + e^{−rt})                     2
==============  ==================================  ==========

and the one with the lowest Bayesian information criterion is named. Increments, not levels: each layer multiplies what
the one before it left, so the errors of :math:`\log m` add up along the depth, and regression on levels would take a
random walk for a trend. What is smaller than rounding errors can be is not looked at.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

Law: TypeAlias = Literal["exponential", "algebraic", "plateau", "constant", "growth", "undecided", "collapse"]
Array: TypeAlias = NDArray[np.float64]

FEWEST = 5
"""Depths needed to tell laws apart."""
LEAST_FALL = 10.0
"""Factor by which a measure must fall, over the depths looked at, before its decay is called exponential."""
SIGNIFICANT = 3.0
"""Standard errors that the rate must be away from zero."""
MARGIN = 2.0
"""Difference of the criterion that decides between exponential decay and another law."""
ROUNDING = 1e-9
"""Increments of log m smaller than this are taken for noise; it also keeps a perfect fit's likelihood finite."""


@dataclass(frozen=True)
class Decay:
    """How a measure changes with depth.

    Attributes:
        law: ``exponential``, ``algebraic``, ``plateau`` (levels off above zero); ``constant`` for less than a factor 2;
            ``growth``; ``undecided`` when it fell too little or too unevenly to tell; ``collapse`` when it reached
            rounding errors too soon for a fit.
        rate: r of the exponential fit per unit of depth, whatever the law; not a number for ``collapse``.
        standard_error: of the rate, robust to correlated increments (Newey and West).
        fall: the factor by which the measure fell over the depths that were fitted.
        first: the first depth that was fitted.
        last: the last one.
        criteria: the Bayesian information criterion of each law; the lowest wins.
    """

    law: Law
    rate: float
    standard_error: float
    fall: float
    first: float
    last: float
    criteria: dict[str, float]

    @property
    def exponential(self) -> bool:
        """Whether the measure decays exponentially."""
        return self.law == "exponential"

    def __bool__(self) -> bool:
        """Whether this is over-smoothing: exponential decay, or a collapse within a few layers."""
        return self.law in ("exponential", "collapse")

    def describe(self, unit: str = "unit of depth") -> str:
        """One clause for people."""
        if self.law == "collapse":
            return f"collapsed to rounding errors by depth {self.last:g}: over-smoothing"
        rate = f"rate {self.rate:.3g} ± {self.standard_error:.2g} per {unit}"
        return {
            "exponential": f"exponential decay, {rate}: over-smoothing",
            "algebraic": f"algebraic decay, by a factor {self.fall:.3g}: no over-smoothing at these depths",
            "plateau": f"levels off, after a factor {self.fall:.3g}: no over-smoothing at these depths",
            "constant": "no decay: no over-smoothing",
            "growth": f"grows, by a factor {1 / self.fall:.3g}: no over-smoothing",
            "undecided": f"falls by a factor {self.fall:.3g}, too little or too unevenly to name a law; go deeper",
        }[self.law]


def fit_decay(
    depth: Sequence[float], values: Sequence[float], *, floor: Sequence[float] | None = None, skip: float = 0.25
) -> Decay:
    """Fit the laws of decay.

    Args:
        depth: ascending layer numbers or times.
        values: the measure at each of them, not negative.
        floor: where rounding errors begin; the depths from the first value below it on are left out.
        skip: share of the usable depths, at the beginning, that is left out as a transient.
    """
    t, m = np.asarray(depth, dtype=float), np.asarray(values, dtype=float)
    _check(t, m, skip)
    low = np.zeros_like(m) if floor is None else np.asarray(floor, dtype=float)
    drowned = np.flatnonzero(m <= low)
    usable = np.arange(drowned[0] if drowned.size else m.size)
    if drowned.size and usable.size < FEWEST:
        end = float(t[drowned[0]])
        return Decay("collapse", math.nan, math.nan, math.inf, float(t[0]), end, {})
    kept = usable[usable >= min(int(skip * usable.size), usable.size - FEWEST)]
    kept = kept[t[kept] > 0] if (t[kept] > 0).sum() >= 3 else kept
    return _choose(t[kept], np.log(m[kept]), levels=not drowned.size)


def _check(t: Array, m: Array, skip: float) -> None:
    if t.size != m.size:
        raise ValueError(f"depth and values must be equally many, got {t.size} and {m.size}")
    if t.size < FEWEST:
        raise ValueError(f"a law of decay needs at least {FEWEST} depths, got {t.size}; take a deeper model")
    if not (np.diff(t) > 0).all():
        raise ValueError(f"depths must be ascending, got {t.tolist()}")
    wrong = np.flatnonzero(~(np.isfinite(m) & (m >= 0)))
    if wrong.size:
        raise ValueError(f"values must be finite and not negative, got {m[wrong[0]]} at depth {t[wrong[0]]:g}")
    if not 0 <= skip < 1:
        raise ValueError(f"skip must be at least 0 and below 1, got {skip}")


def _choose(t: Array, y: Array, *, levels: bool) -> Decay:
    dt, dy = np.diff(t), np.diff(y)
    rate = -float(dy @ dt / (dt @ dt))
    residuals = {"constant": dy, "exponential": dy + rate * dt}
    if levels:  # What went on to drown in rounding errors has not levelled off above them.
        residuals["plateau"] = _plateau(t, dy, max(rate, 1e-3 / t[-1]))
    parameters = {"constant": 0, "exponential": 1, "plateau": 2, "algebraic": 1}
    if t[0] > 0:
        dlog = np.diff(np.log(t))
        residuals["algebraic"] = dy - (dy @ dlog / (dlog @ dlog)) * dlog
    n = dy.size
    criteria = {
        law: float(n * math.log(r @ r / n + ROUNDING**2) + parameters[law] * math.log(n))
        for law, r in residuals.items()
    }
    error = _newey_west(dt, residuals["exponential"])
    fall = math.exp(min(float(y[0] - y[-1]), 700.0))
    law = _name(criteria, rate, error, fall)
    return Decay(law, rate, error, fall, float(t[0]), float(t[-1]), criteria)


def _name(criteria: dict[str, float], rate: float, error: float, fall: float) -> Law:
    if 0.5 < fall < 2:
        return "constant"
    if fall <= 0.5:
        return "growth"
    best = min(criteria, key=criteria.__getitem__)
    if best == "exponential":
        # The plateau contains the exponential as a limit and cannot fit worse; its parameter is paid for above.
        clear = all(criteria[law] - criteria[best] > MARGIN for law in criteria if law not in (best, "plateau"))
        return "exponential" if clear and fall >= LEAST_FALL and rate > SIGNIFICANT * error else "undecided"
    if criteria["exponential"] - criteria[best] <= MARGIN:
        return "undecided"
    return "plateau" if best == "plateau" else "algebraic" if best == "algebraic" else "undecided"


def _plateau(t: Array, dy: Array, rate: float) -> Array:
    """Residuals of the increments of log(b + e^{−rt}), over the best of several starts."""
    s = t - t[0]

    def residual(log_rate_and_level: Array) -> Array:
        r, b = np.exp(np.clip(log_rate_and_level, -50, 50))
        increments: Array = np.diff(np.logaddexp(math.log(b), -r * s))
        return dy - increments

    starts = [(math.log(k * rate), level) for k in (1.0, 3.0, 10.0, 50.0) for level in (-8.0, -4.0, -1.0)]
    fits = [least_squares(residual, start, max_nfev=200) for start in starts]
    best: Array = min(fits, key=lambda fit: float(fit.cost)).fun
    return best


def _newey_west(dt: Array, residual: Array) -> float:
    """Standard error of a slope through the origin whose residuals are correlated along the depth."""
    n = residual.size
    score = dt * residual
    lags = int(4 * (n / 100) ** (2 / 9))
    variance = score @ score
    for lag in range(1, min(lags, n - 1) + 1):
        variance += 2 * (1 - lag / (lags + 1)) * (score[lag:] @ score[:-lag])
    # Never below what independent residuals would give: a slowly bending curve has few independent increments.
    variance = max(variance, score @ score) * n / max(n - 1, 1)
    return float(math.sqrt(variance) / (dt @ dt))
