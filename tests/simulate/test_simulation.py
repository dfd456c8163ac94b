"""Trajectories compared with closed forms, SciPy's DOP853 and a method of steps."""

import math
from collections.abc import Callable

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.integrate import solve_ivp

from kuramotognn import Graph, SolverError
from kuramotognn.simulate import Frequencies, Oscillators, random_network, simulate
from tests.conftest import graphs

pytestmark = pytest.mark.usefixtures("isa")
RNG = np.random.default_rng(7)
N = 21  # neither a multiple of the vector width nor less than one tile
OMEGA, START, SPEED = RNG.normal(size=N), RNG.uniform(-math.pi, math.pi, N), RNG.normal(size=N)
MATRIX = RNG.normal(size=(N, N)) * (RNG.random((N, N)) < 0.3)


def torque(x: np.ndarray, past: np.ndarray, a: np.ndarray, lag: float = 0.0) -> np.ndarray:
    """Σ_j a_ij sin(x_j(t - τ) - x_i(t) - α), written out."""
    return (a * np.sin(past[None, :] - x[:, None] - lag)).sum(axis=1)


def reference(model: Oscillators, time: float, a: np.ndarray) -> np.ndarray:
    """The final phases by SciPy."""
    if model.inertia:

        def field(_: float, state: np.ndarray) -> np.ndarray:
            x, v = np.split(state, 2)
            return np.concatenate([v, (OMEGA + model.coupling * torque(x, x, a, model.lag) - v) / model.inertia])

        start = np.concatenate([START, SPEED])
    else:

        def field(_: float, state: np.ndarray) -> np.ndarray:
            return OMEGA + model.coupling * torque(state, state, a, model.lag)

        start = START
    done = solve_ivp(field, (0, time), start, method="DOP853", rtol=1e-12, atol=1e-12)
    return done.y[:N, -1]


def distance(x: np.ndarray, y: np.ndarray) -> float:
    """The largest distance on the circle."""
    return float(np.abs(np.angle(np.exp(1j * (np.asarray(x, np.float64) - y)))).max())


DEGREES = np.maximum(np.count_nonzero(MATRIX, axis=1), 1)[:, None]


@pytest.mark.parametrize(
    ("settings", "a"),
    [
        ({}, np.full((N, N), 1 / N)),
        ({"lag": 0.7}, np.full((N, N), 1 / N)),
        ({"inertia": 0.8, "lag": -0.3}, np.full((N, N), 1 / N)),
        ({"graph": MATRIX}, MATRIX),
        ({"graph": MATRIX, "normalise": "size", "lag": 0.4}, MATRIX / N),
        ({"graph": sparse.csr_array(MATRIX), "lag": 0.4}, MATRIX),
        ({"graph": sparse.csr_array(MATRIX != 0), "normalise": "degree"}, (MATRIX != 0) / DEGREES),
        ({"graph": sparse.csr_array(MATRIX), "inertia": 1.5}, MATRIX),
    ],
)
def test_phases_equal_those_of_scipy(settings: dict, a: np.ndarray) -> None:
    model = Oscillators(coupling=1.3, frequencies=OMEGA, **settings)
    speed = SPEED if model.inertia else None
    run = simulate(model, 3.0, step=0.002, samples=3, initial_phases=START, initial_velocities=speed)
    assert distance(run.phases, reference(model, 3.0, a)) < 1e-8
    assert run.order[-1] * np.exp(1j * run.angle[-1]) == pytest.approx(np.exp(1j * run.phases).mean())


@pytest.mark.parametrize(("method", "order"), [("euler", 1), ("heun", 2), ("rk4", 4)])
@pytest.mark.parametrize("settings", [{}, {"inertia": 1.0}, {"graph": MATRIX}], ids=["mean", "inertia", "dense"])
def test_order_of_the_methods(method: str, order: int, settings: dict) -> None:
    model = Oscillators(coupling=1.0, frequencies=OMEGA, **settings)
    speed = SPEED if model.inertia else None
    exact = reference(model, 1.0, MATRIX if "graph" in settings else np.full((N, N), 1 / N))
    steps = 0.1 / 2 ** np.arange(4)
    runs = [
        simulate(model, 1.0, step=h, samples=1, method=method, initial_phases=START, initial_velocities=speed)
        for h in steps
    ]
    errors = [distance(run.phases, exact) for run in runs]
    slope = np.polyfit(np.log(steps), np.log(errors), 1)[0]
    assert slope == pytest.approx(order, abs=0.25)


