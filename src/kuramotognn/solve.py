"""From a right-hand side and an initial state to the state at later times.

Fixed-step Runge–Kutta methods are tableaux over one stepping loop, and their gradients are those of backpropagation
through the steps. Adaptive methods are torchdiffeq's. Two forms of right-hand sides are special: a second-order one may
be stepped by ``imex``, and past states of a delayed one are kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise

import torch
import torchdiffeq
from torch import Tensor, nn

from kuramotognn.checks import check_positive
from kuramotognn.errors import SolverError
from kuramotognn.fields.base import DelayedDynamics, Dynamics, FunctionDynamics, SecondOrderDynamics, Velocity
from kuramotognn.solver import AUTO_MEMORY, DEFAULT_TOLERANCE, IMEX, TABLEAUX, Solver, Tableau
from kuramotognn.typing import Nodes


@dataclass
class EvaluationCounter:
    """Counts evaluations of a right-hand side, also while an adjoint solver computes gradients."""

    count: int = 0


@dataclass(frozen=True, eq=False)
class Solution:
    """What an integration gives.

    Attributes:
        ts: times of the saved states, ascending.
        ys: ``[len(ts), N, d]`` the saved states.
        nfe: evaluations of the right-hand side that the forward integration took.
    """

    ts: tuple[float, ...]
    ys: Tensor
    nfe: int

    @property
    def final(self) -> Nodes:
        """The last saved state."""
        # The gradient of an only state is a view; that of one among several is a tensor of zeros to be filled in.
        return self.ys.squeeze(0) if len(self.ts) == 1 else self.ys[-1]


def integrate(
    dynamics: Dynamics | Velocity,
    x0: Nodes,
    time: float,
    solver: Solver | None = None,
    *,
    save_at: Sequence[float] | None = None,
    counter: EvaluationCounter | None = None,
) -> Solution:
    """Integrate ``dynamics`` from ``x0`` at time 0 to ``time``.

    Args:
        dynamics: the right-hand side: a :class:`~kuramotognn.Dynamics`, or any function ``f(t, x)``.
        x0: ``[N, d]`` state at time 0; ``dynamics.start(x0)`` where more than the nodes' ``x`` evolves.
        time: where to stop, positive.
        solver: how to integrate; Euler steps of 0.5 unless given.
        save_at: ascending times in ``[0, time]`` whose states are returned; only ``time`` unless given. Between the
            steps of a fixed-step method the state is interpolated by a cubic through both ends and their slopes.
        counter: set to 0, then counts the evaluations.

    Raises:
        SolverError: the step underflows, the state stops being finite, or ``max_evaluations`` is reached.
    """
    check_positive("time", time)
    solver = solver or Solver()
    dynamics = _as_dynamics(dynamics, solver)
    ts = (float(time),) if save_at is None else tuple(float(t) for t in save_at)
    check_save_at(ts, time)
    evaluations = _evaluations(dynamics, x0, time, solver)
    if counter is not None:
        counter.count, evaluations.counter = 0, counter
    if x0.numel() == 0:
        return Solution(ts, x0.expand(len(ts), *x0.shape), 0)
    march = _adaptive_steps if solver.adaptive else _fixed_steps
    ys = march(evaluations, x0, ts)
    return Solution(ts, ys, evaluations.count)


def _as_dynamics(dynamics: Dynamics | Velocity, solver: Solver) -> Dynamics:
    if isinstance(dynamics, Dynamics):
        return dynamics
    if isinstance(dynamics, nn.Module):
        return FunctionDynamics(dynamics, tuple(dynamics.parameters()))
    if solver.adjoint:
        raise ValueError("adjoint needs the tensors that f depends on; pass a Dynamics or a module instead")
    return FunctionDynamics(dynamics)


def check_save_at(ts: tuple[float, ...], time: float) -> None:
    """Refuse times that are not ascending or lie outside the integration."""
    ascending = all(a < b for a, b in pairwise(ts))
    if not ts or not ascending or ts[0] < 0 or ts[-1] > time * (1 + 1e-9):
        raise ValueError(f"save_at must be ascending times between 0 and {time}, got {list(ts)}")


class _Evaluations:
    """The right-hand side with a count of its evaluations, and the error messages that name them."""

    def __init__(self, dynamics: Dynamics, solver: Solver, time: float) -> None:
        self.dynamics, self.solver, self.time = dynamics, solver, time
        self.counter, self.t = EvaluationCounter(), 0.0

    @property
    def count(self) -> int:
        """Evaluations so far."""
        return self.counter.count

    def __call__(self, t: float | Tensor, x: Nodes) -> Nodes:
        self.count_one(t)
        return self.velocity(t, x)

    def count_one(self, t: float | Tensor) -> None:
        """Count an evaluation at time ``t``."""
        self.counter.count += 1
        self.t = float(t.detach()) if isinstance(t, Tensor) else t
        if self.count > self.solver.max_evaluations:
            raise self.error(f"needs more than max_evaluations={self.solver.max_evaluations}")

    def velocity(self, t: float | Tensor, x: Nodes) -> Nodes:
        """The right-hand side, uncounted."""
        return self.dynamics(t, x)

    def begin(self, t: float, x: Nodes) -> Nodes:
        """The slope at the beginning of a step."""
        return self(t, x)

    def again(self) -> _Evaluations:
        """The same right-hand side, counted from zero."""
        return _Evaluations(self.dynamics, self.solver, self.time)

    def spend(self, steps: int, evaluations: int, start: float, h: float) -> None:
        """Count the evaluations of steps that are taken at once."""
        affordable = (self.solver.max_evaluations - self.count) // evaluations
        if steps > affordable:
            self.counter.count, self.t = self.solver.max_evaluations + 1, start + affordable * h
            raise self.error(f"needs more than max_evaluations={self.solver.max_evaluations}")
        self.counter.count, self.t = self.count + steps * evaluations, start + steps * h

    def error(self, what: str) -> SolverError:
        solver = self.solver
        if solver.adaptive:
            remedy = (
                "loosen rtol and atol, shorten the time, weaken the coupling, or take a fixed-step method (euler, rk4)"
            )
        else:
            remedy = "take smaller steps, shorten the time, weaken the coupling, or scale the features down"
        if "max_evaluations" in what:
            remedy = "raise max_evaluations, " + remedy.replace("take smaller steps", "take larger steps")
        return SolverError(
            f"{solver.method} {what} at t = {self.t:.6g} of {self.time:g}, evaluation {self.count}; {remedy}"
        )


class _DelayedEvaluations(_Evaluations):
    """A delayed right-hand side and its past: states and slopes at the beginnings of the steps, cubics in between.

    A step no longer than the delay needs known states only. The order of the method is kept where the delay is a
    whole number of steps; elsewhere the kinks of a delayed solution, at multiples of the delay, fall inside steps.
    """

    def __init__(self, dynamics: DelayedDynamics, solver: Solver, time: float, x0: Nodes) -> None:
        super().__init__(dynamics, solver, time)
        self.delayed, self.x0, self.h = dynamics, x0, time / solver.num_steps(time)
        self.past: dict[int, tuple[Nodes, Nodes]] = {}
        self.reach = math.ceil(dynamics.delay / self.h) + 2  # steps after which a state is not needed
        if self.h > dynamics.delay * (1 + 1e-9):
            raise ValueError(
                f"steps must be no longer than the delay {dynamics.delay:g}, got {self.h:g}; "
                f"take at least {math.ceil(time / dynamics.delay * (1 - 1e-9))} steps"
            )

    def velocity(self, t: float | Tensor, x: Nodes) -> Nodes:
        return self.delayed.velocity(t, x, self._state_at(float(t) - self.delayed.delay))

    def begin(self, t: float, x: Nodes) -> Nodes:
        step, slope = round(t / self.h), self(t, x)
        self.past[step] = x, slope
        self.past.pop(step - self.reach, None)
        return slope

    def again(self) -> _Evaluations:
        return _DelayedEvaluations(self.delayed, self.solver, self.time, self.x0)

    def _state_at(self, t: float) -> Nodes:
        step = math.floor(t / self.h + 1e-9)
        theta = t / self.h - step
        if step < 0 or (step == 0 and theta < 1e-9):
            return self.x0
        if theta < 1e-9:
            return self.past[step][0]
        return _hermite(theta, self.h, *self.past[step], *self.past[step + 1])


def _evaluations(dynamics: Dynamics, x0: Nodes, time: float, solver: Solver) -> _Evaluations:
    if solver.method == IMEX and not isinstance(dynamics, SecondOrderDynamics):
        raise ValueError(
            f"imex is for second-order fields such as GraphCON's, got {type(dynamics).__name__}; take euler"
        )
    if not isinstance(dynamics, DelayedDynamics):
        return _Evaluations(dynamics, solver, time)
    if solver.adaptive:
        raise ValueError(f"{solver.method} keeps no past states for a delayed field; take {', '.join(TABLEAUX)}")
    return _DelayedEvaluations(dynamics, solver, time, x0)


def _fixed_steps(f: _Evaluations, x0: Nodes, ts: tuple[float, ...]) -> Tensor:
    h = f.time / f.solver.num_steps(f.time)
    states: list[Nodes] = []
    x, done = x0, 0
    for t in ts:
        # The last step that ends at or before t; rounding must not put a saved time on the wrong side of its step.
        step = math.floor(t / h * (1 + 1e-12) + 1e-9)
        x, done = _advance(f, x, done, step, h), step
        theta = t / h - step
        states.append(x if theta < 1e-9 else _between(f, x, step, theta, h))
    # Compiled code must not depend on values. Looking for the step that diverged only if one did keeps steps fast.
    if not torch.compiler.is_compiling() and not _is_finite(states[-1]):
        _locate_divergence(f, x0, h)
    return torch.stack(states) if len(states) > 1 else states[0].unsqueeze(0)


def _is_finite(x: Nodes) -> bool:
    """Whether all numbers are finite; terms of a finite sum are."""
    return math.isfinite(x.detach().sum().item()) or bool(torch.isfinite(x).all())


def _advance(f: _Evaluations, x: Nodes, first: int, last: int, h: float) -> Nodes:
    """From the state at step ``first`` to that at step ``last``."""
    after = getattr(f.dynamics, "after_step", None) or _unchanged
    if f.solver.method == IMEX:
        return _imex_steps(f, x, range(first, last), h, after)
    tableau, system = TABLEAUX[f.solver.method], f.dynamics.coupled()
    if first < last and system is not None and system.fits(x):
        f.spend(last - first, tableau.evaluations, first * h, h)
        memory = AUTO_MEMORY if f.solver.memory == "auto" else f.solver.memory
        return system.flow(x, tableau.coefficients(h), last - first, memory)
    for step in range(first, last):
        x = after(_runge_kutta_step(f, tableau, step * h, h, x))
    return x


def _unchanged(x: Nodes) -> Nodes:
    return x


def _between(f: _Evaluations, x: Nodes, step: int, theta: float, h: float) -> Nodes:
    """The state at a fraction of a step."""
    new = _advance(f, x, step, step + 1, h)
    return _hermite(theta, h, x, f(step * h, x), new, f((step + 1) * h, new))


def _runge_kutta_step(f: _Evaluations, tableau: Tableau, t: float, h: float, x: Nodes) -> Nodes:
    slopes = [f.begin(t, x)]
    for c, row in zip(tableau.times, tableau.stages, strict=True):
        slopes.append(f(t + c * h, _add_slopes(x, h, row, slopes)))
    return _add_slopes(x, h, tableau.weights, slopes)


def _imex_steps(f: _Evaluations, state: Nodes, steps: range, h: float, after: Callable[[Nodes], Nodes]) -> Nodes:
    """In each step the velocity by an explicit step, then the position with the new velocity.

    The two are joined at the end alone: to join them in each step took half the time of GraphCON on PubMed.
    """
    assert isinstance(f.dynamics, SecondOrderDynamics)
    position, velocity = state.chunk(2, dim=-1)
    for step in steps:
        f.count_one(step * h)
        velocity = torch.add(velocity, f.dynamics.acceleration(step * h, position, velocity), alpha=h)
        position = torch.add(position, f.dynamics.position_rate(velocity), alpha=h)
        position, velocity = after(position), after(velocity)
    return torch.cat([position, velocity], dim=-1)


def _add_slopes(x: Nodes, h: float, weights: tuple[float, ...], slopes: list[Nodes]) -> Nodes:
    for weight, slope in zip(weights, slopes, strict=True):
        if weight:
            x = torch.add(x, slope, alpha=h * weight)
    return x


def _hermite(theta: float, h: float, x0: Nodes, slope0: Nodes, x1: Nodes, slope1: Nodes) -> Nodes:
    square, cube = theta**2, theta**3
    return (
        (2 * cube - 3 * square + 1) * x0
        + (cube - 2 * square + theta) * h * slope0
        + (3 * square - 2 * cube) * x1
        + (cube - square) * h * slope1
    )


@torch.no_grad()
def _locate_divergence(f: _Evaluations, x: Nodes, h: float) -> None:
    """Repeat a failed integration, looking at each step, and raise where the state stops being finite."""
    again = f.again()
    step = 0
    while torch.isfinite(x).all():
        x = _advance(again, x, step, step + 1, h)
        step += 1
    again.t = step * h
    raise again.error("reached a state that is not finite")


def _adaptive_steps(f: _Evaluations, x0: Nodes, ts: tuple[float, ...]) -> Tensor:
    solver = f.solver
    if not torch.isfinite(x0).all():
        raise f.error("started from a state that is not finite")
    if ts == (0.0,):
        return x0[None]
    starts_at_zero = ts[0] == 0
    grid = torch.tensor(ts if starts_at_zero else (0.0, *ts), dtype=torch.float64, device=x0.device)
    arguments = {
        "method": solver.method,
        "rtol": DEFAULT_TOLERANCE if solver.rtol is None else solver.rtol,
        "atol": DEFAULT_TOLERANCE if solver.atol is None else solver.atol,
    }
    with solver_errors(f):
        if solver.adjoint:
            differentiable = tuple(tensor for tensor in f.dynamics.tensors() if tensor.requires_grad)
            ys = torchdiffeq.odeint_adjoint(f, x0, grid, adjoint_params=differentiable, **arguments)
        else:
            ys = torchdiffeq.odeint(f, x0, grid, **arguments)
    if not torch.isfinite(ys[-1]).all():
        raise f.error("reached a state that is not finite")
    states: Tensor = ys if starts_at_zero else ys[1:]
    return states


@contextmanager
def solver_errors(evaluations: _Evaluations | None = None) -> Iterator[None]:
    """Turn torchdiffeq's bare assertions into :class:`SolverError`.

    :func:`integrate` uses it for the forward integration; training puts it around ``loss.backward()``, where an
    adjoint solver fails inside autograd, out of sight of :func:`integrate`.
    """
    try:
        yield
    except AssertionError as failure:
        words = str(failure)
        known = {
            "underflow in dt": "needs steps too small to represent",
            "non-finite": "reached a state that is not finite",
        }
        what = next((said for sign, said in known.items() if sign in words), None)
        if what is None:
            raise
        if evaluations is None:
            raise SolverError(f"the adjoint solver {what}; loosen rtol and atol, or set adjoint to false") from failure
        raise evaluations.error(what) from failure
