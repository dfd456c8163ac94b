"""The supplement's generalisation bound rests on how fast states can grow."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from kuramotognn.fields import KuramotoDynamics
from kuramotognn.graph import Graph
from kuramotognn.kernels import row_normalise
from kuramotognn.panels import Line, Panel
from kuramotognn.solve import Solution, Solver, integrate
from kuramotognn.theory.base import Check, Finding, Statement, normal, random_graph, undirected, uniform

TIMES = tuple(0.25 * k for k in range(1, 41))
CHANNELS = 64


def run() -> Finding:
    """States against the bound, with one channel and with many."""
    trials = [_trial(seed) for seed in range(12)]
    pair, start = _pair()
    norm = [float(x[0].norm()) for x in pair.ys]
    printed = [(1 + t) * start + 2 * t for t in pair.ts]
    sharp = [(1 + t) * start + math.sqrt(CHANNELS) * t for t in pair.ts]
    checks = (
        Check("one channel: |x_i(T)| / ((1+T)|x_i(0)| + nTK): largest ratio", max(t[0] for t in trials), "≤", 1.0),
        Check("… without n, since rows of A sum to one: largest ratio", max(t[1] for t in trials), "≤", 1.0),
        Check(
            "d channels: ‖x_i(T)‖₂ / ((1+T)‖x_i(0)‖₂ + √d TK): largest ratio",
            max(*(t[2] for t in trials), _largest(norm, sharp)),
            "≤",
            1.0,
        ),
        Check(
            "d channels, as printed with nTK: largest ratio, 2 nodes, 64 channels",
            _largest(norm, printed),
            "≤",
            1.0,
            as_written=True,
        ),
        Check(
            "as printed, (1+T)x_i(0) without modulus: |x_i(T)| − (1+T)x_i(0) − nTK, x_i(0) = −1, T = K = 0.1, n = 2",
            _negative_start(),
            "≤",
            0.0,
            as_written=True,
        ),
    )
    lines = (
        Line("‖x₁(T)‖₂", pair.ts, tuple(norm)),
        Line("as printed: (1+T)‖x(0)‖ + nTK", pair.ts, tuple(printed)),
        Line("√d in place of n", pair.ts, tuple(sharp)),
    )
    panel = Panel(f"Growth of a state: 2 nodes, {CHANNELS} channels, K = 1", "time T", "‖x₁(T)‖₂ (rad)", lines)
    return Finding(checks, (panel, _scalar_panel()))


def _flow(graph: Graph, a: Tensor, x0: Tensor, coupling: float, times: tuple[float, ...]) -> Solution:
    dynamics = KuramotoDynamics(graph.pattern, a, x0, coupling)
    return integrate(dynamics, x0, times[-1], Solver("rk4", step_size=0.05), save_at=times)


def _trial(seed: int) -> tuple[float, float, float]:
    """Largest ratios of a random network: the bound with n, without, and that of several channels."""
    coupling, width = 0.25 * 2 ** (seed % 5), 4
    graph = random_graph(10, 8, seed)
    a = row_normalise(graph.pattern, uniform(graph.num_edges, low=0.1, seed=seed))
    x0 = (0.2 + seed / 4) * normal(10, width, seed=seed)
    flow = _flow(graph, a, x0, coupling, TIMES[3::4])
    t = torch.tensor(flow.ts, dtype=torch.float64)[:, None, None]
    size, reach = (1 + t) * x0.abs(), t * coupling
    length = (1 + t[..., 0]) * x0.norm(dim=-1) + math.sqrt(width) * reach[..., 0]
    return (
        float((flow.ys.abs() / (size + 10 * reach)).max()),
        float((flow.ys.abs() / (size + reach)).max()),
        float((flow.ys.norm(dim=-1) / length).max()),
    )


def _pair() -> tuple[Solution, float]:
    """Two nodes, the first at rest at zero, the second ahead in every channel; and the first's length at time 0."""
    graph = undirected(torch.tensor([[0], [1]]), 2)
    x0 = torch.zeros(2, CHANNELS, dtype=torch.float64)
    x0[1] = 0.5
    return _flow(graph, graph.weight, x0, 1.0, TIMES), float(x0[0].norm())


def _negative_start() -> float:
    graph = undirected(torch.tensor([[0], [1]]), 2)
    x0 = -torch.ones(2, 1, dtype=torch.float64)
    x = _flow(graph, graph.weight, x0, 0.1, (0.1,)).final
    return float(x[0].abs() - 1.1 * x0[0] - 2 * 0.1 * 0.1)


def _scalar_panel() -> Panel:
    graph = random_graph(10, 8, seed=1)
    x0 = normal(10, 1, seed=1)
    flow = _flow(graph, row_normalise(graph.pattern, graph.weight), x0, 2.0, TIMES)
    node = int(x0.abs().argmin())
    start = float(x0[node].abs())
    lines = (
        Line("|x_i(T)|", flow.ts, tuple(float(x[node].abs()) for x in flow.ys)),
        Line("(1+T)|x(0)| + nTK", flow.ts, tuple((1 + t) * start + 20 * t for t in flow.ts)),
        Line("(1+T)|x(0)| + TK", flow.ts, tuple((1 + t) * start + 2 * t for t in flow.ts)),
    )
    return Panel("One channel, 10 nodes, K = 2", "time T", "|x_i(T)| (rad)", lines, y_scale="log")


def _largest(values: list[float], bounds: list[float]) -> float:
    return max(value / bound for value, bound in zip(values, bounds, strict=True))


STATEMENT = Statement(
    "growth",
    "Supplement, “On the generalization performance of KuramotoGNN”",
    "‖x_i(T)‖ ≤ (1+T) x_i(0) + nTK, hence the Rademacher complexity tends to 0 as the sample m grows.",
    "With |x_i(0)| and one channel it holds, and n may go: rows of A sum to one. With d channels and the "
    "Euclidean norm it needs √d in place of n, and fails as printed where √d > n. The n matters for the "
    "conclusion: nTK/√m does not vanish, since a graph has n ≥ m nodes; √d TK/√m does.",
    run,
)