def test_two_oscillators() -> None:
    """tan(Δ/2) = tan(Δ₀/2) e^{−Kt}."""
    run = simulate(
        Oscillators(2, 1.5, np.zeros(2)), 4.0, step=0.01, initial_phases=np.array([0.3, 2.6]), keep_phases=True
    )
    difference = run.trajectory[:, 1] - run.trajectory[:, 0]
    expected = 2 * np.arctan(np.tan(2.3 / 2) * np.exp(-1.5 * run.times))
    np.testing.assert_allclose(difference, expected, atol=1e-9)


def test_two_oscillators_lock_above_the_critical_coupling() -> None:
    """Δ' = δ − K sin Δ: locked at asin(δ/K) above K = δ, drifting at the mean speed sqrt(δ² − K²) below."""
    omega = np.array([-0.5, 0.5])
    locked = simulate(Oscillators(2, 2.0, omega), 30.0, step=0.01, initial_phases=np.zeros(2))
    assert locked.phases[1] - locked.phases[0] == pytest.approx(math.asin(0.5), abs=1e-9)
    assert np.ptp(locked.mean_frequencies) == pytest.approx(0, abs=1e-6)
    period = 2 * math.pi / math.sqrt(1 - 0.6**2)
    drifting = simulate(Oscillators(2, 0.6, omega), 8 * period, step=0.01, initial_phases=np.zeros(2))
    assert np.diff(drifting.mean_frequencies)[0] == pytest.approx(math.sqrt(1 - 0.6**2), abs=1e-6)


def test_rate_is_the_smallest_eigenvalue_of_the_laplacian() -> None:
    """Near synchrony the phases decay as e^{−K λ₂ t}."""
    graph = nx.connected_watts_strogatz_graph(40, 4, 0.3, seed=3)
    laplacian = nx.laplacian_matrix(graph).toarray().astype(float)
    values, vectors = np.linalg.eigh(laplacian)
    coupling = 0.7
    run = simulate(
        Oscillators(coupling=coupling, frequencies=np.zeros(40), graph=graph),
        10.0,
        step=0.01,
        initial_phases=1e-4 * vectors[:, 1],
        keep_phases=True,
    )
    sizes = np.linalg.norm(run.trajectory, axis=1)
    rate = -np.polyfit(run.times, np.log(sizes), 1)[0]
    assert rate == pytest.approx(coupling * values[1], abs=1e-6)


def test_uncoupled_oscillators() -> None:
    run = simulate(Oscillators(coupling=0.0, frequencies=OMEGA), 7.0, initial_phases=START)
    assert distance(run.phases, START + 7 * OMEGA) < 1e-12
    np.testing.assert_allclose(run.mean_frequencies, OMEGA, atol=1e-12)


def method_of_steps(
    model: Oscillators, a: np.ndarray, time: float, history: Callable[[float], np.ndarray]
) -> np.ndarray:
    """The delayed model, integrated over one delay at a time; SciPy's dense output gives the past."""
    x, past = START, history
    for k in range(math.ceil(time / model.delay - 1e-9)):
        begin, end = k * model.delay, min(time, (k + 1) * model.delay)

        def field(t: float, state: np.ndarray, past: Callable[[float], np.ndarray] = past) -> np.ndarray:
            return OMEGA + model.coupling * torque(state, past(t - model.delay), a, model.lag)

        done = solve_ivp(field, (begin, end), x, method="DOP853", rtol=1e-11, atol=1e-11, dense_output=True)
        x, past = done.y[:, -1], done.sol
    return x


