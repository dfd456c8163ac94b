"""The compiled field and flow against definitions that share no code with them, on every instruction set at hand."""

import multiprocessing
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from kuramotognn import Dynamics, Graph, KuramotoGNN, Solver, SolverError, integrate
from kuramotognn.fields import CoupledDynamics, Couplings
from kuramotognn.graph import Pattern
from kuramotognn.kernels import Backend, CoupledSystem, affine, attention, spmm, use_backend
from kuramotognn.kernels.attention.operator import edge_attention
from kuramotognn.kernels.flow import operator, system
from kuramotognn.kernels.flow.reference import kuramoto_per_edge
from kuramotognn.kernels.pattern_layout import flow_layout, layout
from kuramotognn.kernels.sparse.operator import product
from kuramotognn.solver import TABLEAUX
from tests.conftest import graphs, ring
from tests.kernels.comparing import (
    CHANNELS,
    DTYPES,
    TOLERANCE,
    all_near,
    assert_bits_never_change,
    assert_same_bits,
    leaves,
    normal,
    random_graph,
    uniform,
    with_gradients,
)

pytestmark = pytest.mark.usefixtures("isa")
LINEAR = pytest.mark.parametrize("linear", [False, True], ids=["kuramoto", "linear"])
METHODS = pytest.mark.parametrize("method", list(TABLEAUX))


# One right-hand side.


def field_by_definition(
    pattern: Pattern, a: Tensor, x: Tensor, source: Tensor, strength: Tensor, linear: bool
) -> Tensor:
    if linear:
        return source + strength * (pattern.sum_rows(a[:, None] * pattern.of_col(x)) - x)
    return source + strength * kuramoto_per_edge(pattern, a, x)


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
    a, x, source, strength = inputs
    system = CoupledSystem(graph.pattern, a, source, strength, linear=linear)
    assert system.fits(x)
    all_near(with_gradients(system(x), inputs, upstream), expected, TOLERANCE[dtype], phase if linear else 1.0)


@LINEAR
def test_field_gradients_by_finite_differences(linear: bool) -> None:
    graph = ring(4)

    def field(a: Tensor, x: Tensor, source: Tensor, strength: Tensor) -> Tensor:
        return CoupledSystem(graph.pattern, a, source, strength, linear=linear)(x)

    inputs = leaves(uniform(0, graph.num_edges), normal(1, 4, 3), normal(2, 4, 3), torch.tensor(1.3).double())
    assert torch.autograd.gradcheck(field, inputs)


@pytest.mark.parametrize("linear", [False, True], ids=["kuramoto", "linear"])
def test_gradient_of_a_strength_of_zero(linear: bool) -> None:
    graph = ring(4)
    inputs = leaves(uniform(0, graph.num_edges), normal(1, 4, 3), normal(2, 4, 3), torch.tensor(0.0).double())
    a, x, source, strength = inputs
    upstream = normal(3, 4, 3)
    expected = with_gradients(field_by_definition(graph.pattern, *inputs, linear), inputs, upstream)
    ours = CoupledSystem(graph.pattern, a, source, strength, linear=linear)(x)
    all_near(with_gradients(ours, inputs, upstream), expected, 1e-10)


@LINEAR
def test_second_derivatives_are_those_of_the_definition(linear: bool) -> None:
    graph = random_graph(6, 15, torch.float64)
    inputs = leaves(graph.weight, normal(0, 6, 3), normal(1, 6, 3), torch.tensor(1.3).double())

    def second(value: Tensor) -> list[Tensor]:
        slopes = torch.autograd.grad(value.square().sum(), inputs, create_graph=True)
        total = sum(slope.sin().sum() for slope in slopes)
        return list(torch.autograd.grad(total, inputs, materialize_grads=True))

    a, x, source, strength = inputs
    ours = second(CoupledSystem(graph.pattern, a, source, strength, linear=linear)(x))
    all_near(ours, second(field_by_definition(graph.pattern, *inputs, linear)), 1e-10)


@METHODS
@LINEAR
def test_second_derivatives_of_a_flow_are_torchs(method: str, linear: bool) -> None:
    graph = random_graph(6, 15, torch.float64)
    inputs, _ = flow_inputs(graph, 3, 0)
    results = []
    for backend in ("torch", "fused"):
        with use_backend(backend):  # type: ignore[arg-type]
            a, x0, source, strength = inputs
            final = integrate(dynamics_of(graph.pattern, a, source, strength, linear), x0, 0.8, Solver(method, steps=3))
            slopes = torch.autograd.grad(final.final.square().sum(), inputs[:3], create_graph=True)
            total = sum(slope.sin().sum() for slope in slopes)
            results.append(list(torch.autograd.grad(total, inputs[:3], materialize_grads=True)))
    all_near(results[1], results[0], 1e-9)


