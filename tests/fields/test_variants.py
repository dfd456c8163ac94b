from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

from kuramotognn import (
    AdaptiveKuramoto,
    Attention,
    DelayedKuramoto,
    Field,
    Graph,
    RandomWalk,
    ResidualKuramoto,
    Sakaguchi,
    SignedAttention,
    Solver,
    integrate,
    use_backend,
)
from kuramotognn.fields import AdaptiveKuramotoDynamics, CoupledDynamics, Couplings, DelayedDynamics, PhaseField
from kuramotognn.kernels import kuramoto_per_edge
from tests.conftest import graphs, ring
from tests.fields.oracles import Array, graph20, matrix, sines, start, walk

RK4 = Solver("rk4", steps=40)


def flow(field: Field, x0: torch.Tensor, graph: Graph, time: float = 1.5, solver: Solver = RK4) -> torch.Tensor:
    dynamics = field(x0, graph)
    return dynamics.nodes(integrate(dynamics, dynamics.start(x0), time, solver).final)


def method_of_steps(w: Array, x0: Array, coupling: float, delay: float, time: float) -> Array:
    """SciPy over one delay after the other, each looking up its past in the dense output of the one before."""
    pieces: list[Callable[[float], Array]] = [lambda t: x0.ravel()]
    state, a = x0, walk(w)
    for begin, end in pairwise([*np.arange(0, time - 1e-12, delay), time]):
        past = pieces[-1]

        def velocity(t: float, x: Array, past: Callable[[float], Array] = past) -> Array:
            return (x0 + coupling * sines(a, past(t - delay).reshape(x0.shape), x.reshape(x0.shape))).ravel()

        solution = solve_ivp(
            velocity, (begin, end), state.ravel(), "DOP853", dense_output=True, rtol=1e-10, atol=1e-10, max_step=delay
        )
        state = solution.y[:, -1]
        pieces.append(solution.sol)
    return state.reshape(x0.shape)


@pytest.mark.parametrize(("delay", "tolerance"), [(0.5, 1e-6), (0.25, 1e-6), (0.37, 1e-4), (2.0, 1e-7)])
def test_delayed_flow_is_the_method_of_steps(delay: float, tolerance: float) -> None:
    """To the order of the method where the delay is a whole number of steps (here 1/40), and close where it is not."""
    graph, x0 = graph20(), start()
    final = flow(
        PhaseField(RandomWalk(), DelayedKuramoto(delay=delay), coupling=1.3), x0, graph, 1.5, Solver("rk4", steps=60)
    )
    expected = method_of_steps(matrix(graph), x0.numpy(), 1.3, delay, 1.5)
    torch.testing.assert_close(final, torch.from_numpy(expected), atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize(("method", "order"), [("euler", 1), ("midpoint", 2), ("heun", 2), ("rk4", 4)])
def test_delayed_steps_keep_the_order_of_the_method(method: str, order: int) -> None:
    graph, x0 = ring(5), start(5, 1)
    expected = torch.from_numpy(method_of_steps(matrix(graph), x0.numpy(), 1.3, 0.5, 2.0))
    field = PhaseField(RandomWalk(), DelayedKuramoto(delay=0.5), coupling=1.3)
    coarse, fine = (flow(field, x0, graph, 2.0, Solver(method, steps=steps)) for steps in (16, 32))
    errors = [(final - expected).abs().max().item() for final in (coarse, fine)]
    assert math.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.4)


