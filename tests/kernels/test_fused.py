"""The fused operators against definitions that share no code with them, and their promises about bits and threads."""

import multiprocessing
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection

import pytest
import scipy.sparse as sp
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import Tensor

import kuramotognn.kernels.cpu.flow as cpu_flow
from kuramotognn import Dynamics, Graph, KuramotoDynamics, KuramotoGNN, Solver, SolverError, integrate
from kuramotognn.fields import DiffusionDynamics
from kuramotognn.graph import Pattern
from kuramotognn.kernels import Backend, CoupledSystem, affine, fused, spmm, use_backend
from kuramotognn.kernels import attention as attention_of_both
from kuramotognn.kernels.reference import attention_per_edge, kuramoto_per_edge
from kuramotognn.solve import TABLEAUX
from tests.conftest import graphs, ring

TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-4}
DTYPES = pytest.mark.parametrize("dtype", list(TOLERANCE), ids=str)
LINEAR = pytest.mark.parametrize("linear", [False, True], ids=["kuramoto", "linear"])
METHODS = pytest.mark.parametrize("method", list(TABLEAUX))
CHANNELS = st.sampled_from([1, 2, 3, 8, 15, 16, 17, 24, 31, 37, 41])


@pytest.fixture
def set_threads() -> Iterator[Callable[[int], None]]:
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


