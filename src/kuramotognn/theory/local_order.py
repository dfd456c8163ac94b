"""The supplement's local-order form of the coupling: an approximation, and how good."""

from __future__ import annotations

import math

from torch import Tensor

from kuramotognn.graph import Graph
from kuramotognn.kernels import kuramoto_local_order, kuramoto_per_edge, row_normalise
from kuramotognn.panels import Line, Panel
from kuramotognn.theory.base import Check, Finding, Statement, log_space, random_graph, slope, uniform

SPREADS = log_space(0.01, math.pi, 16)


def run() -> Finding:
    """Errors of the local-order form against the phases' spread."""
    graph = random_graph(60, 200, seed=9)
    a = row_normalise(graph.pattern, uniform(graph.num_edges, low=0.2, high=1.0, seed=10))
    # Skewed: an even distribution of neighbours' phases would hide the leading error.
    shape = uniform(60, 1, seed=11) ** 2
    errors = [_error(graph, a, spread * shape) for spread in SPREADS]
    largest = [float(error.abs().max()) for error in errors]
    moments = [_moments(graph, a, spread * shape) for spread in SPREADS]
    bounds = [float((math.sqrt(2) / 6 * absolute).max()) for _, absolute in moments]
    small = sum(spread <= 0.3 for spread in SPREADS)
    third = moments[0][0] / 6
    within = max(
        float((error.abs() - math.sqrt(2) / 6 * absolute).max())
        for error, (_, absolute) in zip(errors, moments, strict=True)
    )
    checks = (
        Check(
            "error is of third order in the spread: |slope − 3|",
            abs(slope(SPREADS[:small], largest[:small]) - 3),
            "≤",
            0.02,
        ),
        Check(
            "its leading term is μ₃/6, the neighbours' third central moment: relative error at spread 0.01",
            float((errors[0] - third).norm() / third.norm()),
            "≤",
            0.01,
        ),
        Check("error ≤ (√2/6) Σ a |x_j − Φ|³ for spreads up to π: largest excess", within, "≤", 1e-15),
        Check(
            "the local-order form equals the sum: largest error at spread π", largest[-1], "≤", 1e-12, as_written=True
        ),
        Check(
            "… it is a function of angles: its change when one phase gains 2π",
            _change_by_a_turn(graph, a, shape),
            "≤",
            1e-9,
            as_written=True,
        ),
        Check("the exact form is: its change", _change_by_a_turn(graph, a, shape, exact=True), "≤", 1e-9),
    )
    lines = (
        Line("largest error", tuple(SPREADS), tuple(largest)),
        Line("bound (√2/6) Σ a |x_j − Φ|³", tuple(SPREADS), tuple(bounds)),
        Line("slope 3", tuple(SPREADS), tuple(largest[0] * (s / SPREADS[0]) ** 3 for s in SPREADS), reference=True),
    )
    title = "Local-order form against the exact sum"
    panel = Panel(title, "spread of the phases (rad)", "error of Σ a sin(x_j − x_i)", lines, "log", "log")
    return Finding(checks, (panel,))


def _error(graph: Graph, a: Tensor, x: Tensor) -> Tensor:
    return kuramoto_local_order(graph.pattern, a, x) - kuramoto_per_edge(graph.pattern, a, x)


def _moments(graph: Graph, a: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """Third central moment of each node's neighbours, and third absolute one."""
    pattern = graph.pattern
    mean = pattern.sum_rows(a[:, None] * pattern.of_col(x))
    cube = (pattern.of_col(x) - pattern.of_row(mean)) ** 3
    return pattern.sum_rows(a[:, None] * cube), pattern.sum_rows(a[:, None] * cube.abs())


def _change_by_a_turn(graph: Graph, a: Tensor, x: Tensor, *, exact: bool = False) -> float:
    turned = x.clone()
    turned[0] += 2 * math.pi
    form = kuramoto_per_edge if exact else kuramoto_local_order
    return float((form(graph.pattern, a, turned) - form(graph.pattern, a, x)).abs().max())


STATEMENT = Statement(
    "local-order",
    "Supplement, “On the efficiency analysis”",
    "Σ_j a_kj sin(θ_j − θ_k) = r_k sin(φ_k − θ_k) with φ_k = Σ_j a_kj θ_j and r_k = |Σ_j a_kj e^{iθ_j}|.",
    "Not an identity: the argument of a mean phasor is not the mean phase. The error is μ₃/6 to leading order, "
    "third order in the phases' spread, at most (√2/6) Σ a |θ_j − φ|³ up to spread π, and of order one beyond; φ "
    "even changes when a phase gains a full turn. The exact sum costs one sparse product, not three: cos x ⊙ (A "
    "sin X) − sin x ⊙ (A cos X).",
    run,
)
