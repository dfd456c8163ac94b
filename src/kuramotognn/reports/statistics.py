"""Means of several runs with their uncertainty, and significance of differences."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.stats import friedmanchisquare, rankdata, studentized_range, wilcoxon

RESAMPLES, CONFIDENCE = 10_000, 0.95
LEVEL = 0.05
"""What is called significant."""


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


@dataclass(frozen=True)
class Ranking:
    """Of models over data sets (Demšar 2006, JMLR 7).

    Attributes:
        ranks: mean rank of each model, the best first; 1 is the best, ties share their mean.
        datasets: the data sets, one rank each.
        friedman: p of the hypothesis that all models are alike; NaN for fewer than three models or two data sets.
        critical: Nemenyi's critical difference: mean ranks further apart than that differ significantly.
    """

    ranks: Mapping[str, float]
    datasets: tuple[str, ...]
    friedman: float
    critical: float

    @property
    def decidable(self) -> bool:
        """Whether there are enough data sets for any difference to be significant."""
        return self.critical < len(self.ranks) - 1

    @property
    def groups(self) -> list[tuple[float, float]]:
        """First and last mean rank of the largest groups within which nothing differs significantly."""
        ranks = list(self.ranks.values())
        ends = [(rank, max(other for other in ranks if other - rank <= self.critical)) for rank in ranks]
        return [(low, high) for k, (low, high) in enumerate(ends) if low < high and (k == 0 or high > ends[k - 1][1])]


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


def compare(results: Mapping[str, Mapping[int, float]], reference: str | None = None) -> list[Comparison]:
    """Pairs of models by the paired Wilcoxon test on the splits that both have, corrected together by Holm.

    Args:
        results: for each model, its number on each split (the mean over seeds).
        reference: a model that all others are compared with; every pair unless given.
    """
    pairs = []
    others = ((reference, name) for name in results if name != reference) if reference else combinations(results, 2)
    for first, second in others:
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


def rank_models(results: Mapping[str, Mapping[str, float]]) -> Ranking:
    """Rank models on each data set by a number of which more is better.

    Args:
        results: for each model, its number on each data set; all models have the same data sets.
    """
    datasets = tuple(next(iter(results.values())))
    table = np.array([[own[dataset] for dataset in datasets] for own in results.values()])
    means = rankdata(-table, axis=0).mean(axis=1)
    ranks = dict(sorted(zip(results, map(float, means), strict=True), key=lambda pair: pair[1]))
    enough = len(results) > 2 and len(datasets) > 1 and np.ptp(table, axis=0).any()
    friedman = float(friedmanchisquare(*table).pvalue) if enough else math.nan
    return Ranking(ranks, datasets, friedman, critical_difference(len(results), len(datasets)))


def critical_difference(models: int, datasets: int) -> float:
    """Nemenyi's critical difference of mean ranks at 5 %."""
    if models < 2:
        return math.inf
    quantile = studentized_range.isf(LEVEL, models, math.inf) / math.sqrt(2)
    return float(quantile * math.sqrt(models * (models + 1) / (6 * datasets)))


def _wilcoxon(differences: Sequence[float]) -> float:
    if not any(differences):
        return 1.0
    return float(wilcoxon(differences, zero_method="wilcox", method="auto").pvalue)
