"""The model: oscillators, their natural frequencies and their couplings."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kuramotognn.checks import check_choice, check_finite, check_not_negative
from kuramotognn.simulate.arrays import Array
from kuramotognn.simulate.natural_frequencies import Frequencies
from kuramotognn.simulate.networks import Network, as_network

NORMALISATIONS = ("none", "degree", "size")


@dataclass(frozen=True, eq=False)
class Oscillators:
    """Kuramoto oscillators, coupled all to all or by a network.

        m θ''_i + θ'_i = ω_i + K Σ_j a_ij sin(θ_j(t − τ) − θ_i(t) − α) + sqrt(2 D) ξ_i(t)

    Without a graph a_ij = 1/N. The terms: Kuramoto (1975); lag α: Sakaguchi and Kuramoto (1986); delay τ: Yeung and
    Strogatz (1999); noise D: Sakaguchi (1988); inertia m: Tanaka, Lichtenberg and Oishi (1997).

    Attributes:
        count: number of oscillators N (default: that of ``graph`` or of an array of frequencies).
        coupling: coupling strength K, any finite number.
        frequencies: natural frequencies ω, a distribution or an array ``[N]``.
        graph: couplings a_ij: a Graph, a NetworkX graph, a SciPy sparse matrix or a full array ``[N, N]``.
        normalise: ``"none"`` keeps a_ij, ``"degree"`` divides row i by its number of edges, ``"size"`` divides by N.
        lag: phase lag α in radians.
        delay: delay τ.
        noise: diffusion D; the phase of an uncoupled oscillator has variance 2 D t.
        inertia: mass m; 0 for the first-order model.
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
            check_finite(name, getattr(self, name))
        for name in ("delay", "noise", "inertia"):
            check_not_negative(name, getattr(self, name))
        if self.graph is None and self.normalise != "none":
            raise ValueError(f"normalise={self.normalise!r} needs a graph; all-to-all coupling is always divided by N")
        object.__setattr__(self, "network", None if self.graph is None else as_network(self.graph))
        object.__setattr__(self, "count", self._consistent_count())

    def _consistent_count(self) -> int:
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
            raise ValueError("the number of oscillators is missing; give it, a graph or an array of frequencies")
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
        """Whether :func:`~kuramotognn.simulate.stationary_order` applies to this model."""
        drawn = self.network is None and isinstance(self.frequencies, Frequencies)
        return drawn and not any((self.lag, self.delay, self.noise, self.inertia))

    def describe(self) -> dict[str, Any]:
        """The settings as plain data."""
        graph, network = "all to all", self.network
        if network is not None:
            edges = np.count_nonzero(network) if isinstance(network, np.ndarray) else network.nnz
            graph = f"{edges} directed edges"
        frequencies = dict(vars(self.frequencies)) if isinstance(self.frequencies, Frequencies) else "given"
        names = ("coupling", "normalise", "lag", "delay", "noise", "inertia")
        settings = {name: getattr(self, name) for name in names}
        return {"oscillators": self.size, "graph": graph, "frequencies": frequencies, **settings}