@pytest.mark.parametrize("delay", [0.25, 0.3])
@pytest.mark.parametrize("backend", ["fused", "torch"])
def test_delayed_gradients_by_finite_differences(delay: float, backend: str) -> None:
    graph = ring(4)

    def final(x0: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        field = PhaseField(RandomWalk(), DelayedKuramoto(delay=delay), coupling=1.3)
        return flow(field, x0, Graph(graph.pattern, weight), 1.0, Solver("heun", steps=4))

    with use_backend(backend):  # type: ignore[arg-type]
        weight = torch.linspace(0.5, 1.5, graph.num_edges, dtype=torch.float64).requires_grad_()
        assert torch.autograd.gradcheck(final, (start(4, 1).requires_grad_(), weight))


def test_states_between_the_steps_of_a_delayed_flow() -> None:
    graph, x0 = graph20(), start()
    dynamics = PhaseField(RandomWalk(), DelayedKuramoto(delay=0.3), coupling=1.3)(x0, graph)
    times = [0.0, 0.21, 0.30, 0.55, 1.5]
    solution = integrate(dynamics, x0, 1.5, Solver("rk4", steps=50), save_at=times)
    for t, state in zip(times[1:], solution.ys[1:], strict=True):
        expected = method_of_steps(matrix(graph), x0.numpy(), 1.3, 0.3, t)
        torch.testing.assert_close(state, torch.from_numpy(expected), atol=1e-5, rtol=1e-5)


def test_delayed_oscillators_lock_at_yeung_and_strogatzs_frequency() -> None:
    """Identical oscillators in phase turn at Ω = ω − K sin(Ω τ)."""
    omega, coupling, delay = 0.9, 0.8, 0.7
    graph, x = ring(4), torch.full((4, 1), omega, dtype=torch.float64)
    dynamics = PhaseField(RandomWalk(), DelayedKuramoto(delay=delay), coupling=coupling)(x, graph)
    late = integrate(dynamics, x, 30.0, Solver("rk4", step_size=0.1), save_at=[29.0, 30.0]).ys
    expected = brentq(lambda big: big - omega + coupling * math.sin(big * delay), 0.0, 2.0)
    torch.testing.assert_close(late[1] - late[0], torch.full_like(x, expected), atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("lag", [0.4, -1.1, 2.5])
def test_lagged_oscillators_in_phase_turn_slower(lag: float) -> None:
    """Ω = ω − K sin λ, exactly, while in phase."""
    x0 = torch.full((5, 1), 0.7, dtype=torch.float64)
    final = flow(PhaseField(RandomWalk(), Sakaguchi(lag=lag), coupling=1.5), x0, ring(5), 0.8)
    torch.testing.assert_close(final, x0 + 0.8 * (x0 - 1.5 * math.sin(lag)))


@settings(max_examples=30)
@given(graphs(), st.floats(-4, 4), st.sampled_from(["fused", "torch"]))
def test_lagged_velocity_is_the_sum_over_edges(graph: Graph, lag: float, backend: str) -> None:
    x = start(graph.num_nodes)
    with use_backend(backend):  # type: ignore[arg-type]
        velocity = Sakaguchi(lag)(x, Couplings(graph.pattern, graph.weight), 1.7)(0.0, x)
    p = graph.pattern
    expected = p.sum_rows(graph.weight[:, None] * torch.sin(p.of_col(x) - p.of_row(x) - lag))
    torch.testing.assert_close(velocity, x + 1.7 * expected)


LIMITS: dict[str, Callable[[], Field]] = {
    "residual zero": lambda: PhaseField(RandomWalk(), ResidualKuramoto(2), coupling=1.3),
    "lag zero": lambda: PhaseField(RandomWalk(), Sakaguchi(lag=0.0), coupling=1.3),
    "delay zero": lambda: PhaseField(RandomWalk(), DelayedKuramoto(delay=0.0), coupling=1.3),
    "rate zero": lambda: PhaseField(RandomWalk(), AdaptiveKuramoto(rate=0.0), coupling=1.3),
    "couplings constant": lambda: PhaseField(RandomWalk(), coupling=1.3, time_varying=True),
}


@pytest.mark.parametrize("name", LIMITS)
def test_limits_are_kuramotognn(name: str) -> None:
    x0, graph = start(), graph20()
    expected = flow(PhaseField(RandomWalk(), coupling=1.3), x0, graph)
    field = LIMITS[name]().double()
    if name in ("lag zero", "delay zero", "rate zero"):
        assert torch.equal(flow(field, x0, graph), expected)
    else:
        torch.testing.assert_close(flow(field, x0, graph), expected, atol=1e-13, rtol=1e-13)


@pytest.mark.parametrize("size", [1e-3, 1e-5])
def test_limits_are_continuous(size: float) -> None:
    """A small lag, rate or delay changes the flow a little: the equations at zero are not special cases of the code."""
    x0, graph = start(), graph20()
    expected = flow(PhaseField(RandomWalk(), coupling=1.3), x0, graph)
    fields: list[Field] = [
        PhaseField(RandomWalk(), Sakaguchi(lag=size), coupling=1.3),
        PhaseField(RandomWalk(), AdaptiveKuramoto(rate=size), coupling=1.3),
    ]
    for field in fields:
        error = (flow(field, x0, graph) - expected).abs().max()
        assert 0 < error < 10 * size
    a = RandomWalk()(x0, graph)
    still = AdaptiveKuramotoDynamics(graph.pattern, a, x0, 1.3, 0.0)
    final = integrate(still, still.start(x0), 1.5, RK4).final
    torch.testing.assert_close(still.nodes(final), expected, atol=1e-13, rtol=1e-13)
    assert torch.equal(still.couplings(final), a)


def test_short_delays_approach_none() -> None:
    x0, graph = start(5), ring(5)
    expected = flow(PhaseField(RandomWalk(), coupling=1.3), x0, graph, 1.0, Solver("rk4", steps=400))
    errors = [
        (
            flow(
                PhaseField(RandomWalk(), DelayedKuramoto(delay=d), coupling=1.3),
                x0,
                graph,
                1.0,
                Solver("rk4", steps=400),
            )
            - expected
        )
        .abs()
        .max()
        .item()
        for d in (0.02, 0.01)
    ]
    assert errors[0] / errors[1] == pytest.approx(2.0, abs=0.1)


def test_signs_that_all_attract_are_attention() -> None:
    x0, graph = start(channels=4), graph20()
    signed, plain = SignedAttention(4, heads=2).double(), Attention(4, heads=2).double()
    plain.load_state_dict(signed.attention.state_dict())
    torch.nn.init.constant_(signed.bias, 50.0)
    assert torch.equal(signed(x0, graph), plain(x0, graph))
    assert torch.equal(flow(PhaseField(signed), x0, graph), flow(PhaseField(plain), x0, graph))


def test_a_negative_weight_repels() -> None:
    x0, graph = start(channels=4), graph20()
    signed = SignedAttention(4, heads=2).double()
    torch.nn.init.constant_(signed.bias, 50.0)
    turned = Graph(graph.pattern, torch.where(torch.arange(graph.num_edges) == 3, -graph.weight, graph.weight))
    ratio = signed(x0, turned) / signed(x0, graph)
    assert ratio.tolist() == [-1.0 if edge == 3 else 1.0 for edge in range(graph.num_edges)]


@settings(max_examples=25)
@given(graphs())
def test_signed_couplings_are_bounded_by_attention(graph: Graph) -> None:
    signed, x0 = SignedAttention(4, heads=2).double(), start(graph.num_nodes, 4)
    totals = graph.pattern.sum_rows(signed(x0, graph).abs())
    assert totals.max() <= 1 + 1e-12


def test_adaptive_couplings_stay_within_their_start() -> None:
    graph, x0 = graph20(), start()
    dynamics = PhaseField(RandomWalk(), AdaptiveKuramoto(rate=2.0), coupling=1.3)(x0, graph)
    assert isinstance(dynamics, AdaptiveKuramotoDynamics)
    states = integrate(dynamics, dynamics.start(x0), 6.0, Solver("rk4", steps=120), save_at=[1.0, 3.0, 6.0]).ys
    couplings = dynamics.couplings(states)
    assert couplings.shape == (3, graph.num_edges)
    assert (couplings.abs() <= dynamics.a0 + 1e-12).all()
    assert dynamics.nodes(states).shape == (3, 20, 2)


def test_locked_adaptive_couplings_are_the_cosines() -> None:
    """Two equal oscillators lock in phase and their coupling returns to its start; held apart it decays to cos Δ."""
    graph = ring(2)
    x0 = torch.tensor([[0.3], [0.5]], dtype=torch.float64)
    dynamics = AdaptiveKuramotoDynamics(graph.pattern, graph.weight, torch.zeros_like(x0), 1.0, 0.5)
    final = integrate(dynamics, dynamics.start(x0), 40.0, Solver("rk4", steps=160)).final
    torch.testing.assert_close(dynamics.couplings(final), graph.weight, atol=1e-6, rtol=0)
    held = AdaptiveKuramotoDynamics(
        graph.pattern, graph.weight, torch.tensor([[0.2], [-0.2]], dtype=torch.float64), 1.0, 0.5
    )
    final = integrate(held, held.start(x0), 60.0, Solver("rk4", steps=240)).final
    difference = held.nodes(final)[0] - held.nodes(final)[1]
    torch.testing.assert_close(held.couplings(final), difference.cos().expand(2), atol=1e-6, rtol=0)


def test_velocity_matches_the_definition_edge_by_edge() -> None:
    graph, x, past = graph20(), start(), start(seed=3)
    dynamics = DelayedKuramoto(0.4)(x, Couplings(graph.pattern, graph.weight), 1.3)
    assert isinstance(dynamics, DelayedDynamics)
    torch.testing.assert_close(
        dynamics.velocity(0.0, x, x), x + 1.3 * kuramoto_per_edge(graph.pattern, graph.weight, x)
    )
    expected = x.numpy() + 1.3 * sines(matrix(graph), past.numpy(), x.numpy())
    torch.testing.assert_close(dynamics.velocity(0.0, x, past), torch.from_numpy(expected))
    with pytest.raises(TypeError, match="need the past state"):
        dynamics(0.0, x)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: PhaseField(RandomWalk(), DelayedKuramoto(delay=-0.1)),
            "delay must be at least 0 and finite, got -0.1",
        ),
        (lambda: PhaseField(RandomWalk(), AdaptiveKuramoto(rate=-1.0)), "rate must be at least 0 and finite, got -1.0"),
        (lambda: PhaseField(RandomWalk(), Sakaguchi(lag=math.nan)), "lag must be finite, got nan"),
        (lambda: PhaseField(RandomWalk(), Sakaguchi(), coupling=0.0), "coupling must be positive and finite, got 0.0"),
    ],
)
def test_wrong_constants_get_a_sentence(make: Callable[[], Field], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_dynamics_at_zero_are_plain_kuramoto() -> None:
    x0, graph = start(), graph20()
    for name in ("lag zero", "delay zero", "rate zero"):
        assert isinstance(LIMITS[name]()(x0, graph), CoupledDynamics)
