import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp

from kuramotognn import Dynamics, Graph, Solver, SolverError, integrate
from kuramotognn.fields import CoupledDynamics, Couplings, DelayedDynamics, SecondOrderDynamics
from kuramotognn.solve import _DelayedEvaluations, _fixed_steps
from kuramotognn.solver import ADAPTIVE, TABLEAUX
from tests.conftest import ring


class Closure(Dynamics):
    """A right-hand side from a function, for problems with a known solution."""

    def __init__(self, function: Callable[[float, torch.Tensor], torch.Tensor], *tensors: torch.Tensor) -> None:
        self.function, self.depends_on = function, tensors

    def __call__(self, t: float | torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return self.function(float(t), x)

    def tensors(self) -> tuple[torch.Tensor, ...]:
        return self.depends_on


def pair(coupling: float, omega: torch.Tensor) -> CoupledDynamics:
    """Two oscillators that hear each other with weight one half: total coupling K on their difference."""
    graph = Graph.from_edge_index(torch.tensor([[0, 1], [1, 0]]), 2, dtype=torch.float64)
    return CoupledDynamics(Couplings(graph.pattern, graph.weight / 2), omega, coupling)


def kuramoto_ring(num_nodes: int = 8, coupling: float = 1.3) -> tuple[CoupledDynamics, torch.Tensor]:
    graph, generator = ring(num_nodes), torch.Generator().manual_seed(3)
    a = torch.rand(graph.num_edges, generator=generator, dtype=torch.float64)
    x0 = torch.randn(num_nodes, 2, generator=generator, dtype=torch.float64)
    return CoupledDynamics(Couplings(graph.pattern, a), x0, coupling), x0


FINE = {
    **{method: Solver(method, step_size=1e-3) for method in TABLEAUX},
    **{method: Solver(method, rtol=1e-8, atol=1e-8) for method in ADAPTIVE},
}


@pytest.mark.parametrize("method", FINE)
def test_two_identical_oscillators(method: str) -> None:
    """tan(Δ/2) = tan(Δ₀/2) exp(−K t)."""
    start = torch.tensor([[0.4], [-1.1]], dtype=torch.float64)
    solution = integrate(pair(1.7, torch.zeros_like(start)), start, 1.5, FINE[method])
    difference = float(solution.final[0] - solution.final[1])
    expected = 2 * math.atan(math.tan(0.75) * math.exp(-1.7 * 1.5))
    assert difference == pytest.approx(expected, abs=2e-3 if method == "euler" else 1e-5)


@pytest.mark.parametrize("method", FINE)
def test_uncoupled_oscillators_turn_at_their_own_frequency(method: str) -> None:
    graph = Graph.from_edge_index(torch.empty(2, 0, dtype=torch.long), 3, dtype=torch.float64)
    omega = torch.tensor([[0.5], [-2.0], [3.0]], dtype=torch.float64)
    solution = integrate(CoupledDynamics(Couplings(graph.pattern, graph.weight), omega, 1.0), omega, 2.0, FINE[method])
    torch.testing.assert_close(solution.final, omega + 2.0 * omega, atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize(("method", "order"), [("euler", 1), ("midpoint", 2), ("heun", 2), ("rk4", 4)])
def test_order_of_convergence(method: str, order: int) -> None:
    """The slope of log error against log step, for a problem that depends on time: x' = −2 t x, x = exp(−t²)."""
    dynamics = Closure(lambda t, x: -2 * t * x)
    x0 = torch.ones(1, 1, dtype=torch.float64)
    steps = np.array([20, 40, 80])
    errors = [
        abs(integrate(dynamics, x0, 1.0, Solver(method, steps=int(n))).final.item() - math.exp(-1)) for n in steps
    ]
    slope = -np.polyfit(np.log(steps), np.log(errors), 1)[0]
    assert slope == pytest.approx(order, abs=0.15)


def test_against_scipy() -> None:
    dynamics, x0 = kuramoto_ring()

    def flat(t: float, y: np.ndarray) -> np.ndarray:
        return dynamics(t, torch.from_numpy(y).reshape(x0.shape)).numpy().ravel()

    times = [0.0, 0.7, 2.0, 3.0]
    oracle = solve_ivp(flat, (0, 3), x0.numpy().ravel(), rtol=1e-11, atol=1e-11, t_eval=times).y.T
    for solver in (Solver("rk4", step_size=0.01), Solver("dopri5", rtol=1e-9, atol=1e-9)):
        solution = integrate(dynamics, x0, 3.0, solver, save_at=times)
        assert solution.ts == tuple(times)
        np.testing.assert_allclose(solution.ys.reshape(4, -1).numpy(), oracle, atol=1e-7)


def test_fixed_steps_approach_dopri5_as_the_step_shrinks() -> None:
    dynamics, x0 = kuramoto_ring()
    reference = integrate(dynamics, x0, 4.0, Solver("dopri5", rtol=1e-10, atol=1e-10)).final
    for method in TABLEAUX:
        errors = [
            float((integrate(dynamics, x0, 4.0, Solver(method, step_size=h)).final - reference).abs().max())
            for h in (0.2, 0.1, 0.05, 0.025)
        ]
        assert errors == sorted(errors, reverse=True)
        assert errors[-1] < 0.2 * errors[0]


@pytest.mark.parametrize("method", TABLEAUX)
def test_interpolation_between_steps_is_as_exact_as_the_cubic_allows(method: str) -> None:
    dynamics = Closure(lambda t, x: torch.cos(torch.full_like(x, t)))
    x0 = torch.zeros(1, 1, dtype=torch.float64)
    times = [0.0, 0.013, 0.5, 0.77777, 1.0]
    solution = integrate(dynamics, x0, 1.0, Solver(method, steps=100), save_at=times)
    at_steps = integrate(dynamics, x0, 1.0, Solver(method, steps=100), save_at=[0.5])
    assert solution.ys[2].equal(at_steps.final), "a saved time on a step is the step's state itself"
    tolerance = 1e-2 if method == "euler" else 1e-5
    np.testing.assert_allclose(solution.ys.flatten().numpy(), np.sin(times), atol=tolerance)


@pytest.mark.parametrize(
    "solver",
    [
        Solver("euler", steps=4),
        Solver("midpoint", steps=3),
        Solver("heun", steps=3),
        Solver("rk4", steps=2),
        Solver("dopri5", rtol=1e-8, atol=1e-8),
    ],
    ids=lambda solver: solver.method,
)
def test_gradients_by_finite_differences(solver: Solver) -> None:
    dynamics, x0 = kuramoto_ring(4)

    def flow(a: torch.Tensor, omega: torch.Tensor, x0: torch.Tensor) -> torch.Tensor:
        return integrate(CoupledDynamics(Couplings(dynamics.couplings.pattern, a), omega, 1.3), x0, 0.8, solver).final

    arguments = [tensor.clone().requires_grad_() for tensor in (dynamics.tensors()[0], x0.flip(0), x0)]
    assert torch.autograd.gradcheck(flow, arguments, atol=1e-5)


@pytest.mark.parametrize("method", ["dopri5", "dopri8"])
def test_the_adjoint_approaches_backpropagation(method: str) -> None:
    gradients = []
    for adjoint in (False, True):
        dynamics, x0 = kuramoto_ring(5)
        a, x0 = dynamics.tensors()[0].requires_grad_(), x0.requires_grad_()
        solver = Solver(method, adjoint=adjoint, rtol=1e-9, atol=1e-9, max_evaluations=100_000)
        scaled = 2.0 * a  # Not a leaf: attention hands over couplings that have a history of their own.
        flow = integrate(CoupledDynamics(Couplings(dynamics.couplings.pattern, scaled), x0, 1.3), x0, 1.0, solver).final
        gradients.append(torch.autograd.grad(flow.square().sum(), (a, x0)))
    for backpropagated, adjoint_gradient in zip(*gradients, strict=True):
        torch.testing.assert_close(adjoint_gradient, backpropagated, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    ("solver", "evaluations"),
    [(Solver("euler", steps=7), 7), (Solver("rk4", step_size=0.1), 40), (Solver("heun", step_size=0.3), 8)],
)
def test_evaluations_are_counted(solver: Solver, evaluations: int) -> None:
    dynamics, x0 = kuramoto_ring()
    assert integrate(dynamics, x0, 1.0, solver).nfe == evaluations


def test_adaptive_evaluations_are_counted() -> None:
    calls = 0

    def count(t: float, x: torch.Tensor) -> torch.Tensor:
        nonlocal calls
        calls += 1
        return -x

    assert integrate(Closure(count), torch.ones(1, 1), 1.0, Solver("dopri5")).nfe == calls > 0


def test_a_time_that_is_a_multiple_of_the_step_gets_no_extra_step() -> None:
    for time in (0.3, 1.2, 12.0, 0.7):
        assert Solver(step_size=0.1).num_steps(time) == round(time / 0.1)
    assert Solver(step_size=0.5).num_steps(1.1) == 3
    assert Solver(step_size=5.0).num_steps(1.1) == 1


def explode(t: float, x: torch.Tensor) -> torch.Tensor:
    return x.square()


@pytest.mark.parametrize(
    ("solver", "time", "dynamics", "message"),
    [
        (
            Solver("euler", steps=40),
            40.0,
            explode,
            r"euler reached a state that is not finite at t = \d+ of 40, evaluation",
        ),
        (Solver("dopri5"), 2.0, explode, r"dopri5 .* at t = (0\.99|1).* of 2, evaluation \d+; loosen rtol and atol"),
        (
            Solver("dopri5", rtol=1e-9, atol=1e-9, max_evaluations=30),
            9.0,
            lambda t, x: torch.sin(40 * x),
            r"dopri5 needs more than max_evaluations=30 at t = .* of 9, evaluation 31; raise max_evaluations",
        ),
        (
            Solver("euler", steps=50, max_evaluations=30),
            5.0,
            explode,
            r"euler needs more than max_evaluations=30 at t = 3 of 5, evaluation 31; raise max_evaluations, take",
        ),
        (
            Solver("dopri5"),
            1.0,
            lambda t, x: torch.full_like(x, float("nan")),
            r"dopri5 .* at t = .* of 1, evaluation",
        ),
    ],
    ids=["diverges", "underflows", "too many adaptive", "too many fixed", "nan"],
)
def test_failures_say_when_where_and_what_to_try(solver, time, dynamics, message) -> None:
    with pytest.raises(SolverError, match=message):
        integrate(Closure(dynamics), torch.ones(1, 1, dtype=torch.float64), time, solver)


def test_a_state_that_starts_infinite_is_refused() -> None:
    for solver in (Solver("euler", steps=2), Solver("dopri5")):
        with pytest.raises(SolverError, match="not finite at t = 0 of 1"):
            integrate(Closure(lambda t, x: x), torch.tensor([[float("inf")]]), 1.0, solver)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "eulr", "steps": 1}, "method must be one of .* got 'eulr'; did you mean 'euler'"),
        ({"steps": 3, "step_size": 0.1}, "euler takes step_size or steps, not both"),
        ({"steps": 0}, "steps must be positive and finite, got 0"),
        ({"step_size": -0.5}, "step_size must be positive and finite, got -0.5"),
        ({"method": "dopri5", "step_size": 0.1}, "step_size cannot be combined with dopri5"),
        ({"method": "rk4", "steps": 4, "rtol": 1e-3}, "rtol cannot be combined with rk4"),
        ({"method": "rk4", "steps": 4, "adjoint": True}, "the gradients of rk4 are exact"),
    ],
)
def test_wrong_solvers_get_a_sentence(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Solver(**arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("time", [0.0, -1.0, float("nan")])
def test_time_must_be_positive(time: float) -> None:
    dynamics, x0 = kuramoto_ring()
    with pytest.raises(ValueError, match="time must be positive and finite"):
        integrate(dynamics, x0, time, Solver(steps=1))


@pytest.mark.parametrize("save_at", [[], [0.5, 0.2], [-0.1], [1.5], [0.3, 0.3]])
def test_saved_times_must_ascend_within_the_integration(save_at: list[float]) -> None:
    dynamics, x0 = kuramoto_ring()
    with pytest.raises(ValueError, match="save_at must be ascending times between 0 and 1"):
        integrate(dynamics, x0, 1.0, Solver(steps=1), save_at=save_at)


@pytest.mark.parametrize("solver", [Solver(steps=2), Solver("dopri5")])
def test_start_alone_can_be_saved(solver: Solver) -> None:
    dynamics, x0 = kuramoto_ring()
    assert integrate(dynamics, x0, 1.0, solver, save_at=[0.0]).final.equal(x0)


SPRING = SecondOrderDynamics(lambda t, x, y: -x)
"""x'' = −x."""
ECHO = DelayedDynamics(lambda t, x, past: -past, 1.0)
"""x'(t) = −x(t − 1)."""

ONE = torch.ones(1, 1, dtype=torch.float64)


def test_imex_is_symplectic_euler() -> None:
    """The matrix of one step, (x, y) -> (x + h (y − h x), y − h x), has determinant one: orbits stay bounded."""
    h, step = 0.1, torch.tensor([[1 - 0.01, 0.1], [-0.1, 1.0]], dtype=torch.float64)
    start = torch.tensor([[1.0, 1.0]], dtype=torch.float64)
    solution = integrate(SPRING, start, 100.0, Solver("imex", step_size=h), save_at=[0.1, 100.0])
    torch.testing.assert_close(solution.ys[0], start @ step.T)
    torch.testing.assert_close(solution.ys[1], start @ torch.linalg.matrix_power(step, 1000).T)
    assert solution.nfe == 1000
    assert solution.final.norm() < 1.6


def test_imex_is_of_first_order() -> None:
    start, exact = torch.tensor([[1.0, 1.0]], dtype=torch.float64), math.cos(2.0) + math.sin(2.0)
    errors = [
        abs(float(integrate(SPRING, start, 2.0, Solver("imex", steps=n)).final[0, 0]) - exact) for n in (100, 200)
    ]
    assert errors[0] / errors[1] == pytest.approx(2.0, abs=0.05)


def test_imex_interpolates_between_steps() -> None:
    start = torch.tensor([[1.0, 1.0]], dtype=torch.float64)
    state = integrate(SPRING, start, 1.0, Solver("imex", steps=1000), save_at=[0.5004]).final
    assert float(state[0, 0]) == pytest.approx(math.cos(0.5004) + math.sin(0.5004), abs=2e-3)


def test_imex_is_refused_for_first_order_fields() -> None:
    with pytest.raises(ValueError, match="imex is for second-order fields such as GraphCON's, got Closure; take euler"):
        integrate(Closure(lambda t, x: -x), ONE, 1.0, Solver("imex", steps=4))


@pytest.mark.parametrize("t", [0.5, 1.0, 1.5, 2.0, 3.0])
def test_delayed_decay(t: float) -> None:
    """x' = −x(t − 1), x = 1 before: 1 − t + (t − 1)²/2 − (t − 2)³/6 + …, each term from its time on."""
    exact = sum((-1) ** k * max(t - k + 1, 0.0) ** k / math.factorial(k) for k in range(5))
    solution = integrate(ECHO, ONE, 3.0, Solver("rk4", steps=12), save_at=[t])
    # A cubic is what the solution is there, and what the solver interpolates by.
    assert float(solution.final) == pytest.approx(exact, abs=1e-12)


def test_delayed_steps_must_not_be_longer_than_the_delay() -> None:
    with pytest.raises(ValueError, match=r"steps must be no longer than the delay 1, got 1\.5; take at least 3 steps"):
        integrate(ECHO, ONE, 3.0, Solver("euler", steps=2))
    assert integrate(ECHO, ONE, 3.0, Solver("euler", steps=3)).nfe == 3


def test_adaptive_methods_keep_no_past() -> None:
    with pytest.raises(
        ValueError, match="dopri5 keeps no past states for a delayed field; take euler, midpoint, heun, rk4"
    ):
        integrate(ECHO, ONE, 1.0, Solver("dopri5"))


def test_the_past_is_forgotten_in_time() -> None:
    evaluations = _DelayedEvaluations(ECHO, Solver("rk4", steps=400), 100.0, ONE)
    _fixed_steps(evaluations, ONE, (100.0,))
    assert len(evaluations.past) <= 7


def test_a_diverging_delayed_flow_is_located() -> None:
    explosion = DelayedDynamics(lambda t, x, past: 1e200 * past, 1.0)
    with pytest.raises(SolverError, match=r"euler reached a state that is not finite at t = 3 of 4"):
        integrate(explosion, ONE, 4.0, Solver("euler", steps=4))
