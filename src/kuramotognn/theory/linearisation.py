"""Proposition 4.1: graph neural diffusion (GRAND) is the Kuramoto model, linearised."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from kuramotognn.fields import DiffusionDynamics, Dynamics, KuramotoDynamics, RandomWalk
from kuramotognn.graph import Graph
from kuramotognn.kernels import CoupledSystem
from kuramotognn.panels import Line, Panel
from kuramotognn.solve import Solver, integrate
from kuramotognn.theory.base import (
    Check,
    Finding,
    Statement,
    dense,
    log_space,
    random_graph,
    ring_graph,
    slope,
    uniform,
)

TIME = 4.0


def run() -> Finding:
    """Compare the two flows as the initial phases shrink, and where they do not."""
    graph = random_graph(24, 30, seed=0)
    x0 = uniform(24, 1, low=-1.0, high=1.0, seed=1)
    sizes = log_space(1e-3, 3.0, 15)
    plain = [_difference(graph, size * x0, torch.zeros_like(x0)) for size in sizes]
    driven = [_difference(graph, size * x0, size * x0) for size in sizes]
    small = sum(size <= 0.1 for size in sizes)
    twisted = 2 * math.pi * torch.arange(12, dtype=torch.float64)[:, None] / 12
    checks = (
        Check("Jacobian at equal phases is A − I: largest difference", _jacobian_error(graph), "≤", 1e-12),
        Check(
            "relative difference of the flows shrinks with the square of the phases: |slope − 2|",
            abs(slope(sizes[:small], plain[:small]) - 2),
            "≤",
            0.02,
        ),
        Check(
            "KuramotoGNN (ω = x(0)) is so to GRAND with source x(0): |slope − 2|",
            abs(slope(sizes[:small], driven[:small]) - 2),
            "≤",
            0.02,
        ),
        Check(
            "the flows agree for any phases: relative difference from the twisted state of a ring of 12",
            _difference(ring_graph(12), twisted - twisted.mean(), torch.zeros_like(twisted), time=40.0),
            "≤",
            0.1,
            as_written=True,
        ),
    )
    lines = (
        Line("equal ω against GRAND", tuple(sizes), tuple(plain)),
        Line("ω = x(0) against GRAND with source", tuple(sizes), tuple(driven)),
        Line("slope 2", tuple(sizes), tuple(plain[0] * (size / sizes[0]) ** 2 for size in sizes), reference=True),
    )
    title = f"GRAND is the linearised Kuramoto model (T = {TIME:g})"
    panel = Panel(title, "largest initial phase (rad)", "relative difference of x(T)", lines, "log", "log")
    return Finding(checks, (panel,))


def _jacobian_error(graph: Graph) -> float:
    x = torch.full((graph.num_nodes, 1), 0.7, dtype=torch.float64)
    a = RandomWalk()(x, graph)
    kuramoto = KuramotoDynamics(graph.pattern, a, torch.zeros_like(x), 1.0)
    jacobian = torch.autograd.functional.jacobian(lambda phases: kuramoto(0.0, phases), x).squeeze()  # type: ignore[no-untyped-call]
    identity = torch.eye(graph.num_nodes, dtype=torch.float64)
    return float((jacobian - (dense(graph, a) - identity)).abs().max())


def _difference(graph: Graph, x0: Tensor, omega: Tensor, time: float = TIME) -> float:
    """‖Kuramoto − GRAND‖ / ‖GRAND's x(0)‖ at ``time``."""
    a = RandomWalk()(x0, graph)
    kuramoto = KuramotoDynamics(graph.pattern, a, omega, 1.0)
    grand = DiffusionDynamics(CoupledSystem(graph.pattern, a, omega, 1.0, linear=True))
    return float((_end(kuramoto, x0, time) - _end(grand, x0, time)).norm() / x0.norm())


def _end(dynamics: Dynamics, x0: Tensor, time: float) -> Tensor:
    return integrate(dynamics, x0, time, Solver("rk4", step_size=0.1)).final


STATEMENT = Statement(
    "linearisation",
    "Proposition 4.1",
    "Graph Neural Diffusion is the linearised dynamics of the Kuramoto model.",
    "Holds for equal ω, K = 1 and a right-stochastic A, linearised at equal phases: sine is odd, so the flows "
    "differ by the square of the phases, relatively. It is local: a twisted ring stands still under Kuramoto and "
    "melts under GRAND. With ω = x(0), as in KuramotoGNN, the linearisation is GRAND with source x(0).",
    run,
)