@pytest.mark.parametrize("history", ["constant", "uncoupled"])
@pytest.mark.parametrize(
    ("graph", "a"),
    [(None, np.full((N, N), 1 / N)), (MATRIX, MATRIX), (sparse.csr_array(MATRIX), MATRIX)],
    ids=["mean", "dense", "sparse"],
)
def test_delay_equals_the_method_of_steps(history: str, graph: object, a: np.ndarray) -> None:
    model = Oscillators(coupling=1.2, frequencies=OMEGA, graph=graph, delay=0.75, lag=0.2)
    exact = method_of_steps(model, a, 3.0, lambda t: START + (OMEGA * t if history == "uncoupled" else 0.0))
    runs = [
        simulate(model, 3.0, step=h, samples=4, initial_phases=START, history=history) for h in (0.75 / 16, 0.75 / 32)
    ]
    errors = [distance(run.phases, exact) for run in runs]
    assert runs[0].times[-1] == pytest.approx(3.0)
    assert errors[1] < 2e-6
    assert errors[0] / errors[1] > 10, "fourth order, as without a delay"


def test_noise_of_uncoupled_oscillators() -> None:
    """The variance is 2 D t."""
    n, noise, time = 40_000, 0.3, 2.0
    model = Oscillators(n, 0.0, np.zeros(n), noise=noise)
    run = simulate(model, time, step=0.1, samples=10, initial_phases=np.zeros(n), transient=0.0)
    travelled = run.mean_frequencies * time
    variance = 2 * noise * time
    assert travelled.var() == pytest.approx(variance, rel=5 * math.sqrt(2 / n))
    assert abs(travelled.mean()) < 5 * math.sqrt(variance / n)
    assert run.order[-1] == pytest.approx(math.exp(-variance / 2), abs=5 / math.sqrt(n))


def test_noise_with_inertia() -> None:
    """Ornstein–Uhlenbeck process: the stationary variance is D / m, up to the step."""
    n, noise, inertia, h = 40_000, 0.3, 0.5, 0.01
    model = Oscillators(n, 0.0, np.zeros(n), noise=noise, inertia=inertia)
    run = simulate(model, 5.0, step=h, samples=1)
    exact = noise / inertia / (1 - h / (2 * inertia))  # of Euler–Maruyama itself
    assert run.velocities.var() == pytest.approx(exact, rel=5 * math.sqrt(2 / n))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("settings", [{}, {"noise": 0.1}, {"graph": 6.0}, {"delay": 0.2, "inertia": 0.5}])
def test_the_same_bits_for_any_number_of_threads(settings: dict, dtype: str) -> None:
    n = 20_001
    if "graph" in settings:
        settings = {"graph": random_network(n, settings["graph"], np.random.default_rng(0))}
    model, before = Oscillators(n, 3.0, **settings), torch.get_num_threads()
    runs = []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            runs.append(simulate(model, 0.6, step=0.1, samples=2, dtype=dtype))
    finally:
        torch.set_num_threads(before)
    for other in runs[1:]:
        np.testing.assert_array_equal(other.phases, runs[0].phases)
        np.testing.assert_array_equal(other.order, runs[0].order)


def test_float32_is_near_float64() -> None:
    model = Oscillators(500, 3.0, Frequencies("normal"))
    runs = [simulate(model, 10.0, dtype=dtype) for dtype in ("float32", "float64")]
    assert runs[0].phases.dtype == np.float32
    np.testing.assert_allclose(runs[0].order, runs[1].order, atol=1e-4)


def test_long_runs_keep_their_precision() -> None:
    """Phases are wrapped to the circle, so the sine of a fast oscillator stays accurate."""
    model = Oscillators(coupling=0.0, frequencies=np.array([1000.0, 0.0]))
    run = simulate(model, 500.0, step=0.5, samples=500, initial_phases=np.zeros(2), dtype="float32")
    assert run.mean_frequencies[0] == pytest.approx(1000.0, rel=1e-6)
    assert run.phases.min() >= -math.pi - 1e-6


@given(graphs(max_nodes=19), st.sampled_from(["none", "degree", "size"]), st.floats(-2, 2), st.booleans())
def test_one_euler_step_equals_the_definition(graph: Graph, normalise: str, lag: float, dense: bool) -> None:
    """The mean frequency over one Euler step is the right-hand side."""
    n = graph.num_nodes
    a = np.zeros((n, n))
    a[graph.pattern.row, graph.pattern.col] = graph.weight
    rng = np.random.default_rng(n)
    omega, start = rng.normal(size=n), rng.uniform(-3, 3, n)
    model = Oscillators(coupling=1.7, frequencies=omega, graph=a if dense else graph, normalise=normalise, lag=lag)
    scale = {"none": 1.0, "size": 1 / n, "degree": 1 / np.maximum((a != 0).sum(axis=1), 1)}[normalise]
    run = simulate(model, 0.1, step=0.1, samples=1, method="euler", initial_phases=start, transient=0.0)
    expected = omega + 1.7 * scale * torque(start, start, a, lag)
    np.testing.assert_allclose(run.mean_frequencies, expected, atol=1e-11)


