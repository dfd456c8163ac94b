"""Proposition 4.10: equal frequencies synchronise in phase, exponentially; over-smoothing is that synchronisation."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from kuramotognn.diagnostics import order_parameter, phase_energy
from kuramotognn.fields import KuramotoDynamics
from kuramotognn.graph import Graph
from kuramotognn.kernels import row_normalise
from kuramotognn.panels import Line, Panel
from kuramotognn.solve import Solution, Solver, integrate
from kuramotognn.theory.base import (
    Check,
    Finding,
    Statement,
    barbell_graph,
    dense,
    random_graph,
    ring_graph,
    undirected,
    uniform,
)

COUPLING = 1.5
FOLLOWERS = 60


def run() -> Finding:
    """Rates against eigenvalues, the energy along trajectories, and where both fail."""
    barbell, mixed = barbell_graph(5), random_graph(20, 20, seed=3)
    symmetric, walk = _rate(barbell, barbell.weight), _rate(barbell, row_normalise(barbell.pattern, barbell.weight))
    energies = _energies(mixed)
    ring, star = _perturbed_ring(), _star()
    attention = _attention(mixed)
    checks = (
        Check("two oscillators follow tan(Δ/2) = tan(Δ₀/2) e^{−2Kt}: largest error", _two_oscillators(), "≤", 1e-6),
        Check("rate is K λ₂ of L = D − W (symmetric couplings): relative error", symmetric.error, "≤", 1e-6),
        Check("rate is K λ₂ of I − A (random-walk couplings): relative error", walk.error, "≤", 1e-6),
        Check("U never increases (symmetric couplings): largest step / U(0)", _rise(energies), "≤", 1e-12),
        Check(
            "right-stochastic A, phases within a half circle: their range never grows: largest step",
            _rise([attention]),
            "≤",
            1e-12,
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
            "U never increases for right-stochastic A: largest step / U(0), a star whose hub attends to one leaf",
            _rise([star]),
            "≤",
            1e-12,
            as_written=True,
        ),
    )
    return Finding(checks, (_rate_panel(symmetric, walk), _energy_panel(energies, star, ring)))


class _Rate:
    """The decay of the phases' range beside the eigenvalue that should govern it."""

    def __init__(self, eigenvalue: float, solution: Solution) -> None:
        self.eigenvalue, self.ts = eigenvalue, np.asarray(solution.ts)
        self.ranges = np.asarray([_range(x) for x in solution.ys])
        late = (self.ranges < 1e-4) & (self.ranges > 1e-8)
        t, y = self.ts[late], np.log(self.ranges[late])
        self.rate = -float((y[-1] - y[0]) / (t[-1] - t[0]))

    @property
    def error(self) -> float:
        return abs(self.rate / (COUPLING * self.eigenvalue) - 1)


def _rate(graph: Graph, a: Tensor) -> _Rate:
    adjacency = dense(graph, a)
    laplacian = torch.diag(adjacency.sum(dim=1)) - adjacency
    eigenvalue = float(np.sort(np.linalg.eigvals(laplacian.numpy()).real)[1])
    time = 20.0 / (COUPLING * eigenvalue)
    x0 = uniform(graph.num_nodes, 1, low=-1.4, high=1.4, seed=2)
    step = 0.5 / float(adjacency.sum(dim=1).max()) / COUPLING
    times = [time * k / 200 for k in range(201)]
    return _Rate(eigenvalue, _flow(graph, a, x0, time, step, times))


def _flow(graph: Graph, a: Tensor, x0: Tensor, time: float, step: float, times: list[float]) -> Solution:
    dynamics = KuramotoDynamics(graph.pattern, a, torch.zeros_like(x0), COUPLING)
    return integrate(dynamics, x0, time, Solver("rk4", step_size=step, max_evaluations=100_000), save_at=times)


def _two_oscillators() -> float:
    graph = undirected(torch.tensor([[0], [1]]), 2)
    x0 = torch.tensor([[1.2], [-1.3]], dtype=torch.float64)
    times = [0.05 * k for k in range(61)]
    states = _flow(graph, graph.weight, x0, 3.0, 0.01, times).ys
    measured = (states[:, 0, 0] - states[:, 1, 0]).numpy()
    exact = 2 * np.arctan(math.tan(1.25) * np.exp(-2 * COUPLING * np.asarray(times)))
    return float(np.abs(measured - exact).max())


