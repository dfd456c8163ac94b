"""Proposition 4.1: graph neural diffusion (GRAND) is the linearised Kuramoto model."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from kuramotognn.fields import Dynamics, RandomWalk
from kuramotognn.graph import Graph
from kuramotognn.plots.panels import Panel
from kuramotognn.solve import integrate
from kuramotognn.solver import Solver
from kuramotognn.theory.statement import Check, Finding, Statement, line, slope
from kuramotognn.theory.systems import dense, kuramoto, random_graph, ring_graph, uniform

TIME = 4.0


def run() -> Finding:
    """Compare the two flows for small and for large initial phases."""
    graph = random_graph(24, 30, seed=0)
    x0 = uniform(24, 1, low=-1.0, high=1.0, seed=1)
    sizes = np.geomspace(1e-3, 3.0, 15)
    equal = [_difference(graph, size * x0, torch.zeros_like(x0)) for size in sizes]
    unequal = [_difference(graph, size * x0, size * x0) for size in sizes]
    small = sum(size <= 0.1 for size in sizes)
    orders = [slope(sizes[:small], errors[:small]) for errors in (equal, unequal)]
    twisted = 2 * math.pi * torch.arange(12, dtype=torch.float64)[:, None] / 12
    ring = _difference(ring_graph(12), twisted - twisted.mean(), torch.zeros_like(twisted), time=40.0)
    checks = (
        Check("Jacobian at equal phases is A − I: largest difference", _jacobian_error(graph), "≤", 1e-12),
        Check("equal ω: relative difference is of order 2 in the phases: |slope − 2|", abs(orders[0] - 2), "≤", 0.02),
        Check("ω = x(0), against GRAND with source x(0): |slope − 2|", abs(orders[1] - 2), "≤", 0.02),
        Check("the flows agree for any phases: relative difference, ring of 12", ring, "≤", 0.1, as_written=True),
    )
    lines = (
        line("equal ω against GRAND", sizes, equal),
        line("ω = x(0) against GRAND with source", sizes, unequal),
        line("slope 2", sizes, equal[0] * (sizes / sizes[0]) ** 2, reference=True),
    )
    title = f"GRAND is the linearised Kuramoto model (T = {TIME:g})"
    panel = Panel(title, "largest initial phase (rad)", "relative difference of x(T)", lines, "log", "log")
    return Finding(checks, (panel,))


def _jacobian_error(graph: Graph) -> float:
    x = torch.full((graph.num_nodes, 1), 0.7, dtype=torch.float64)
    a = RandomWalk()(x, graph)
    dynamics = kuramoto(graph, a, torch.zeros_like(x))
    jacobian = torch.autograd.functional.jacobian(lambda phases: dynamics(0.0, phases), x).squeeze()  # type: ignore[no-untyped-call]
    identity = torch.eye(graph.num_nodes, dtype=torch.float64)
    return float((jacobian - (dense(graph, a) - identity)).abs().max())


def _difference(graph: Graph, x0: Tensor, omega: Tensor, time: float = TIME) -> float:
    """‖Kuramoto − GRAND‖ / ‖x(0)‖ at ``time``."""
    a = RandomWalk()(x0, graph)
    ends = [_end(kuramoto(graph, a, omega, linear=linear), x0, time) for linear in (False, True)]
    return float((ends[0] - ends[1]).norm() / x0.norm())


def _end(dynamics: Dynamics, x0: Tensor, time: float) -> Tensor:
    return integrate(dynamics, x0, time, Solver("rk4", step_size=0.1)).final


STATEMENT = Statement(
    "linearisation",
    "Proposition 4.1",
    "Graph Neural Diffusion is the linearised dynamics of the Kuramoto model.",
    "Holds for equal ω, K = 1 and a right-stochastic A, linearised at equal phases. The sine is odd, so the relative "
    "difference of the flows is of second order in the phases. The statement is local: a twisted ring is a fixed "
    "point of the Kuramoto model and decays under GRAND. With ω = x(0), as in KuramotoGNN, the linearisation is GRAND "
    "with source x(0).",
    run,
)
