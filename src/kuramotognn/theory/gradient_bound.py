"""Proposition 4.3: a bound on the gradient of the loss for any number of layers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from kuramotognn.plots.panels import Panel
from kuramotognn.solve import integrate
from kuramotognn.solver import Solver
from kuramotognn.theory.statement import Check, Finding, Statement, line
from kuramotognn.theory.systems import complete_graph, kuramoto, normal

STEP = 0.01
DEPTHS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048)
NODES, FEATURES = 16, 4


@dataclass(frozen=True, eq=False)
class Problem:
    """Features, weights and targets of the proposition: all-to-all coupling, one channel, x(0) = V W."""

    v: Tensor
    w: Tensor
    target: Tensor

    def states(self, w: Tensor, depths: tuple[int, ...]) -> Tensor:
        """The states after each number of Euler steps."""
        graph, x0 = complete_graph(self.v.size(0)), self.v @ w
        solver, times = Solver("euler", steps=depths[-1]), [depth * STEP for depth in depths]
        return integrate(kuramoto(graph, graph.weight, x0), x0, times[-1], solver, save_at=times).ys

    def gradient(self, depth: int) -> float:
        """The largest entry of ∂J/∂W after ``depth`` Euler steps."""
        w = self.w.clone().requires_grad_()
        loss = (self.states(w, (depth,))[-1] - self.target).square().sum() / (2 * self.v.size(0))
        (gradient,) = torch.autograd.grad(loss, w)
        return float(gradient.abs().max())

    def largest_range(self) -> float:
        """The largest range of the phases over all depths."""
        states = self.states(self.w, tuple(range(1, DEPTHS[-1] + 1, 8)))
        return float((states.amax(dim=1) - states.amin(dim=1)).max())

    @property
    def max_start(self) -> float:
        """max |x(0)|."""
        return float((self.v @ self.w).abs().max())

    @property
    def max_target(self) -> float:
        """max |x̂|."""
        return float(self.target.abs().max())

    @property
    def column_sum(self) -> float:
        """The largest sum of |V| over nodes, which the chain rule gives for a loss that is a mean over nodes."""
        return float(self.v.abs().sum(dim=0).max())


def printed_bound(problem: Problem, depth: int, norm: float) -> float:
    """The bound as printed, with ``norm`` for ‖V‖."""
    n, alpha = problem.v.size(0), depth * STEP
    beta = 1 + STEP / n
    return (alpha * (problem.max_start + 1) + problem.max_target) * (beta + alpha) * beta * norm / n


def corrected_bound(problem: Problem, depth: int) -> float:
    """Holds while all phases stay within a quarter circle: steps are then averages, and paths add up to 1 + α."""
    return _residual(problem, depth) * (1 + depth * STEP) * problem.column_sum / problem.v.size(0)


def general_bound(problem: Problem, depth: int) -> float:
    """Holds for any phases: the Jacobian of a step has norm at most 1 + 2Δt."""
    growth = (3 * math.exp(2 * depth * STEP) - 1) / 2
    return _residual(problem, depth) * growth * problem.column_sum / problem.v.size(0)


def run() -> Finding:
    """Compare gradients of the proposition's network with the bounds."""
    wide = Problem(normal(NODES, FEATURES, seed=0), normal(FEATURES, 1, seed=1), normal(NODES, 1, seed=2))
    narrow = Problem(wide.v, 0.1 * wide.w, wide.target)
    # Equal features and targets of the opposite sign: nothing cancels.
    ones = torch.ones(NODES, 1, dtype=torch.float64)
    aligned = Problem(ones, ones[:1], -ones)
    printed, printed_sum, corrected = _ratios(
        aligned,
        lambda p, m: printed_bound(p, m, float(p.v.abs().max())),
        lambda p, m: printed_bound(p, m, p.column_sum),
        corrected_bound,
    )
    (corrected_random,), (general,) = _ratios(narrow, corrected_bound), _ratios(wide, general_bound)
    late = max(ratio for depth, ratio in zip(DEPTHS, printed_sum, strict=True) if depth * STEP >= 1)
    checks = (
        Check(
            "corrected: (1/n)[(1+α) max|x⁰| + α + max|x̂|](1+α)‖V‖₁, phases in a quarter circle: largest ratio",
            max(*corrected, *corrected_random),
            "≤",
            1.0,
        ),
        Check("… whose phases stay in a quarter circle: largest range (rad)", narrow.largest_range(), "≤", math.pi / 2),
        Check("general: (3e^{2α} − 1)/2 in place of 1 + α, any phases: largest ratio", max(general), "≤", 1.0),
        Check("printed bound, ‖V‖∞ = max |V|, equal features: largest ratio", max(printed), "≤", 1.0, as_written=True),
        Check("printed bound, ‖V‖ as column sum, M = 1: ratio", printed_sum[0], "≤", 1.0, as_written=True),
        Check("… which holds for α = MΔt ≥ max|x⁰| = 1: largest ratio", late, "≤", 1.0),
    )
    lines = (
        line("printed bound, ‖V‖ = max |V|", DEPTHS, printed),
        line("printed bound, ‖V‖ = column sum", DEPTHS, printed_sum),
        line("corrected bound", DEPTHS, corrected),
        line("corrected bound, random features", DEPTHS, corrected_random),
    )
    wide_line = line("general bound, wide phases", DEPTHS, general)
    one = line("gradient = bound", (DEPTHS[0], DEPTHS[-1]), (1.0, 1.0), reference=True)
    title, labels = f"Gradient over bound, n = {NODES}, Δt = {STEP:g}", ("layers M", "‖∂J/∂W‖∞ / bound")
    near = Panel(title, *labels, (*lines, one), "log", "log")
    wide_panel = Panel("Any phases: the bound grows like e^{2α}", *labels, (wide_line, one), "log", "log")
    return Finding(checks, (near, wide_panel))


def _residual(problem: Problem, depth: int) -> float:
    alpha = depth * STEP
    return (1 + alpha) * problem.max_start + alpha + problem.max_target


def _ratios(problem: Problem, *bounds: Callable[[Problem, int], float]) -> list[list[float]]:
    """The gradient divided by each bound, at all depths."""
    gradients = {depth: problem.gradient(depth) for depth in DEPTHS}
    return [[gradient / bound(problem, depth) for depth, gradient in gradients.items()] for bound in bounds]


STATEMENT = Statement(
    "gradient-bound",
    "Proposition 4.3",
    "‖∂J/∂W‖∞ ≤ (1/n)[α(max|x⁰|+1) + max|x̂|](β+α)β‖V‖∞ with α = MΔt, β = 1 + Δt/n, for every number of layers M.",
    "Fails as printed. With ‖·‖∞ the largest entry, the factor 1/n is lost in the sum over nodes, and equal features "
    "exceed the bound by about n. With column sums it still fails for few layers, since |x^M| ≤ α(|x⁰|+1) omits x⁰. "
    "The proof also omits that x⁰ enters every layer (as ω), uses ‖B‖∞ = 1/n instead of (n−1)/n, and (1+c)^M ≤ 1+2Mc "
    "for small Mc only. A bound of the same form holds while phases stay within a quarter circle; in general only one "
    "that grows like e^{2α}. All are bounded in M at fixed T = MΔt, none at fixed Δt.",
    run,
)