def _energies(graph: Graph) -> list[list[float]]:
    times = [0.05 * k for k in range(161)]
    starts = [uniform(graph.num_nodes, 1, high=2 * math.pi, seed=seed) for seed in range(6)]
    flows = [_flow(graph, graph.weight, x0, 8.0, 0.025, times) for x0 in starts]
    return [[phase_energy(x, graph) for x in flow.ys] for flow in flows]


def _star() -> list[float]:
    """U along the flow on a star whose hub has nearly all its attention on one leaf; followers are pulled apart."""
    hub, leaves = 0, torch.arange(1, FOLLOWERS + 2)
    graph = undirected(torch.stack([torch.zeros_like(leaves), leaves]), FOLLOWERS + 2)
    favourite = FOLLOWERS + 1
    scores = torch.where((graph.pattern.row == hub) & (graph.pattern.col == favourite), 1e4, 1.0).double()
    a = row_normalise(graph.pattern, scores)
    x0 = torch.full((FOLLOWERS + 2, 1), -0.5, dtype=torch.float64)
    x0[hub], x0[favourite] = 0.0, 1.0
    weighted = Graph(graph.pattern, a)
    times = [0.05 * k for k in range(161)]
    return [phase_energy(x, weighted) for x in _flow(graph, a, x0, 8.0, 0.025, times).ys]


def _attention(graph: Graph) -> list[float]:
    """Range of the phases under couplings like a trained attention's: right-stochastic, far from symmetric."""
    a = row_normalise(graph.pattern, torch.exp(uniform(graph.num_edges, low=-2.0, high=2.0, seed=5)))
    x0 = uniform(graph.num_nodes, 1, low=-1.5, high=1.5, seed=6)
    times = [1.0 * k for k in range(251)]
    return [_range(x) for x in _flow(graph, a, x0, 250.0, 0.1, times).ys]


def _perturbed_ring() -> Solution:
    graph = ring_graph(10)
    x0 = 2 * math.pi * torch.arange(10, dtype=torch.float64)[:, None] / 10 + uniform(10, 1, high=0.3, seed=7)
    times = [*(0.05 * k for k in range(161)), 200.0]
    return _flow(graph, graph.weight, x0, 200.0, 0.05, times)


def _range(x: Tensor) -> float:
    return float(x.max() - x.min())


def _rise(curves: list[list[float]]) -> float:
    return max(float(np.diff(curve).max()) / curve[0] for curve in curves)


def _rate_panel(symmetric: _Rate, walk: _Rate) -> Panel:
    def line(label: str, rate: _Rate) -> tuple[Line, Line]:
        shown = rate.ranges > 1e-9
        t = rate.ts[shown] * rate.eigenvalue * COUPLING
        last, end = rate.ranges[shown][-1], t[-1]
        return (
            Line(label, tuple(t.tolist()), tuple(rate.ranges[shown].tolist())),
            Line("slope −1", tuple(t.tolist()), tuple((last * np.exp(end - t)).tolist()), reference=True),
        )

    first, reference = line("symmetric couplings", symmetric)
    second, _ = line("random-walk couplings", walk)
    title = "Equal ω: phases meet at the rate K λ₂"
    return Panel(
        title, "K λ₂ t (dimensionless)", "range of the phases (rad)", (first, second, reference), y_scale="log"
    )


def _energy_panel(energies: list[list[float]], star: list[float], ring: Solution) -> Panel:
    times = tuple(0.05 * k for k in range(161))
    graph = ring_graph(10)
    twisted = [phase_energy(x, graph) for x in ring.ys[:-1]]
    lines = (
        Line("random starts, symmetric: falls", times, tuple(u / energies[0][0] for u in energies[0])),
        Line("twisted ring, symmetric: stuck above 0", times, tuple(u / twisted[0] for u in twisted)),
        Line("star, right-stochastic: rises", times, tuple(u / star[0] for u in star)),
    )
    return Panel("The energy U, and where it does not fall to zero", "time t", "U(t) / U(0)", lines)


STATEMENT = Statement(
    "phase-synchronisation",
    "Proposition 4.10",
    "With equal ω, phase synchronisation is the only exponentially stable state; U never increases; the time scales "
    "with the inverse of the smallest non-zero eigenvalue of the Laplacian.",
    "Rate K λ₂ holds near synchrony, with the Laplacian of the couplings themselves (I − A for right-stochastic "
    "A). U never increases for symmetric couplings; for attention it can, since U's gradient is then not the "
    "flow. Other attractors exist: a twisted ring of 5 or more nodes is stable. LaSalle's principle gives "
    "convergence to equilibria but no rate. For any right-stochastic A on a strongly connected graph, phases that "
    "start within a half circle do meet.",
    run,
)