def test_operands_need_not_be_contiguous() -> None:
    graph = ring(6)
    a, x, source = uniform(0, 2 * graph.num_edges)[::2], normal(1, 3, 6).t(), normal(2, 6, 1).expand(6, 3)
    inputs = [a.requires_grad_(), x.requires_grad_(), source.requires_grad_(), torch.tensor(1.3, dtype=torch.float64)]
    upstream = torch.ones(1, 1, dtype=torch.float64).expand(6, 3)
    expected = with_gradients(field_by_definition(graph.pattern, *inputs, False), inputs[:3], upstream)
    ours = CoupledSystem(graph.pattern, a, source, 1.3)(x)
    all_near(with_gradients(ours, inputs[:3], upstream), expected, 1e-10)


# Whole integrations.


def dynamics_of(pattern: Pattern, a: Tensor, source: Tensor, strength: float | Tensor, linear: bool) -> Dynamics:
    if linear:
        return CoupledDynamics(Couplings(pattern, a), source, strength, linear=True)
    return CoupledDynamics(Couplings(pattern, a), source, float(torch.as_tensor(strength).detach()))


def flow_with_gradients(
    graph: Graph, inputs: list[Tensor], upstream: Tensor, linear: bool, solver: Solver, time: float = 0.8
) -> list[Tensor]:
    """State and gradients of couplings, start, source (and strength, where the field learns one)."""
    a, x0, source, strength = inputs
    wanted = inputs if linear else inputs[:3]
    final = integrate(dynamics_of(graph.pattern, a, source, strength, linear), x0, time, solver).final
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
def test_learnt_strength_and_source_get_their_gradients(method: str) -> None:
    """α and β of x' = α (A − I) x + β x(0), where β reaches the flow through its source."""
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
    dynamics, times, results = CoupledDynamics(Couplings(graph.pattern, a), omega, 1.3), [0.0, 0.25, 0.33, 1.0], []
    for backend in ("torch", "fused"):
        with use_backend(backend):  # type: ignore[arg-type]
            ys = integrate(dynamics, x0, 1.0, Solver(method, steps=8), save_at=times).ys
            results.append(with_gradients(ys, [a, x0, omega], normal(1, *ys.shape)))
    all_near(results[1], results[0], 1e-10)


def test_evaluations_are_counted_as_torch_counts_them() -> None:
    graph = ring(5)
    (a, x0, omega, _), _ = flow_inputs(graph, 3, 0)
    dynamics, counts = CoupledDynamics(Couplings(graph.pattern, a), omega, 1.3), []
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
    table = TABLEAUX["rk4"].coefficients(0.1)
    return (layout(graph.pattern), *inputs, linear, False, table, steps, memory, keep)


@LINEAR
def test_checkpoints_take_less_memory(linear: bool) -> None:
    sizes = [
        operator.flow(*flow_arguments(ring(9), torch.float32, linear, steps=50, memory=memory, keep=True))[1].numel()
        for memory in (1, 1 << 30)
    ]
    assert 0 < 5 * sizes[0] < sizes[1]


@LINEAR
@pytest.mark.parametrize("steps", [1, 30])
@pytest.mark.parametrize("memory", [1, 1 << 30])
def test_nothing_is_kept_without_gradients_and_the_bits_stay(linear: bool, steps: int, memory: int) -> None:
    end, _ = operator.flow(*flow_arguments(ring(9), torch.float32, linear, steps=steps, memory=memory, keep=True))
    bare, tape = operator.flow(*flow_arguments(ring(9), torch.float32, linear, steps=steps, memory=memory, keep=False))
    assert tape.numel() == 0
    assert bare.equal(end)


