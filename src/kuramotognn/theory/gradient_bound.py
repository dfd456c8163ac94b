"""Proposition 4.3: a bound on the gradient of the loss for any number of layers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from kuramotognn.fields import KuramotoDynamics
from kuramotognn.panels import Line, Panel
from kuramotognn.solve import Solver, integrate
from kuramotognn.theory.base import Check, Finding, Statement, complete_graph, normal

STEP = 0.01
DEPTHS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048)
NODES, FEATURES = 16, 4


@dataclass(frozen=True, eq=False)
class Problem:
    """Features, weights and targets of the proposition: fully connected, one channel, x(0) = V W."""

    v: Tensor
    w: Tensor
    target: Tensor

    def states(self, w: Tensor, depths: tuple[int, ...]) -> Tensor:
        """The states after each number of Euler steps."""
        graph = complete_graph(self.v.size(0))
        x0 = self.v @ w
        dynamics = KuramotoDynamics(graph.pattern, graph.weight, x0, 1.0)
        solver = Solver("euler", steps=depths[-1])
        return integrate(dynamics, x0, depths[-1] * STEP, solver, save_at=[depth * STEP for depth in depths]).ys

    def gradient(self, depth: int) -> float:
        """The largest entry of ∂J/∂W after ``depth`` Euler steps."""
        w = self.w.clone().requires_grad_()
        loss = (self.states(w, (depth,))[-1] - self.target).square().sum() / (2 * self.v.size(0))
        (gradient,) = torch.autograd.grad(loss, w)
        return float(gradient.abs().max())

    def largest_range(self) -> float:
        """How far apart phases ever are, over all depths."""
        states = self.states(self.w, tuple(range(1, DEPTHS[-1] + 1, 8)))
        return float((states.amax(dim=1) - states.amin(dim=1)).max())

    @property
    def start(self) -> float:
        """max |x(0)|."""
        return float((self.v @ self.w).abs().max())

    @property
    def goal(self) -> float:
        """max |x̂|."""
        return float(self.target.abs().max())

    @property
    def column_sum(self) -> float:
        """The largest sum of |V| over nodes: what the chain rule gives when the loss is a mean over nodes."""
        return float(self.v.abs().sum(dim=0).max())


def literal(problem: Problem, depth: int, norm: float) -> float:
    """The bound as printed, with ``norm`` for ‖V‖."""
    n, alpha = problem.v.size(0), depth * STEP
    beta = 1 + STEP / n
    return (alpha * (problem.start + 1) + problem.goal) * (beta + alpha) * beta * norm / n


def mended(problem: Problem, depth: int) -> float:
    """What holds while all phases stay within a quarter circle: steps are then averages, and paths add up to 1 + α."""
    alpha = depth * STEP
    return _residual(problem, alpha) * (1 + alpha) * problem.column_sum / problem.v.size(0)


def general(problem: Problem, depth: int) -> float:
    """What holds for any phases: a step's Jacobian has norm at most 1 + 2Δt."""
    alpha = depth * STEP
    return _residual(problem, alpha) * (3 * math.exp(2 * alpha) - 1) / 2 * problem.column_sum / problem.v.size(0)


def run() -> Finding:
    """Gradients of the proposition's network beside the bounds."""
    wide = Problem(normal(NODES, FEATURES, seed=0), normal(FEATURES, 1, seed=1), normal(NODES, 1, seed=2))
    narrow = Problem(wide.v, 0.1 * wide.w, wide.target)
    # Equal features and targets on the other side: nothing cancels.
    aligned = Problem(
        torch.ones(NODES, 1, dtype=torch.float64),
        torch.ones(1, 1, dtype=torch.float64),
        -torch.ones(NODES, 1, dtype=torch.float64),
    )
    over_aligned, over_narrow, over_wide = _Ratios(aligned), _Ratios(narrow), _Ratios(wide)
    ratios = {
        "printed bound, ‖V‖ = max |V|": over_aligned(lambda p, m: literal(p, m, float(p.v.abs().max()))),
        "printed bound, ‖V‖ = column sum": over_aligned(lambda p, m: literal(p, m, p.column_sum)),
        "mended bound": over_aligned(mended),
        "mended bound, random features": over_narrow(mended),
        "general bound, wide phases": over_wide(general),
    }
    printed, printed_sum, *sound = ratios.values()
    checks = (
        Check(
            "mended: (1/n)[(1+α) max|x⁰| + α + max|x̂|](1+α)‖V‖₁, phases in a quarter circle, M = 1 … 2048: "
            "largest ratio",
            max(max(values) for values in sound[:2]),
            "≤",
            1.0,
        ),
        Check("… whose phases do stay there: largest range (rad)", narrow.largest_range(), "≤", math.pi / 2),
        Check("general: the same with (3e^{2α} − 1)/2 for 1 + α, any phases: largest ratio", max(sound[2]), "≤", 1.0),
        Check("printed bound, ‖V‖∞ = max |V|, equal features: largest ratio", max(printed), "≤", 1.0, as_written=True),
        Check(
            "printed bound, ‖V‖ as column sum, equal features, M = 1: ratio", printed_sum[0], "≤", 1.0, as_written=True
        ),
        Check("… which holds once α = MΔt ≥ max|x⁰| = 1: largest ratio", _late(printed_sum), "≤", 1.0),
    )
    depths = tuple(map(float, DEPTHS))
    *near, far = (Line(name, depths, values) for name, values in ratios.items())
    one = Line("gradient = bound", (depths[0], depths[-1]), (1.0, 1.0), reference=True)
    panels = tuple(
        Panel(title, "layers M", "‖∂J/∂W‖∞ / bound", (*lines, one), "log", "log")
        for title, lines in (
            (f"Gradient over bound, n = {NODES}, Δt = {STEP:g}", near),
            ("Any phases: the bound grows like e^{2α}", [far]),
        )
    )
    return Finding(checks, panels)


def _residual(problem: Problem, alpha: float) -> float:
    return (1 + alpha) * problem.start + alpha + problem.goal


class _Ratios:
    """Gradients at all depths, computed once, over one bound or another."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.gradients = [problem.gradient(depth) for depth in DEPTHS]

    def __call__(self, bound: Callable[[Problem, int], float]) -> tuple[float, ...]:
        pairs = zip(DEPTHS, self.gradients, strict=True)
        return tuple(gradient / bound(self.problem, depth) for depth, gradient in pairs)


def _late(ratios: tuple[float, ...]) -> float:
    return max(ratio for depth, ratio in zip(DEPTHS, ratios, strict=True) if depth * STEP >= 1)


STATEMENT = Statement(
    "gradient-bound",
    "Proposition 4.3",
    "‖∂J/∂W‖∞ ≤ (1/n)[α(max|x⁰|+1) + max|x̂|](β+α)β‖V‖∞ with α = MΔt, β = 1 + Δt/n, for every number of layers M.",
    "Fails as printed: with ‖·‖∞ the largest entry, the 1/n is lost in the sum over nodes, and equal features "
    "exceed it by about n; read as column sums it still fails for few layers, since |x^M| ≤ α(|x⁰|+1) forgets x⁰. "
    "The proof also drops x⁰'s way into every layer (it is ω), takes ‖B‖∞ for 1/n instead of (n−1)/n, and (1+c)^M "
    "≤ 1+2Mc for small Mc only. A bound of the same shape does hold while phases stay within a quarter circle; in "
    "general only one that grows like e^{2α}. All are bounded in M at fixed T = MΔt, none at fixed Δt.",
    run,
)
