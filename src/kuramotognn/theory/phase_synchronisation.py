"""Proposition 4.10: with equal natural frequencies the phases synchronise exponentially, which is over-smoothing."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kuramotognn.diagnostics import order_parameter, phase_energy
from kuramotognn.graph import Graph
from kuramotognn.kernels import row_normalise
from kuramotognn.plots.panels import Panel
from kuramotognn.solve import Solution, integrate
from kuramotognn.solver import Solver
from kuramotognn.theory.statement import Check, Finding, Statement, line
from kuramotognn.theory.systems import (
    barbell_graph,
    dense,
    kuramoto,
    pair_graph,
    random_graph,
    ring_graph,
    undirected,
    uniform,
)

STRENGTH = 1.5
FOLLOWERS = 60
TIMES = [0.05 * k for k in range(161)]


def run() -> Finding:
    """Compare rates with eigenvalues, and measure the energy along trajectories."""
    barbell, mixed = barbell_graph(5), random_graph(20, 20, seed=3)
    symmetric, walk = (_rate(barbell, a) for a in (barbell.weight, row_normalise(barbell.pattern, barbell.weight)))
    energies, attention = _energies(mixed), _attention(mixed)
    ring, star = _perturbed_ring(), _star()
    checks = (
        Check("two oscillators follow tan(Δ/2) = tan(Δ₀/2) e^{−2Kt}: largest error", _two_oscillators(), "≤", 1e-6),
        Check("rate is K λ₂ of L = D − W (symmetric couplings): relative error", symmetric.error, "≤", 1e-6),
        Check("rate is K λ₂ of I − A (random-walk couplings): relative error", walk.error, "≤", 1e-6),
        Check("U never increases (symmetric couplings): largest step / U(0)", _rise(*energies), "≤", 1e-12),
        Check(
            "right-stochastic A, phases in a half circle: range never grows: largest step", _rise(attention), "≤", 1e-12
        ),
        Check("… and goes to zero: range at the end / at the start", attention[-1] / attention[0], "≤", 1e-6),
        Check(
            "phases synchronise from any start: order parameter of a twisted ring of 10 at t = 200",
            float(order_parameter(ring.final).abs()),
            "≥",
            0.99,
            as_written=True,
        ),
        Check(
            "U never increases for right-stochastic A: largest step / U(0), star whose hub attends to one leaf",
            _rise(star),
            "≤",
            1e-12,
            as_written=True,
        ),
    )
    twisted = [phase_energy(x, ring_graph(10)) for x in ring.ys[:-1]]
    curves = {
        "random starts, symmetric: falls": energies[0],
        "twisted ring, symmetric: stays above 0": twisted,
        "star, right-stochastic: rises": star,
    }
    lines = tuple(line(label, TIMES, (u / curve[0] for u in curve)) for label, curve in curves.items())
    energy = Panel("The energy U, and where it does not fall to zero", "time t", "U(t) / U(0)", lines)
    return Finding(checks, (_rate_panel(symmetric, walk), energy))


@dataclass(frozen=True, eq=False)
class _Rate:
    """The range of the phases over time, and the eigenvalue λ₂ that predicts its decay."""

    eigenvalue: float
    ts: NDArray[np.float64]
    ranges: NDArray[np.float64]

    @property
    def error(self) -> float:
        late = (self.ranges < 1e-4) & (self.ranges > 1e-8)
        t, y = self.ts[late], np.log(self.ranges[late])
        rate = -float((y[-1] - y[0]) / (t[-1] - t[0]))
        return abs(rate / (STRENGTH * self.eigenvalue) - 1)


def _rate(graph: Graph, a: Tensor) -> _Rate:
    adjacency = dense(graph, a)
    laplacian = torch.diag(adjacency.sum(dim=1)) - adjacency
    eigenvalue = float(np.sort(np.linalg.eigvals(laplacian.numpy()).real)[1])
    times = np.linspace(0.0, 20.0 / (STRENGTH * eigenvalue), 201)
    x0 = uniform(graph.num_nodes, 1, low=-1.4, high=1.4, seed=2)
    step = 0.5 / float(adjacency.sum(dim=1).max()) / STRENGTH
    flow = _flow(graph, a, x0, step, times.tolist())
    return _Rate(eigenvalue, times, np.asarray([_range(x) for x in flow.ys]))


def _flow(graph: Graph, a: Tensor, x0: Tensor, step: float, times: list[float]) -> Solution:
    dynamics = kuramoto(graph, a, torch.zeros_like(x0), STRENGTH)
    return integrate(dynamics, x0, times[-1], Solver("rk4", step_size=step, max_evaluations=100_000), save_at=times)


def _two_oscillators() -> float:
    graph, times = pair_graph(), TIMES[:61]
    x0 = torch.tensor([[1.2], [-1.3]], dtype=torch.float64)
    states = _flow(graph, graph.weight, x0, 0.01, times).ys
    measured = (states[:, 0, 0] - states[:, 1, 0]).numpy()
    exact = 2 * np.arctan(math.tan(1.25) * np.exp(-2 * STRENGTH * np.asarray(times)))
    return float(np.abs(measured - exact).max())


def _energies(graph: Graph) -> list[list[float]]:
    starts = [uniform(graph.num_nodes, 1, high=2 * math.pi, seed=seed) for seed in range(6)]
    flows = [_flow(graph, graph.weight, x0, 0.025, TIMES) for x0 in starts]
    return [[phase_energy(x, graph) for x in flow.ys] for flow in flows]


def _star() -> list[float]:
    """U along the flow on a star: the hub attends almost only to one leaf and moves away from all others."""
    hub, leaves = 0, torch.arange(1, FOLLOWERS + 2)
    graph = undirected(torch.stack([torch.zeros_like(leaves), leaves]), FOLLOWERS + 2)
    favourite = FOLLOWERS + 1
    scores = torch.where((graph.pattern.row == hub) & (graph.pattern.col == favourite), 1e4, 1.0).double()
    a = row_normalise(graph.pattern, scores)
    x0 = torch.full((FOLLOWERS + 2, 1), -0.5, dtype=torch.float64)
    x0[hub], x0[favourite] = 0.0, 1.0
    weighted = Graph(graph.pattern, a)
    return [phase_energy(x, weighted) for x in _flow(graph, a, x0, 0.025, TIMES).ys]


def _attention(graph: Graph) -> list[float]:
    """Range of the phases with couplings like those of trained attention: right-stochastic, not symmetric."""
    a = row_normalise(graph.pattern, torch.exp(uniform(graph.num_edges, low=-2.0, high=2.0, seed=5)))
    x0 = uniform(graph.num_nodes, 1, low=-1.5, high=1.5, seed=6)
    return [_range(x) for x in _flow(graph, a, x0, 0.1, [float(t) for t in range(251)]).ys]


def _perturbed_ring() -> Solution:
    graph = ring_graph(10)
    x0 = 2 * math.pi * torch.arange(10, dtype=torch.float64)[:, None] / 10 + uniform(10, 1, high=0.3, seed=7)
    return _flow(graph, graph.weight, x0, 0.05, [*TIMES, 200.0])


def _range(x: Tensor) -> float:
    return float(x.max() - x.min())


def _rise(*curves: list[float]) -> float:
    return max(float(np.diff(curve).max()) / curve[0] for curve in curves)


def _rate_panel(symmetric: _Rate, walk: _Rate) -> Panel:
    (t, ranges), (walk_t, walk_ranges) = (
        (rate.ts[rate.ranges > 1e-9] * rate.eigenvalue * STRENGTH, rate.ranges[rate.ranges > 1e-9])
        for rate in (symmetric, walk)
    )
    lines = (
        line("symmetric couplings", t, ranges),
        line("random-walk couplings", walk_t, walk_ranges),
        line("slope −1", t, ranges[-1] * np.exp(t[-1] - t), reference=True),
    )
    title = "Equal ω: phases meet at the rate K λ₂"
    return Panel(title, "K λ₂ t (dimensionless)", "range of the phases (rad)", lines, y_scale="log")


STATEMENT = Statement(
    "phase-synchronisation",
    "Proposition 4.10",
    "With equal ω, phase synchronisation is the only exponentially stable state; U never increases; the time scales "
    "with the inverse of the smallest non-zero eigenvalue of the Laplacian.",
    "The rate K λ₂ holds near synchrony, with the Laplacian of the couplings themselves (I − A for right-stochastic "
    "A). U never increases for symmetric couplings; for attention it can, since the flow is then not the gradient "
    "flow of U. Other attractors exist: a twisted ring of 5 or more nodes is stable. LaSalle's principle gives "
    "convergence to equilibria but no rate. For any right-stochastic A on a strongly connected graph, phases that "
    "start within a half circle do synchronise.",
    run,
)
