"""The supplement's generalisation bound rests on a bound on the growth of states; this measures the growth."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from kuramotognn.graph import Graph
from kuramotognn.kernels import row_normalise
from kuramotognn.plots.panels import Panel
from kuramotognn.solve import Solution, integrate
from kuramotognn.solver import Solver
from kuramotognn.theory.statement import Check, Finding, Statement, line
from kuramotognn.theory.systems import kuramoto, normal, pair_graph, random_graph, uniform

TIMES = tuple(0.25 * k for k in range(1, 41))
CHANNELS = 64


def run() -> Finding:
    """Compare states with the bound, for one channel and for many."""
    with_n, without_n, channels = (max(ratios) for ratios in zip(*(_trial(seed) for seed in range(12)), strict=True))
    pair, start = _pair()
    t, norm = np.asarray(pair.ts), pair.ys[:, 0].norm(dim=-1).numpy()
    printed, sharp = (1 + t) * start + 2 * t, (1 + t) * start + math.sqrt(CHANNELS) * t
    channels = max(channels, float((norm / sharp).max()))
    checks = (
        Check("one channel: |x_i(T)| / ((1+T)|x_i(0)| + nTK): largest ratio", with_n, "≤", 1.0),
        Check("… without n, since rows of A sum to one: largest ratio", without_n, "≤", 1.0),
        Check("d channels: ‖x_i(T)‖₂ / ((1+T)‖x_i(0)‖₂ + √d TK): largest ratio", channels, "≤", 1.0),
        Check(
            "d channels, as printed with nTK: largest ratio, 2 nodes, 64 channels",
            float((norm / printed).max()),
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
        line("‖x₁(T)‖₂", t, norm),
        line("as printed: (1+T)‖x(0)‖ + nTK", t, printed),
        line("√d in place of n", t, sharp),
    )
    panel = Panel(f"Growth of a state: 2 nodes, {CHANNELS} channels, K = 1", "time T", "‖x₁(T)‖₂ (rad)", lines)
    return Finding(checks, (panel, _scalar_panel()))


def _flow(graph: Graph, a: Tensor, x0: Tensor, strength: float, times: tuple[float, ...]) -> Solution:
    return integrate(kuramoto(graph, a, x0, strength), x0, times[-1], Solver("rk4", step_size=0.05), save_at=times)


def _trial(seed: int) -> tuple[float, float, float]:
    """Largest ratios for a random graph: to the bound with n, without n, and for several channels."""
    strength, width = 0.25 * 2 ** (seed % 5), 4
    graph = random_graph(10, 8, seed)
    a = row_normalise(graph.pattern, uniform(graph.num_edges, low=0.1, seed=seed))
    x0 = (0.2 + seed / 4) * normal(10, width, seed=seed)
    flow = _flow(graph, a, x0, strength, TIMES[3::4])
    t = torch.tensor(flow.ts, dtype=torch.float64)[:, None, None]
    size, reach = (1 + t) * x0.abs(), t * strength
    length = (1 + t[..., 0]) * x0.norm(dim=-1) + math.sqrt(width) * reach[..., 0]
    return (
        float((flow.ys.abs() / (size + 10 * reach)).max()),
        float((flow.ys.abs() / (size + reach)).max()),
        float((flow.ys.norm(dim=-1) / length).max()),
    )


def _pair() -> tuple[Solution, float]:
    """Two nodes, the first at zero, the second at 0.5 in every channel; and the norm of the first at time 0."""
    x0 = torch.zeros(2, CHANNELS, dtype=torch.float64)
    x0[1] = 0.5
    return _flow(pair_graph(), pair_graph().weight, x0, 1.0, TIMES), float(x0[0].norm())


def _negative_start() -> float:
    x0 = -torch.ones(2, 1, dtype=torch.float64)
    x = _flow(pair_graph(), pair_graph().weight, x0, 0.1, (0.1,)).final
    return float(x[0].abs() - 1.1 * x0[0] - 2 * 0.1 * 0.1)


def _scalar_panel() -> Panel:
    graph = random_graph(10, 8, seed=1)
    x0 = normal(10, 1, seed=1)
    flow = _flow(graph, row_normalise(graph.pattern, graph.weight), x0, 2.0, TIMES)
    t, node = np.asarray(flow.ts), int(x0.abs().argmin())
    start = float(x0[node].abs())
    lines = (
        line("|x_i(T)|", t, flow.ys[:, node].abs()),
        line("(1+T)|x(0)| + nTK", t, (1 + t) * start + 20 * t),
        line("(1+T)|x(0)| + TK", t, (1 + t) * start + 2 * t),
    )
    return Panel("One channel, 10 nodes, K = 2", "time T", "|x_i(T)| (rad)", lines, y_scale="log")


STATEMENT = Statement(
    "growth",
    "Supplement, “On the generalization performance of KuramotoGNN”",
    "‖x_i(T)‖ ≤ (1+T) x_i(0) + nTK, hence the Rademacher complexity tends to 0 as the sample m grows.",
    "Holds with |x_i(0)| and one channel, even without n, since rows of A sum to one. With d channels and the "
    "Euclidean norm it needs √d in place of n, and fails as printed where √d > n. The n matters for the conclusion: "
    "nTK/√m does not vanish, since a graph has n ≥ m nodes; √d TK/√m does.",
    run,
)
