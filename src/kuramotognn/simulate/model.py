"""The model: what the oscillators are and how they act on each other."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kuramotognn.checks import check_choice
from kuramotognn.simulate.arrays import Array
from kuramotognn.simulate.frequencies import Frequencies
from kuramotognn.simulate.networks import Network, as_network

NORMALISATIONS = ("none", "degree", "size")


@dataclass(frozen=True, eq=False)
class Oscillators:
    """Kuramoto oscillators, all to all or on a network.

        m θ''_i + θ'_i = ω_i + K Σ_j a_ij sin(θ_j(t − τ) − θ_i(t) − α) + sqrt(2 D) ξ_i(t)

    Without a graph a_ij = 1/N. The terms: Kuramoto (1975); lag α: Sakaguchi and Kuramoto (1986); delay τ: Yeung and
    Strogatz (1999); noise D: Sakaguchi (1988); inertia m: Tanaka, Lichtenberg and Oishi (1997).

    Attributes:
        count: how many oscillators; taken from ``graph`` or an array of frequencies where there is one.
        coupling: K, any finite number.
        frequencies: ω, a distribution or an array ``[N]``.
        graph: couplings a_ij: a Graph, a NetworkX graph, a SciPy sparse matrix or a full array ``[N, N]``.
        normalise: ``"none"`` leaves a_ij, ``"degree"`` divides row i by its number of edges, ``"size"`` by N.
        lag: α, in radians.
        delay: τ.
        noise: D, so that a free oscillator spreads with variance 2 D t.
        inertia: m; 0 is the first-order model.
    """

    count: int | None = None
    coupling: float = 1.0
    frequencies: Frequencies | Array = field(default_factory=Frequencies)
    graph: Any = None
    normalise: str = "none"
    lag: float = 0.0
    delay: float = 0.0
    noise: float = 0.0
    inertia: float = 0.0
    network: Network | None = field(init=False)

    def __post_init__(self) -> None:
        check_choice("normalise", self.normalise, NORMALISATIONS)
        for name in ("coupling", "lag"):
            if not math.isfinite(value := getattr(self, name)):
                raise ValueError(f"{name} must be finite, got {value}")
        for name in ("delay", "noise", "inertia"):
            if not (math.isfinite(value := getattr(self, name)) and value >= 0):
                raise ValueError(f"{name} must be finite and not negative, got {value}")
        if self.graph is None and self.normalise != "none":
            raise ValueError(f"normalise={self.normalise!r} needs a graph; all-to-all coupling is divided by N anyway")
        object.__setattr__(self, "network", None if self.graph is None else as_network(self.graph))
        object.__setattr__(self, "count", self._settle_count())

    def _settle_count(self) -> int:
        sizes = {} if self.count is None else {"oscillators": self.count}
        if self.network is not None:
            sizes["nodes of the graph"] = self.network.shape[0]
        if not isinstance(self.frequencies, Frequencies):
            array = np.asarray(self.frequencies, dtype=np.float64)
            if array.ndim != 1 or not np.isfinite(array).all():
                raise ValueError(f"frequencies must be finite numbers of shape [N], got shape {list(array.shape)}")
            object.__setattr__(self, "frequencies", array)
            sizes["frequencies"] = array.size
        if not sizes:
            raise ValueError("how many oscillators? Give their number, a graph or an array of frequencies")
        if len(set(sizes.values())) > 1:
            raise ValueError("sizes differ: " + ", ".join(f"{size} {name}" for name, size in sizes.items()))
        count = next(iter(sizes.values()))
        if count < 1:
            raise ValueError(f"there must be at least one oscillator, got {count}")
        return count

    @property
    def size(self) -> int:
        """N."""
        assert self.count is not None
        return self.count

    @property
    def is_classical(self) -> bool:
        """Whether :func:`~kuramotognn.simulate.stationary_order` speaks of this model."""
        return (
            self.network is None
            and isinstance(self.frequencies, Frequencies)
            and not any((self.lag, self.delay, self.noise, self.inertia))
        )

    def describe(self) -> dict[str, Any]:
        """Settings as plain data, for files."""
        given = not isinstance(self.frequencies, Frequencies)
        frequencies = "given" if given else {**vars(self.frequencies)}
        names = ("coupling", "normalise", "lag", "delay", "noise", "inertia")
        graph = "all to all" if self.network is None else f"{_edges(self.network)} directed edges"
        return {
            "oscillators": self.size,
            "graph": graph,
            "frequencies": frequencies,
            **{name: getattr(self, name) for name in names},
        }


def _edges(network: Network) -> int:
    return int(np.count_nonzero(network)) if isinstance(network, np.ndarray) else int(network.nnz)
