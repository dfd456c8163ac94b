"""Means of several runs with their uncertainty, and significance of differences."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.stats import wilcoxon

RESAMPLES, CONFIDENCE = 10_000, 0.95


@dataclass(frozen=True)
class Summary:
    """Of a sample: ``low`` and ``high`` bound the mean with 95 % confidence (bootstrap)."""

    count: int
    mean: float
    std: float
    low: float
    high: float

    def covers(self, value: float) -> bool:
        """Whether a value lies within the interval."""
        return self.low <= value <= self.high


@dataclass(frozen=True)
class Comparison:
    """Of two models on the same splits: ``difference`` of the means, and Wilcoxon's p, corrected by Holm."""

    first: str
    second: str
    count: int
    difference: float
    p: float
    corrected: float


def summarise(values: Sequence[float], *, seed: int = 0) -> Summary:
    """Mean, sample standard deviation and percentile bootstrap interval; the same values give the same interval.

    A sample of one has no spread: its interval is NaN.
    """
    if not values:
        raise ValueError("a summary needs at least one value")
    sample = np.sort(np.asarray(values, dtype=float))  # The interval must not depend on the order.
    mean = float(sample.mean())
    if sample.size == 1:
        return Summary(1, mean, math.nan, math.nan, math.nan)
    draws = np.random.default_rng(seed).integers(0, sample.size, (RESAMPLES, sample.size))
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(sample[draws].mean(axis=1), [tail, 1 - tail])
    return Summary(sample.size, mean, float(sample.std(ddof=1)), float(low), float(high))


def compare(results: Mapping[str, Mapping[int, float]]) -> list[Comparison]:
    """Every pair of models by the paired Wilcoxon test on the splits that both have, corrected together by Holm.

    Args:
        results: for each model, its number on each split (the mean over seeds).
    """
    pairs = []
    for first, second in combinations(results, 2):
        common = sorted(results[first].keys() & results[second].keys())
        if common:
            differences = [results[first][split] - results[second][split] for split in common]
            pairs.append((first, second, len(common), float(np.mean(differences)), _wilcoxon(differences)))
    corrected = holm([p for *_, p in pairs])
    return [Comparison(*pair, adjusted) for pair, adjusted in zip(pairs, corrected, strict=True)]


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction: the k-th smallest of n times n − k + 1, and none below that of a smaller one."""
    n, highest = len(p_values), 0.0
    corrected = [0.0] * n
    for rank, place in enumerate(sorted(range(n), key=p_values.__getitem__)):
        highest = max(highest, min(1.0, (n - rank) * p_values[place]))
        corrected[place] = highest
    return corrected


def _wilcoxon(differences: Sequence[float]) -> float:
    if not any(differences):
        return 1.0
    return float(wilcoxon(differences, zero_method="wilcox", method="auto").pvalue)