def test_samples_and_steps() -> None:
    run = simulate(Oscillators(3), 1.0, step=0.3, samples=7)
    np.testing.assert_allclose(run.times, np.linspace(0, 1, 8))
    assert run.settings["step"] == pytest.approx(1 / 7)
    delayed = simulate(Oscillators(3, delay=0.35), 1.0, step=0.1, samples=5)
    assert 0.35 / delayed.settings["step"] == pytest.approx(4)
    assert 1.0 <= delayed.times[-1] < 1.2


def test_progress_is_reported() -> None:
    reported: list[tuple[int, int]] = []
    simulate(Oscillators(3), 1.0, samples=3, on_sample=lambda *count: reported.append(count))
    assert reported == [(1, 3), (2, 3), (3, 3)]


@pytest.mark.parametrize("settings", [{}, {"delay": 0.13}, {"noise": 0.1, "inertia": 1.0}])
def test_the_number_of_samples_does_not_change_the_run(settings: dict) -> None:
    """Also when the kernels take several samples per call."""
    model = Oscillators(50, 3.0, Frequencies("normal"), **settings)
    runs = [
        simulate(model, 1.04, step=0.01, samples=104 // every, transient=0.52, keep_phases=kept)
        for every, kept in ((1, False), (1, True), (52, False))
    ]
    for other in runs[1:]:
        np.testing.assert_allclose(other.phases, runs[0].phases, atol=1e-12)
        np.testing.assert_allclose(other.mean_frequencies, runs[0].mean_frequencies, atol=1e-12)
    np.testing.assert_allclose(runs[1].order, runs[0].order, atol=1e-12)
    np.testing.assert_allclose(np.abs(np.exp(1j * runs[1].trajectory).mean(axis=1)), runs[0].order, atol=1e-12)


def test_phases_that_are_not_finite() -> None:
    model = Oscillators(coupling=1e200, frequencies=np.array([0.0, 1.0]), graph=np.array([[0, 1e200], [1.0, 0]]))
    with pytest.raises(SolverError, match=r"are not finite at t = .*lower the step"):
        simulate(model, 1.0)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"time": 0.0}, "time must be positive and finite, got 0.0"),
        ({"step": math.inf}, "step must be positive and finite"),
        ({"samples": 0}, "samples must be at least 1, got 0"),
        ({"method": "rk5"}, "method must be one of euler, heun, rk4, got 'rk5'; did you mean 'rk4'?"),
        ({"dtype": "float16"}, "dtype must be one of"),
        ({"history": "none"}, "history must be one of"),
        ({"transient": 9.0}, "transient must lie between 0 and time=2.0, got 9.0"),
        ({"initial_phases": np.zeros(4)}, r"initial_phases must be finite numbers of shape \[3\], got shape \[4\]"),
        ({"initial_velocities": np.zeros(3)}, "initial_velocities need inertia"),
    ],
)
def test_wrong_arguments(options: dict, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        simulate(Oscillators(3), **({"time": 2.0} | options))


def test_noise_needs_euler() -> None:
    with pytest.raises(ValueError, match="noise needs method 'euler'"):
        simulate(Oscillators(3, noise=0.1), 1.0, method="rk4")


def test_a_delay_that_does_not_fit_memory() -> None:
    graph = sparse.eye_array(1_000_000, format="csr")
    with pytest.raises(ValueError, match=r"takes .* GB, more than .* choose a longer step"):
        simulate(Oscillators(graph=graph, delay=10.0), 1.0)


def test_a_network_too_large_for_32_bits_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kuramotognn.simulate.simulation.LARGEST_NETWORK", N - 1)
    with pytest.raises(ValueError, match=f"a sparse network may have at most {N - 1} oscillators, got {N}"):
        simulate(Oscillators(graph=sparse.csr_array(MATRIX), frequencies=OMEGA), 1.0)