@pytest.mark.parametrize("reason", ["no_grad", "inference_mode", "nothing requires a gradient", "learning"])
def test_a_tape_is_asked_for_only_where_something_is_learnt(reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = ring(5)
    (a, x0, omega, _), _ = flow_inputs(graph, 3, 0)
    asked, run = [], system.flow

    def record(*arguments: object) -> object:
        asked.append(arguments[-1])
        return run(*arguments)

    monkeypatch.setattr(system, "flow", record)
    if reason == "nothing requires a gradient":
        a, x0, omega = a.detach(), x0.detach(), omega.detach()
    context = {"no_grad": torch.no_grad, "inference_mode": torch.inference_mode}.get(reason, torch.enable_grad)
    with context():
        integrate(CoupledDynamics(Couplings(graph.pattern, a), omega, 1.3), x0, 1.0, Solver("rk4", steps=4))
    assert asked == [reason == "learning"]


@DTYPES
@LINEAR
@pytest.mark.parametrize("method", list(TABLEAUX))
def test_what_nothing_moves_keeps_its_bits(dtype: torch.dtype, linear: bool, method: str) -> None:
    """Inside, phases are counted in half turns; that must not show."""
    graph, x0 = ring(30), 10 ** torch.linspace(-6, 6, 30 * 21, dtype=dtype).view(30, 21)
    operands = (torch.zeros(graph.num_edges, dtype=dtype), torch.cat([x0[:15], -x0[15:]]), torch.zeros_like(x0))
    strength = torch.tensor(0.0 if linear else 1.3, dtype=dtype)
    settings = (linear, False, TABLEAUX[method].coefficients(0.1), 7, 1 << 20, False)
    end, _ = operator.flow(layout(graph.pattern), *operands, strength, *settings)
    assert end.equal(operands[1])


def test_whole_turns_at_the_start_are_there_at_the_end() -> None:
    graph = random_graph(30, 90, torch.float64)
    (a, x0, omega, strength), _ = flow_inputs(graph, 5, 0, torch.float64)
    turns = 2 * torch.pi * torch.randint(-1000, 1000, x0.shape).double()
    near, far = (
        integrate(
            CoupledDynamics(Couplings(graph.pattern, a), omega, strength), start, 3.0, Solver("rk4", steps=30)
        ).final
        for start in (x0, x0 + turns)
    )
    torch.testing.assert_close(far - turns, near, atol=1e-10, rtol=0)


@LINEAR
def test_a_long_flow_in_float32_drifts_no_further_than_torchs(linear: bool) -> None:
    """Roundings that repeat at every step add up: the order of a sum decides."""
    graph = random_graph(300, 1200, torch.float32)
    inputs = [tensor.detach() for tensor in flow_inputs(graph, 16, 0, torch.float32)[0]]

    def end(dtype: torch.dtype, backend: Backend) -> Tensor:
        a, x0, source, strength = (tensor.to(dtype) for tensor in inputs)
        with use_backend(backend):
            dynamics = dynamics_of(graph.pattern, a, source, strength, linear)
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
    operands = (graph.weight, x0, torch.zeros_like(x0), torch.tensor(1.0, dtype=dtype))
    settings = (linear, False, TABLEAUX["rk4"].coefficients(0.1), 2, 1, False)
    end, _ = operator.flow(layout(graph.pattern), *operands, *settings)
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


@DTYPES
@LINEAR
@pytest.mark.parametrize("memory", [1, 1 << 30])
def test_bits_of_a_flow_do_not_depend_on_threads_or_runs(
    dtype: torch.dtype, linear: bool, memory: int, set_threads: Callable[[int], None]
) -> None:
    assert_bits_never_change(lambda: results_of_everything(linear, dtype, 37, memory), set_threads)


@LINEAR
def test_bits_of_a_flow_whose_rows_are_shared(linear: bool, set_threads: Callable[[int], None]) -> None:
    """Fewer tiles than threads, and many rows: the threads share the rows of each stage."""
    graph = random_graph(50_000, 160_000, torch.float32)
    inputs, upstream = flow_inputs(graph, 3, 0, torch.float32)

    def run() -> list[Tensor]:
        return flow_with_gradients(graph, inputs, upstream, linear, Solver("heun", steps=4, memory=1))

    assert_bits_never_change(run, set_threads)


@pytest.mark.parametrize("channels", [16, 37])
def test_renumbered_nodes_give_the_same_flow(channels: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Large graphs are renumbered inside the kernels; nobody outside may notice."""
    monkeypatch.setattr("kuramotognn.kernels.pattern_layout.REORDER_FROM", 2)
    graph = random_graph(300, 900, torch.float64)
    assert not flow_layout(graph.pattern).equal(layout(graph.pattern)), "the nodes keep their order"
    (a, x, source, _), upstream = flow_inputs(graph, channels, 0, torch.float64)

    def run() -> list[Tensor]:
        flow = integrate(
            CoupledDynamics(Couplings(graph.pattern, a), source, 1.2), x, 1.0, Solver("rk4", steps=3)
        ).final
        return with_gradients(flow, (a, x, source), upstream)

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
        a, x, source, strength = inputs
        return with_gradients(CoupledSystem(graph.pattern, a, source, strength, linear=linear)(x), inputs, upstream)

    assert_bits_never_change(run, set_threads)


# What torch expects of an operator.


def sample_arguments(name: str, dtype: torch.dtype, linear: bool) -> tuple:
    graph = ring(5)
    block = layout(graph.pattern)
    inputs, _ = flow_inputs(graph, 3, 0, dtype)
    keys, queries = leaves(normal(0, 5, 6, dtype=dtype), normal(1, 5, 6, dtype=dtype))
    return {
        "slope": lambda: (block, *inputs, linear, True, [1.0], 1, 1 << 30, True),
        "flow": lambda: flow_arguments(graph, dtype, linear, steps=2, memory=1 << 30, keep=True),
        "flow with checkpoints": lambda: flow_arguments(graph, dtype, linear, steps=9, memory=1, keep=True),
        "flow without tape": lambda: flow_arguments(graph, dtype, linear, steps=2, memory=1, keep=False),
        "attention": lambda: (block, keys, queries, inputs[0], 2),
        "product": lambda: (block, inputs[0], inputs[1], 5, False),
    }[name]()


@DTYPES
@pytest.mark.parametrize(
    ("name", "linear"),
    [
        ("slope", False),
        ("slope", True),
        ("flow", False),
        ("flow", True),
        ("flow with checkpoints", False),
        ("flow with checkpoints", True),
        ("flow without tape", False),
        ("attention", False),
        ("product", False),
    ],
)
def test_operators_pass_torchs_own_check(name: str, linear: bool, dtype: torch.dtype) -> None:
    chosen = {"attention": edge_attention, "product": product}.get(name, operator.flow)
    torch.library.opcheck(chosen, sample_arguments(name, dtype, linear))


@LINEAR
def test_a_compiled_flow_is_one_graph_and_gives_what_eager_gives(linear: bool) -> None:
    graph = ring(5)
    inputs, upstream = flow_inputs(graph, 3, 0)
    table = TABLEAUX["heun"].coefficients(0.1)

    def flow(a: Tensor, x0: Tensor, source: Tensor, strength: Tensor) -> Tensor:
        return CoupledSystem(graph.pattern, a, source, strength, linear=linear).flow(x0, table, 5, 1 << 30)

    eager = with_gradients(flow(*inputs), inputs, upstream)
    torch._dynamo.reset()
    compiled = torch.compile(flow, backend="aot_eager", fullgraph=True)
    assert_same_bits(with_gradients(compiled(*inputs), inputs, upstream), eager)


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


# Operands.


@pytest.mark.parametrize("backend", ["fused", "torch"])
def test_operands_that_do_not_belong_together_are_refused(backend: Backend) -> None:
    """Compiled code would read and write past their ends."""
    graph = ring(4)
    x, a = normal(0, 4, 3), graph.weight
    with use_backend(backend):
        for state, couplings, source, sentence in [
            (x[:2], a, x[:2], r"the state must have shape \[4, d\], got \[2, 3\]"),
            (x, a[:3], x, r"the couplings must have shape \[8\], got \[3\]"),
            (x, a, x[:1], r"the constant term must have shape \[4, 3\], got \[1, 3\]"),
        ]:
            system = CoupledSystem(graph.pattern, couplings, source, 1.0)
            with pytest.raises(ValueError, match=sentence):
                system(state)
            with pytest.raises(ValueError, match=sentence):
                integrate(
                    CoupledDynamics(Couplings(graph.pattern, couplings), source, 1.0), state, 1.0, Solver(steps=2)
                )
        key, bias = normal(1, 4, 3), normal(2, 4)
        for operands, sentence in [
            ((x[:2], key, key, bias, a), r"the states must have shape \[4, 3\], got \[2, 3\]"),
            ((x[:, :2], key, key, bias, a), r"the states must have shape \[4, 3\], got \[4, 2\]"),
            ((x, key, key[:2], bias, a), r"the query must have shape \[4, 3\], got \[2, 3\]"),
            ((x, key, key, bias[:2], a), r"the bias must have shape \[4\], got \[2\]"),
            ((x, key, key, bias, a[:3]), r"weights must have shape \[8\], got \[3\]"),
        ]:
            with pytest.raises(ValueError, match=sentence):
                attention(graph.pattern, *operands, 2)
        with pytest.raises(ValueError, match=r"the dense factor must have shape \[4, 3\], got \[2, 3\]"):
            spmm(graph.pattern, a, x[:2])
        with pytest.raises(ValueError, match=r"values must have shape \[8\], got \[3\]"):
            spmm(graph.pattern, a[:3], x)
        with pytest.raises(ValueError, match=r"the weight must have shape \[3, 4\], got \[3, 2\]"):
            affine(graph.pattern, a, x.t()[:, :2], None)
        with pytest.raises(ValueError, match=r"the bias must have shape \[3\], got \[2\]"):
            affine(graph.pattern, a, x.t(), x[0, :2])


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