def normal(seed: int, *shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def uniform(seed: int, *shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def leaves(*tensors: Tensor, dtype: torch.dtype | None = None) -> list[Tensor]:
    return [tensor.detach().to(dtype or tensor.dtype).clone().requires_grad_() for tensor in tensors]


def attention(pattern: Pattern, key: Tensor, query: Tensor, weight: Tensor) -> Tensor:
    return attention_of_both(pattern, torch.stack([key, query], dim=1), weight)


def random_graph(num_nodes: int, num_edges: int, dtype: torch.dtype) -> Graph:
    """Directed and weighted, with self-loops and rows of very different lengths."""
    generator = torch.Generator().manual_seed(7)
    source = torch.randint(num_nodes, (num_edges,), generator=generator)
    target = (num_nodes * torch.rand(num_edges, generator=generator).square()).long()
    return Graph.from_edge_index(torch.stack([source, target]), num_nodes, uniform(8, num_edges, dtype=dtype))


def assert_near(actual: Tensor, expected: Tensor, tolerance: float, terms: float = 1.0) -> None:
    """Relative to the largest number expected, or to the ``terms`` whose sum it is, where they may cancel."""
    assert actual.shape == expected.shape
    scale = max(float(expected.abs().max()) if expected.numel() else 0.0, terms)
    torch.testing.assert_close(actual.double(), expected, atol=tolerance * scale, rtol=0.0)


def all_near(actual: list[Tensor], expected: list[Tensor], tolerance: float, terms: float = 1.0) -> None:
    for ours, theirs in zip(actual, expected, strict=True):
        assert_near(ours, theirs, tolerance, terms)


def assert_same_bits(actual: list[Tensor], expected: list[Tensor]) -> None:
    assert [ours.equal(theirs) for ours, theirs in zip(actual, expected, strict=True)] == [True] * len(expected)


def with_gradients(y: Tensor, inputs: list[Tensor], upstream: Tensor) -> list[Tensor]:
    gradients = torch.autograd.grad(y, inputs, upstream.to(y.dtype), materialize_grads=True)
    return [y.detach(), *gradients]


# One right-hand side.


def field_by_definition(
    pattern: Pattern, a: Tensor, x: Tensor, drive: Tensor, strength: Tensor, linear: bool
) -> Tensor:
    if linear:
        return drive + strength * (pattern.sum_rows(a[:, None] * pattern.of_col(x)) - x)
    return drive + strength * kuramoto_per_edge(pattern, a, x)


@DTYPES
@LINEAR
@settings(max_examples=50)
@given(graphs(), CHANNELS, st.integers(0, 99), st.sampled_from([1e-3, 1.0, 100.0, 1e4]))
def test_field_is_its_definition_forward_and_backward(
    dtype: torch.dtype, linear: bool, graph: Graph, channels: int, seed: int, phase: float
) -> None:
    shape = (graph.num_nodes, channels)
    x = phase * (2 * uniform(seed, *shape, dtype=dtype) - 1)
    inputs = leaves(graph.weight, x, normal(seed + 1, *shape), torch.tensor(1.3), dtype=dtype)
    upstream = normal(seed + 2, *shape, dtype=dtype)
    wide = leaves(*inputs, dtype=torch.float64)
    expected = with_gradients(field_by_definition(graph.pattern, *wide, linear), wide, upstream)
    a, x, drive, strength = inputs
    system = CoupledSystem(graph.pattern, a, drive, strength, linear=linear)
    assert system.fits(x)
    all_near(with_gradients(system(x), inputs, upstream), expected, TOLERANCE[dtype], phase if linear else 1.0)


@LINEAR
def test_field_gradients_by_finite_differences(linear: bool) -> None:
    graph = ring(4)

    def field(a: Tensor, x: Tensor, drive: Tensor, strength: Tensor) -> Tensor:
        return CoupledSystem(graph.pattern, a, drive, strength, linear=linear)(x)

    inputs = leaves(uniform(0, graph.num_edges), normal(1, 4, 3), normal(2, 4, 3), torch.tensor(1.3).double())
    assert torch.autograd.gradcheck(field, inputs)


@pytest.mark.parametrize("linear", [False, True], ids=["kuramoto", "linear"])
def test_gradient_of_a_strength_of_zero(linear: bool) -> None:
    graph = ring(4)
    inputs = leaves(uniform(0, graph.num_edges), normal(1, 4, 3), normal(2, 4, 3), torch.tensor(0.0).double())
    a, x, drive, strength = inputs
    upstream = normal(3, 4, 3)
    expected = with_gradients(field_by_definition(graph.pattern, *inputs, linear), inputs, upstream)
    ours = CoupledSystem(graph.pattern, a, drive, strength, linear=linear)(x)
    all_near(with_gradients(ours, inputs, upstream), expected, 1e-10)


@LINEAR
def test_a_second_derivative_is_refused(linear: bool) -> None:
    graph = ring(4)
    a, x, drive = leaves(graph.weight, normal(0, 4, 3), normal(1, 4, 3))
    y = CoupledSystem(graph.pattern, a, drive, 1.3, linear=linear)(x)
    (slope,) = torch.autograd.grad(y.square().sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="marked with @once_differentiable"):
        slope.sum().backward()


def test_operands_need_not_be_contiguous() -> None:
    graph = ring(6)
    a, x, drive = uniform(0, 2 * graph.num_edges)[::2], normal(1, 3, 6).t(), normal(2, 6, 1).expand(6, 3)
    inputs = [a.requires_grad_(), x.requires_grad_(), drive.requires_grad_(), torch.tensor(1.3, dtype=torch.float64)]
    upstream = torch.ones(1, 1, dtype=torch.float64).expand(6, 3)
    expected = with_gradients(field_by_definition(graph.pattern, *inputs, False), inputs[:3], upstream)
    ours = CoupledSystem(graph.pattern, a, drive, 1.3)(x)
    all_near(with_gradients(ours, inputs[:3], upstream), expected, 1e-10)


# Whole integrations.


def dynamics_of(pattern: Pattern, a: Tensor, drive: Tensor, strength: float | Tensor, linear: bool) -> Dynamics:
    if linear:
        return DiffusionDynamics(CoupledSystem(pattern, a, drive, strength, linear=True))
    return KuramotoDynamics(pattern, a, drive, float(torch.as_tensor(strength).detach()))


def flow_with_gradients(
    graph: Graph, inputs: list[Tensor], upstream: Tensor, linear: bool, solver: Solver, time: float = 0.8
) -> list[Tensor]:
    """State and gradients of couplings, start, drive (and strength, where the field learns one)."""
    a, x0, drive, strength = inputs
    wanted = inputs if linear else inputs[:3]
    final = integrate(dynamics_of(graph.pattern, a, drive, strength, linear), x0, time, solver).final
    return with_gradients(final, wanted, upstream)


def flow_inputs(
    graph: Graph, channels: int, seed: int, dtype: torch.dtype = torch.float64
) -> tuple[list[Tensor], Tensor]:
    shape = (graph.num_nodes, channels)
    inputs = leaves(
        graph.weight / 3, 3 * normal(seed, *shape), normal(seed + 1, *shape), torch.tensor(0.7), dtype=dtype
    )
    return inputs, normal(seed + 2, *shape, dtype=dtype)


@DTYPES
@LINEAR
@METHODS
@settings(max_examples=10)
@given(graphs(), CHANNELS, st.integers(0, 99), st.integers(1, 6))
def test_flow_is_backpropagation_through_torchs_steps(
    dtype: torch.dtype, linear: bool, method: str, graph: Graph, channels: int, seed: int, steps: int
) -> None:
    inputs, upstream = flow_inputs(graph, channels, seed, dtype)
    with use_backend("torch"):
        wide = leaves(*inputs, dtype=torch.float64)
        expected = flow_with_gradients(graph, wide, upstream, linear, Solver(method, steps=steps))
    ours = flow_with_gradients(graph, inputs, upstream, linear, Solver(method, steps=steps))
    all_near(ours, expected, TOLERANCE[dtype], terms=3.0)


@METHODS
def test_learnt_pull_and_source_get_their_gradients(method: str) -> None:
    """α and β of x' = α (A − I) x + β x(0), where β reaches the flow through its drive."""
    graph = ring(7)
    inputs = leaves(
        uniform(0, graph.num_edges), normal(1, 7, 5), torch.tensor(0.6).double(), torch.tensor(0.4).double()
    )
    a, x0, alpha, beta = inputs
    results = []
    for backend in ("torch", "fused"):
        with use_backend(backend):  # type: ignore[arg-type]
            dynamics = dynamics_of(graph.pattern, a, beta * x0, alpha, True)
            final = integrate(dynamics, x0, 1.0, Solver(method, steps=6)).final
            results.append(with_gradients(final, inputs, normal(2, 7, 5)))
    all_near(results[1], results[0], 1e-10)


@METHODS
def test_saved_states_and_interpolation_are_torchs(method: str) -> None:
    graph = ring(5)
    (a, x0, omega, _), _ = flow_inputs(graph, 3, 0)
    dynamics, times, results = KuramotoDynamics(graph.pattern, a, omega, 1.3), [0.0, 0.25, 0.33, 1.0], []
    for backend in ("torch", "fused"):
        with use_backend(backend):  # type: ignore[arg-type]
            ys = integrate(dynamics, x0, 1.0, Solver(method, steps=8), save_at=times).ys
            results.append(with_gradients(ys, [a, x0, omega], normal(1, *ys.shape)))
    all_near(results[1], results[0], 1e-10)


def test_evaluations_are_counted_as_torch_counts_them() -> None:
    graph = ring(5)
    (a, x0, omega, _), _ = flow_inputs(graph, 3, 0)
    dynamics, counts = KuramotoDynamics(graph.pattern, a, omega, 1.3), []
    for backend in ("torch", "fused"):
        with use_backend(backend):  # type: ignore[arg-type]
            counts.append(integrate(dynamics, x0, 1.0, Solver("rk4", steps=8), save_at=[0.5, 0.55, 1.0]).nfe)
    assert counts[0] == counts[1]


# Memory.


@DTYPES
@LINEAR
@METHODS
@pytest.mark.parametrize("steps", [1, 3, 4, 5, 16, 37])
def test_checkpoints_give_the_same_bits(dtype: torch.dtype, linear: bool, method: str, steps: int) -> None:
    graph = random_graph(20, 70, dtype)
    inputs, upstream = flow_inputs(graph, 37, 0, dtype)
    kept = flow_with_gradients(graph, inputs, upstream, linear, Solver(method, steps=steps))
    recomputed = flow_with_gradients(graph, inputs, upstream, linear, Solver(method, steps=steps, memory=1))
    assert_same_bits(recomputed, kept)


def flow_arguments(graph: Graph, dtype: torch.dtype, linear: bool, *, steps: int, memory: int, keep: bool) -> tuple:
    inputs, _ = flow_inputs(graph, 5, 0, dtype)
    if not keep:
        inputs = [tensor.detach() for tensor in inputs]
    coefficients = TABLEAUX["rk4"].coefficients(0.1)
    return (list(graph.pattern.layout), *inputs, linear, coefficients, steps, memory, keep)


@LINEAR
def test_checkpoints_take_less_memory(linear: bool) -> None:
    sizes = [
        fused.flow_op(*flow_arguments(ring(9), torch.float32, linear, steps=50, memory=memory, keep=True))[1].numel()
        for memory in (1, 1 << 30)
    ]
    assert 0 < 5 * sizes[0] < sizes[1]


@LINEAR
@pytest.mark.parametrize("steps", [1, 30])
@pytest.mark.parametrize("memory", [1, 1 << 30])
def test_nothing_is_kept_without_gradients_and_the_bits_stay(linear: bool, steps: int, memory: int) -> None:
    end, _ = fused.flow_op(*flow_arguments(ring(9), torch.float32, linear, steps=steps, memory=memory, keep=True))
    bare, tape = fused.flow_op(*flow_arguments(ring(9), torch.float32, linear, steps=steps, memory=memory, keep=False))
    assert tape.numel() == 0
    assert bare.equal(end)


@pytest.mark.parametrize("reason", ["no_grad", "inference_mode", "nothing requires a gradient", "learning"])
def test_a_tape_is_asked_for_only_where_something_is_learnt(reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = ring(5)
    (a, x0, omega, _), _ = flow_inputs(graph, 3, 0)
    asked, run = [], fused.flow

    def record(*arguments: object) -> object:
        asked.append(arguments[-1])
        return run(*arguments)

    monkeypatch.setattr(fused, "flow", record)
    if reason == "nothing requires a gradient":
        a, x0, omega = a.detach(), x0.detach(), omega.detach()
    context = {"no_grad": torch.no_grad, "inference_mode": torch.inference_mode}.get(reason, torch.enable_grad)
    with context():
        integrate(KuramotoDynamics(graph.pattern, a, omega, 1.3), x0, 1.0, Solver("rk4", steps=4))
    assert asked == [reason == "learning"]


@DTYPES
@LINEAR
@pytest.mark.parametrize("method", list(TABLEAUX))
def test_what_nothing_moves_keeps_its_bits(dtype: torch.dtype, linear: bool, method: str) -> None:
    """Inside, phases are counted in half turns; that must not show."""
    graph, x0 = ring(30), 10 ** torch.linspace(-6, 6, 30 * 21, dtype=dtype).view(30, 21)
    operands = (torch.zeros(graph.num_edges, dtype=dtype), torch.cat([x0[:15], -x0[15:]]), torch.zeros_like(x0))
    strength = torch.tensor(0.0 if linear else 1.3, dtype=dtype)
    coefficients = TABLEAUX[method].coefficients(0.1)
    end, _ = fused.flow_op(graph.pattern.layout, *operands, strength, linear, coefficients, 7, 1 << 20, False)
    assert end.equal(operands[1])


def test_whole_turns_at_the_start_are_there_at_the_end() -> None:
    graph = random_graph(30, 90, torch.float64)
    (a, x0, omega, strength), _ = flow_inputs(graph, 5, 0, torch.float64)
    turns = 2 * torch.pi * torch.randint(-1000, 1000, x0.shape).double()
    near, far = (
        integrate(KuramotoDynamics(graph.pattern, a, omega, strength), start, 3.0, Solver("rk4", steps=30)).final
        for start in (x0, x0 + turns)
    )
    torch.testing.assert_close(far - turns, near, atol=1e-10, rtol=0)


@LINEAR
def test_a_long_flow_in_float32_drifts_no_further_than_torchs(linear: bool) -> None:
    """Roundings that repeat at every step add up: the order of a sum decides."""
    graph = random_graph(300, 1200, torch.float32)
    inputs = [tensor.detach() for tensor in flow_inputs(graph, 16, 0, torch.float32)[0]]

    def end(dtype: torch.dtype, backend: Backend) -> Tensor:
        a, x0, drive, strength = (tensor.to(dtype) for tensor in inputs)
        with use_backend(backend):
            dynamics = dynamics_of(graph.pattern, a, drive, strength, linear)
            return integrate(dynamics, x0, 10.0, Solver("euler", steps=200)).final

    exact = end(torch.float64, "torch")
    ours, torchs = ((end(torch.float32, backend) - exact).norm() for backend in ("fused", "torch"))
    assert ours <= 1.5 * torchs


# Numbers that are not finite.


@DTYPES
@LINEAR
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_bad_numbers_reach_the_neighbours_and_nobody_else(dtype: torch.dtype, linear: bool, bad: float) -> None:
    graph = Graph.from_edge_index(torch.tensor([[0, 1], [1, 0]]), 3, dtype=dtype)
    x0 = torch.zeros(3, 20, dtype=dtype)
    x0[0, 17] = bad
    arguments = (graph.weight, x0, torch.zeros_like(x0), torch.tensor(1.0, dtype=dtype), linear)
    end, _ = fused.flow_op(graph.pattern.layout, *arguments, TABLEAUX["rk4"].coefficients(0.1), 2, 1, False)
    finite = torch.ones(3, 20, dtype=torch.bool)
    finite[:2, 17] = False
    assert torch.isfinite(end).equal(finite)


@DTYPES
@LINEAR
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_integration_from_a_bad_state_is_an_error(dtype: torch.dtype, linear: bool, bad: float) -> None:
    graph = ring(4, dtype)
    x0 = torch.zeros(4, 3, dtype=dtype)
    x0[1, 1] = bad
    with pytest.raises(SolverError, match="rk4 reached a state that is not finite at t = 0 of 1"):
        integrate(dynamics_of(graph.pattern, graph.weight, x0, 1.0, linear), x0, 1.0, Solver("rk4", steps=3))


def test_a_flow_that_diverges_says_when() -> None:
    graph = ring(4, torch.float32)
    x0 = torch.ones(4, 3)
    dynamics = dynamics_of(graph.pattern, 1e10 * graph.weight, x0, 1.0, True)
    with pytest.raises(SolverError, match=r"euler reached a state that is not finite at t = 4 of 9, evaluation 4;"):
        integrate(dynamics, x0, 9.0, Solver("euler", steps=9))


# Bits.


def results_of_everything(linear: bool, dtype: torch.dtype, channels: int, memory: int = 1 << 30) -> list[Tensor]:
    graph = random_graph(700, 4000, dtype)
    inputs, upstream = flow_inputs(graph, channels, 0, dtype)
    solver = Solver("rk4", steps=6, memory=memory)
    return flow_with_gradients(graph, inputs, upstream, linear, solver)


def repeated(run: Callable[[], list[Tensor]], set_threads: Callable[[int], None]) -> list[list[Tensor]]:
    runs = []
    for threads in (1, 2, 2, 1):
        set_threads(threads)
        runs.append(run())
    return runs


@DTYPES
@LINEAR
@pytest.mark.parametrize("memory", [1, 1 << 30])
def test_bits_of_a_flow_do_not_depend_on_threads_or_runs(
    dtype: torch.dtype, linear: bool, memory: int, set_threads: Callable[[int], None]
) -> None:
    first, *others = repeated(lambda: results_of_everything(linear, dtype, 37, memory), set_threads)
    for other in others:
        assert_same_bits(other, first)


@DTYPES
@LINEAR
def test_bits_of_a_flow_whose_rows_are_shared(
    dtype: torch.dtype, linear: bool, set_threads: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fewer tiles than threads: the threads share the rows of each stage."""
    set_threads(1)
    alone = results_of_everything(linear, dtype, 3, memory=1)
    monkeypatch.setattr(cpu_flow, "SHARED_STAGE", 0)
    crews, teams_for = [], cpu_flow.teams_for

    def record(*arguments: object) -> object:
        teams = teams_for(*arguments)
        crews.append(teams[1])
        return teams

    monkeypatch.setattr(cpu_flow, "teams_for", record)
    first, *others = repeated(lambda: results_of_everything(linear, dtype, 3, memory=1), set_threads)
    assert [crew is not None for crew in crews] == [False] * 2 + [True] * 4 + [False] * 2
    assert_same_bits(first, alone)
    for other in others:
        assert_same_bits(other, first)


@pytest.mark.parametrize("channels", [16, 37])
def test_renumbered_nodes_give_the_same_flow(channels: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Large graphs are renumbered inside the kernels; nobody outside may notice."""
    monkeypatch.setattr("kuramotognn.graph.REORDER_FROM", 2)
    graph = random_graph(300, 900, torch.float64)
    assert not graph.pattern.flow_layout[7].equal(graph.pattern.layout[7]), "the nodes keep their order"
    (a, x, drive, _), upstream = flow_inputs(graph, channels, 0, torch.float64)

    def run() -> list[Tensor]:
        flow = integrate(KuramotoDynamics(graph.pattern, a, drive, 1.2), x, 1.0, Solver("rk4", steps=3)).final
        return with_gradients(flow, (a, x, drive), upstream)

    fused_results = run()
    with use_backend("torch"):
        expected = run()
    for ours, theirs in zip(fused_results, expected, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-11, rtol=1e-11)


@LINEAR
def test_bits_of_the_field_do_not_depend_on_threads_or_runs(linear: bool, set_threads: Callable[[int], None]) -> None:
    graph = random_graph(700, 4000, torch.float32)
    inputs, upstream = flow_inputs(graph, 37, 0, torch.float32)

    def run() -> list[Tensor]:
        a, x, drive, strength = inputs
        return with_gradients(CoupledSystem(graph.pattern, a, drive, strength, linear=linear)(x), inputs, upstream)

    first, *others = repeated(run, set_threads)
    for other in others:
        assert_same_bits(other, first)


@DTYPES
def test_bits_of_attention_do_not_depend_on_threads_or_runs(
    dtype: torch.dtype, set_threads: Callable[[int], None]
) -> None:
    graph = random_graph(700, 4000, dtype)
    inputs = leaves(normal(0, 700, 3, 7, dtype=dtype), normal(1, 700, 3, 7, dtype=dtype), graph.weight)
    upstream = normal(2, graph.num_edges, dtype=dtype)
    first, *others = repeated(lambda: with_gradients(attention(graph.pattern, *inputs), inputs, upstream), set_threads)
    for other in others:
        assert_same_bits(other, first)


@DTYPES
def test_bits_of_a_sparse_product_do_not_depend_on_threads_or_runs(
    dtype: torch.dtype, set_threads: Callable[[int], None]
) -> None:
    graph = random_graph(700, 4000, dtype)
    inputs = leaves(graph.weight, normal(0, 700, 37, dtype=dtype))
    upstream = normal(1, 700, 37, dtype=dtype)
    first, *others = repeated(lambda: with_gradients(spmm(graph.pattern, *inputs), inputs, upstream), set_threads)
    for other in others:
        assert_same_bits(other, first)


# What torch expects of an operator.


def sample_arguments(name: str, dtype: torch.dtype, linear: bool) -> tuple:
    graph = ring(5)
    layout = list(graph.pattern.layout)
    inputs, _ = flow_inputs(graph, 3, 0, dtype)
    keys = leaves(normal(0, 5, 2, 2, 3, dtype=dtype))
    return {
        "field": lambda: (layout, *inputs, linear),
        "flow": lambda: flow_arguments(graph, dtype, linear, steps=2, memory=1 << 30, keep=True),
        "flow with checkpoints": lambda: flow_arguments(graph, dtype, linear, steps=9, memory=1, keep=True),
        "flow without tape": lambda: flow_arguments(graph, dtype, linear, steps=2, memory=1, keep=False),
        "attention": lambda: (layout, *keys, inputs[0]),
        "spmm": lambda: (layout, inputs[0], inputs[1]),
        "affine": lambda: (layout, inputs[0], *leaves(normal(0, 3, 5, dtype=dtype), normal(1, 3, dtype=dtype))),
        "affine without bias": lambda: (layout, inputs[0], *leaves(normal(0, 3, 5, dtype=dtype)), None),
    }[name]()


@DTYPES
@pytest.mark.parametrize(
    ("name", "linear"),
    [
        ("field", False),
        ("field", True),
        ("flow", False),
        ("flow", True),
        ("flow with checkpoints", False),
        ("flow with checkpoints", True),
        ("flow without tape", False),
        ("attention", False),
        ("spmm", False),
        ("affine", False),
        ("affine without bias", False),
    ],
)
def test_operators_pass_torchs_own_check(name: str, linear: bool, dtype: torch.dtype) -> None:
    operator = getattr(fused, f"{name.split()[0]}_op")
    torch.library.opcheck(operator, sample_arguments(name, dtype, linear))


@LINEAR
def test_a_compiled_flow_is_one_graph_and_gives_what_eager_gives(linear: bool) -> None:
    graph = ring(5)
    inputs, upstream = flow_inputs(graph, 3, 0)
    layout, coefficients = graph.pattern.layout, TABLEAUX["heun"].coefficients(0.1)

    def flow(a: Tensor, x0: Tensor, drive: Tensor, strength: Tensor) -> Tensor:
        end: Tensor = fused.flow(layout, a, x0, drive, strength, linear, coefficients, 5, 1 << 30, True)[0]
        return end

    torch._dynamo.reset()
    compiled = torch.compile(flow, backend="aot_eager", fullgraph=True)
    assert_same_bits(
        with_gradients(compiled(*inputs), inputs, upstream), with_gradients(flow(*inputs), inputs, upstream)
    )


# Dynamo traces through the cache of kernels.backend.why_not_fused and says so once per process; it also looks at the
# gradients of tensors that are no leaves when it resumes after a break.
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf:UserWarning")
@pytest.mark.filterwarnings("ignore:Dynamo detected a call to a `functools.lru_cache`-wrapped function:UserWarning")
@pytest.mark.parametrize("prepared", [True, False], ids=["graph", "edge_index"])
def test_a_compiled_model_gives_what_eager_gives(prepared: bool) -> None:
    graph, model = random_graph(12, 40, torch.float64), small_model()
    x, edges = normal(0, 12, 6), graph if prepared else graph.edge_index
    torch._dynamo.reset()
    compiled = torch.compile(model, backend="aot_eager", fullgraph=False)
    all_near(
        with_gradients(compiled(x, edges), list(model.parameters()), normal(1, 12, 3)),
        with_gradients(model(x, edges), list(model.parameters()), normal(1, 12, 3)),
        1e-12,
    )


def small_model() -> KuramotoGNN:
    torch.manual_seed(0)
    return KuramotoGNN(6, 20, 3, time=1.0, coupling=1.5, solver=Solver("rk4", steps=4)).double().eval()


# Attention.


@DTYPES
@settings(max_examples=60)
@given(
    graphs(weighted=False),
    st.sampled_from([1, 2, 3, 4, 5, 8]),
    st.sampled_from([1, 2, 7, 16, 19]),
    st.integers(0, 99),
    st.sampled_from([0.1, 1.0, 30.0]),
)
def test_attention_is_its_definition_forward_and_backward(
    dtype: torch.dtype, graph: Graph, heads: int, width: int, seed: int, scale: float
) -> None:
    """A third of the edges have weight zero: absent, and so may whole rows be."""
    shape = (graph.num_nodes, heads, width)
    weight = (uniform(seed, graph.num_edges) - 0.3).clamp(min=0.0)
    assume(bool(((weight == 0) | (weight > 1e-2)).all()))  # The gradient grows like 1 / weight.
    inputs = leaves(scale * normal(seed + 1, *shape), normal(seed + 2, *shape), weight, dtype=dtype)
    upstream = normal(seed + 3, graph.num_edges, dtype=dtype)
    wide = leaves(*inputs, dtype=torch.float64)
    expected = with_gradients(attention_per_edge(graph.pattern, *wide), wide, upstream)
    ours = with_gradients(attention(graph.pattern, *inputs), inputs, upstream)
    all_near(ours, expected, TOLERANCE[dtype], terms=max(1.0, scale))


def test_attention_gradients_by_finite_differences() -> None:
    graph = ring(5)
    inputs = leaves(normal(0, 5, 2, 3), normal(1, 5, 2, 3), 0.5 + uniform(2, graph.num_edges))
    assert torch.autograd.gradcheck(lambda key, query, weight: attention(graph.pattern, key, query, weight), inputs)


@DTYPES
def test_an_absent_edge_of_huge_score_takes_nothing_from_the_others(dtype: torch.dtype) -> None:
    """Node 0 hears 1 (absent) and 2; node 1 hears 2 (absent) only; node 2 hears nobody."""
    graph = Graph.from_edge_index(torch.tensor([[1, 2, 2], [0, 0, 1]]), 3, torch.tensor([0.0, 0.5, 0.0]).to(dtype))
    key = torch.ones(3, 1, 1, dtype=dtype)
    query = torch.tensor([0.0, 1e4, -1e4], dtype=dtype)[:, None, None]
    assert attention(graph.pattern, key, query, graph.weight).tolist() == [0.0, 1.0, 0.0]


@DTYPES
def test_huge_scores_give_the_highest_everything(dtype: torch.dtype) -> None:
    graph = Graph.from_edge_index(torch.tensor([[0, 1, 2], [0, 0, 0]]), 3, dtype=dtype)
    key = torch.full((3, 1, 1), 1e4, dtype=dtype)
    query = torch.tensor([1e4, 2e4, -3e4], dtype=dtype)[:, None, None]
    assert attention(graph.pattern, key, query, graph.weight).tolist() == [0.0, 1.0, 0.0]


@DTYPES
def test_an_absent_edge_has_no_gradient(dtype: torch.dtype) -> None:
    graph = Graph.from_edge_index(torch.tensor([[1, 2], [0, 0]]), 3, torch.tensor([0.0, 0.5]).to(dtype))
    inputs = leaves(normal(0, 3, 2, 3, dtype=dtype), normal(1, 3, 2, 3, dtype=dtype), graph.weight)
    attention(graph.pattern, *inputs)[0].backward()
    assert [float(tensor.grad.abs().max()) for tensor in inputs if tensor.grad is not None] == [0.0, 0.0, 0.0]


@DTYPES
@pytest.mark.parametrize("place", [0, 1])
def test_a_nan_in_a_key_reaches_its_row_and_no_other(dtype: torch.dtype, place: int) -> None:
    graph = ring(6, dtype)
    key, query = normal(0, 6, 2, 3, dtype=dtype), normal(1, 6, 2, 3, dtype=dtype)
    key[2, place, 1] = float("nan")
    assert attention(graph.pattern, key, query, graph.weight).isnan().equal(graph.pattern.row == 2)


@pytest.mark.parametrize("backend", ["fused", "torch"])
def test_operands_that_do_not_belong_together_are_refused(backend: Backend) -> None:
    """Compiled code would read and write past their ends."""
    graph = ring(4)
    x, a = normal(0, 4, 3), graph.weight
    with use_backend(backend):
        for state, couplings, drive, sentence in [
            (x[:2], a, x[:2], r"the state must have shape \[4, d\], got \[2, 3\]"),
            (x, a[:3], x, r"the couplings must have shape \[8\], got \[3\]"),
            (x, a, x[:1], r"the constant term must have shape \[4, 3\], got \[1, 3\]"),
        ]:
            system = CoupledSystem(graph.pattern, couplings, drive, 1.0)
            with pytest.raises(ValueError, match=sentence):
                system(state)
            with pytest.raises(ValueError, match=sentence):
                integrate(KuramotoDynamics(graph.pattern, couplings, drive, 1.0), state, 1.0, Solver(steps=2))
        key = normal(1, 4, 2, 3)
        with pytest.raises(ValueError, match=r"keys and queries must have shape \[4, 2, 2, 3\], got \[4, 1, 2, 3\]"):
            attention_of_both(graph.pattern, key[:, None], a)
        with pytest.raises(ValueError, match=r"keys and queries must have shape \[4, 2, 2, 3\], got \[2, 2, 2, 3\]"):
            attention(graph.pattern, key[:2], key[:2], a)
        with pytest.raises(ValueError, match=r"weights must have shape \[8\], got \[3\]"):
            attention(graph.pattern, key, key, a[:3])
        with pytest.raises(ValueError, match=r"the dense factor must have shape \[4, 3\], got \[2, 3\]"):
            spmm(graph.pattern, a, x[:2])
        with pytest.raises(ValueError, match=r"values must have shape \[8\], got \[3\]"):
            spmm(graph.pattern, a[:3], x)
        with pytest.raises(ValueError, match=r"the weight must have shape \[3, 4\], got \[3, 2\]"):
            affine(graph.pattern, a, x.t()[:, :2], None)
        with pytest.raises(ValueError, match=r"the bias must have shape \[3\], got \[2\]"):
            affine(graph.pattern, a, x.t(), x[0, :2])


@DTYPES
def test_a_nan_in_a_query_reaches_the_rows_that_look_at_it(dtype: torch.dtype) -> None:
    graph = ring(6, dtype)
    key, query = normal(0, 6, 2, 3, dtype=dtype), normal(1, 6, 2, 3, dtype=dtype)
    query[2, 0, 1] = float("nan")
    assert (
        attention(graph.pattern, key, query, graph.weight)
        .isnan()
        .equal((graph.pattern.row == 1) | (graph.pattern.row == 3))
    )


@pytest.mark.parametrize(("dtype", "tiny"), [(torch.float32, 1e-40), (torch.float64, 1e-310)], ids=str)
def test_rows_of_tiny_weights_still_sum_to_one(dtype: torch.dtype, tiny: float) -> None:
    graph = ring(4, dtype)
    keys = torch.zeros(4, 1, 1, dtype=dtype)
    a = attention(graph.pattern, keys, keys, tiny * graph.weight)
    torch.testing.assert_close(a, torch.full_like(a, 0.5))


# Sparse products.


@st.composite
def patterns(draw: st.DrawFn) -> Pattern:
    """Rectangular, with empty rows and columns; no row, no column or no entry included."""
    rows, cols = draw(st.integers(0, 12)), draw(st.integers(0, 12))
    density, seed = draw(st.sampled_from([0.0, 0.1, 0.4, 1.0])), draw(st.integers(0, 99))
    row, col = (uniform(seed, rows, cols) < density).nonzero().t().contiguous()
    return Pattern.from_sorted(row, col, rows, cols)


@DTYPES
@settings(max_examples=60)
@given(patterns(), CHANNELS, st.integers(0, 99))
def test_sparse_product_is_scipys(dtype: torch.dtype, pattern: Pattern, channels: int, seed: int) -> None:
    values = normal(seed, pattern.num_entries, dtype=dtype)
    dense = normal(seed + 1, pattern.num_cols, channels, dtype=dtype)
    shape = (pattern.num_rows, pattern.num_cols)
    matrix = sp.csr_matrix((values.double(), pattern.col, pattern.rowptr), shape=shape)
    expected = torch.from_numpy(matrix @ dense.double().numpy())
    assert_near(spmm(pattern, values, dense), expected, TOLERANCE[dtype])


@DTYPES
@settings(max_examples=60)
@given(patterns(), CHANNELS, st.integers(0, 99))
def test_sparse_product_has_the_gradients_of_the_dense_one(
    dtype: torch.dtype, pattern: Pattern, channels: int, seed: int
) -> None:
    inputs = leaves(normal(seed, pattern.num_entries), normal(seed + 1, pattern.num_cols, channels), dtype=dtype)
    upstream = normal(seed + 2, pattern.num_rows, channels, dtype=dtype)
    values, dense = leaves(*inputs, dtype=torch.float64)
    matrix = values.new_zeros(pattern.num_rows, pattern.num_cols).index_put((pattern.row, pattern.col), values)
    expected = with_gradients(matrix @ dense, [values, dense], upstream)
    all_near(with_gradients(spmm(pattern, *inputs), inputs, upstream), expected, TOLERANCE[dtype])


@pytest.mark.parametrize("wanted", [0, 1])
def test_sparse_product_gives_one_gradient_without_the_other(wanted: int) -> None:
    graph = ring(5)
    inputs = [graph.weight.clone(), normal(0, 5, 3)]
    inputs[wanted].requires_grad_()
    matrix = torch.zeros(5, 5, dtype=torch.float64).index_put((graph.pattern.row, graph.pattern.col), inputs[0])
    expected = with_gradients(matrix @ inputs[1], [inputs[wanted]], normal(1, 5, 3))
    all_near(with_gradients(spmm(graph.pattern, *inputs), [inputs[wanted]], normal(1, 5, 3)), expected, 1e-12)


@DTYPES
@settings(max_examples=60)
@given(patterns(), CHANNELS, st.integers(0, 99), st.booleans(), st.booleans())
def test_sparse_affine_map_is_the_dense_one(
    dtype: torch.dtype, pattern: Pattern, channels: int, seed: int, biased: bool, of_values: bool
) -> None:
    """With the gradients of weight and bias, and those of the values where they are asked for."""
    values = normal(seed, pattern.num_entries, dtype=dtype)
    parameters = [normal(seed + 1, channels, pattern.num_cols), *([normal(seed + 2, channels)] if biased else [])]
    upstream = normal(seed + 3, pattern.num_rows, channels, dtype=dtype)

    def run(kind: torch.dtype, compute: Callable[..., Tensor]) -> list[Tensor]:
        inputs = leaves(values, *parameters, dtype=kind)
        if not of_values:
            inputs[0] = inputs[0].detach()
        wanted = [each for each in inputs if each.requires_grad]
        return with_gradients(compute(*inputs), wanted, upstream.to(kind))

    def dense(values: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        matrix = values.new_zeros(pattern.num_rows, pattern.num_cols).index_put((pattern.row, pattern.col), values)
        return torch.nn.functional.linear(matrix, weight, bias)

    def sparse(values: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        return affine(pattern, values, weight, bias)

    expected = run(torch.float64, dense)
    all_near(run(dtype, sparse), expected, TOLERANCE[dtype])
    with use_backend("torch"):
        all_near(run(dtype, sparse), expected, TOLERANCE[dtype])


def test_bits_of_a_sparse_affine_map_do_not_depend_on_threads_or_runs(set_threads: Callable[[int], None]) -> None:
    pattern = random_graph(700, 4000, torch.float32).pattern
    inputs = leaves(*(normal(0, pattern.num_entries), normal(1, 37, 700), normal(2, 37)), dtype=torch.float32)
    upstream = normal(3, 700, 37, dtype=torch.float32)
    first, *others = repeated(lambda: with_gradients(affine(pattern, *inputs), inputs, upstream), set_threads)
    for other in others:
        assert_same_bits(other, first)


def test_a_transposed_weight_is_as_good() -> None:
    """A parameter may lie in memory in another order."""
    pattern, weight = ring(5).pattern, normal(0, 3, 5)
    strided = weight.t().contiguous().t()
    values = normal(1, pattern.num_entries)
    assert_same_bits([affine(pattern, values, strided, None)], [affine(pattern, values, weight, None)])


# Threads and processes.


def model_run(model: KuramotoGNN, x: Tensor, graph: Graph) -> list[Tensor]:
    return with_gradients(model(x, graph), list(model.parameters()), normal(1, graph.num_nodes, 3))


def test_four_threads_that_share_a_model_get_the_numbers_of_one(set_threads: Callable[[int], None]) -> None:
    set_threads(2)
    graph, model, x = random_graph(300, 1500, torch.float64), small_model(), normal(0, 300, 6)
    alone = model_run(model, x, graph)
    barrier = threading.Barrier(4)

    def work() -> list[list[Tensor]]:
        barrier.wait(30)
        return [model_run(model, x, graph) for _ in range(5)]

    with ThreadPoolExecutor(4) as pool:
        together = [future.result(60) for future in [pool.submit(work) for _ in range(4)]]
    for results in together:
        for result in results:
            assert_same_bits(result, alone)


def test_backward_may_run_in_another_thread() -> None:
    graph, model, x = random_graph(60, 300, torch.float64), small_model(), normal(0, 60, 6)
    expected = model_run(model, x, graph)
    logits = model(x, graph)
    with ThreadPoolExecutor(1) as pool:
        elsewhere = pool.submit(with_gradients, logits, list(model.parameters()), normal(1, 60, 3)).result(60)
    assert_same_bits(elsewhere, expected)


def flow_in_child(answer: Connection, graph: Graph, inputs: list[Tensor], upstream: Tensor) -> None:
    results = flow_with_gradients(graph, inputs, upstream, False, Solver("rk4", steps=6))
    answer.send([tensor.tolist() for tensor in results])
    answer.close()


# Python 3.12 and later warn of any fork in a process with threads; that it works is what is tested here.
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded, use of fork:DeprecationWarning")
@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="this system cannot fork")
def test_a_forked_child_can_integrate_after_its_parent_did(set_threads: Callable[[int], None]) -> None:
    set_threads(2)
    graph = random_graph(40, 160, torch.float64)
    inputs, upstream = flow_inputs(graph, 37, 0)
    expected = flow_with_gradients(graph, inputs, upstream, False, Solver("rk4", steps=6))
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    child = context.Process(target=flow_in_child, args=(there, graph, inputs, upstream))
    child.start()
    there.close()
    try:
        assert here.poll(20), "the child hangs"
        assert here.recv() == [tensor.tolist() for tensor in expected]
        child.join(20)
    finally:
        if child.is_alive():
            child.kill()
            child.join()
        here.close()
