import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
import torchdiffeq
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from scipy.sparse import csr_matrix
from scipy.sparse.linalg import expm_multiply
from torch import Tensor

from kuramotognn import Attention, Graph, RandomWalk, Solver, integrate
from kuramotognn.fields import CoupledDynamics, Couplings, Diffusion, PhaseField
from kuramotognn.kernels import use_backend
from tests.conftest import graphs, ring

FINE = Solver("rk4", steps=200)


def start(num_nodes: int, channels: int = 3) -> torch.Tensor:
    return torch.randn(num_nodes, channels, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def grand(alpha: float, beta: float | None) -> Diffusion:
    """The field with settled numbers; its α is the logistic function of what it learns."""
    field = Diffusion(RandomWalk(), source="none" if beta is None else "initial").double()
    with torch.no_grad():
        field.alpha.fill_(math.log(alpha / (1 - alpha)))
        if field.beta is not None:
            field.beta.fill_(beta)
    return field


def matrix_of(graph: Graph, alpha: float) -> torch.Tensor:
    """α (A − I), A by counting."""
    dense = torch.zeros(graph.num_nodes, graph.num_nodes, dtype=torch.float64)
    dense[graph.pattern.row, graph.pattern.col] = graph.weight
    total = dense.sum(dim=1, keepdim=True)
    return alpha * (dense / torch.where(total == 0, 1.0, total) - torch.eye(graph.num_nodes, dtype=torch.float64))


def closed_form(matrix: torch.Tensor, beta: float, x0: torch.Tensor, time: float) -> torch.Tensor:
    """x(t) of x' = M x + β x(0), by the exponential of [[M, β], [0, 0]]: M itself has no inverse."""
    n = len(matrix)
    augmented = torch.zeros(2 * n, 2 * n, dtype=torch.float64)
    augmented[:n, :n] = matrix
    augmented[:n, n:] = beta * torch.eye(n, dtype=torch.float64)
    return (torch.linalg.matrix_exp(time * augmented) @ torch.cat([x0, x0]))[:n]


@settings(max_examples=20)
@given(graphs(weighted=False), st.sampled_from([0.1, 0.5, 0.9]), st.sampled_from([0.3, 2.0]))
def test_flow_is_the_matrix_exponential(graph: Graph, alpha: float, time: float) -> None:
    x0 = start(graph.num_nodes)
    final = integrate(grand(alpha, None)(x0, graph), x0, time, FINE).final
    torch.testing.assert_close(final, torch.linalg.matrix_exp(time * matrix_of(graph, alpha)) @ x0)


@settings(max_examples=20)
@given(graphs(weighted=False), st.sampled_from([0.1, 0.9]), st.sampled_from([-0.7, 0.0, 1.5]))
def test_flow_with_a_source_is_the_augmented_exponential(graph: Graph, alpha: float, beta: float) -> None:
    x0 = start(graph.num_nodes)
    final = integrate(grand(alpha, beta)(x0, graph), x0, 1.5, FINE).final
    torch.testing.assert_close(final, closed_form(matrix_of(graph, alpha), beta, x0, 1.5))


def test_weighted_edges_pull_in_proportion() -> None:
    graph = Graph.from_edge_index(torch.tensor([[1, 2], [0, 0]]), 3, torch.tensor([3.0, 1.0], dtype=torch.float64))
    x0 = torch.tensor([[0.0], [4.0], [-8.0]], dtype=torch.float64)
    velocity = grand(0.5, None)(x0, graph)(0.0, x0)
    torch.testing.assert_close(velocity, torch.tensor([[0.5], [-2.0], [4.0]], dtype=torch.float64))


def test_flow_is_torchdiffeqs() -> None:
    graph = ring(6)
    x0, matrix = start(6), matrix_of(graph, 0.6)
    times = torch.tensor([0.0, 2.0], dtype=torch.float64)
    oracle = torchdiffeq.odeint(lambda t, x: matrix @ x + 0.4 * x0, x0, times, rtol=1e-10, atol=1e-10)[-1]
    final = integrate(grand(0.6, 0.4)(x0, graph), x0, 2.0, FINE).final
    torch.testing.assert_close(final, oracle, atol=1e-8, rtol=1e-8)


def test_fixed_and_adaptive_steps_agree() -> None:
    graph, x0 = ring(6), start(6)
    dynamics = grand(0.6, 0.4)(x0, graph)
    adaptive = integrate(dynamics, x0, 2.0, Solver("dopri5", rtol=1e-10, atol=1e-10)).final
    torch.testing.assert_close(integrate(dynamics, x0, 2.0, FINE).final, adaptive, atol=1e-8, rtol=1e-8)


def test_small_phases_of_kuramoto_diffuse() -> None:
    graph = ring(6)
    a, errors = RandomWalk()(torch.empty(6, 0), graph), []
    for size in (1e-2, 1e-3):
        x0 = size * start(6)
        linear = CoupledDynamics(Couplings(graph.pattern, a), torch.zeros_like(x0), 1.0, linear=True)
        kuramoto = CoupledDynamics(Couplings(graph.pattern, a), torch.zeros_like(x0), 1.0)
        difference = integrate(kuramoto, x0, 2.0, FINE).final - integrate(linear, x0, 2.0, FINE).final
        errors.append(difference.abs().max() / size)
    assert errors[0] < 1e-3
    assert 1.9 < torch.log10(errors[0] / errors[1]) < 2.1, "sin x = x − x³/6: the relative error is quadratic"


def test_without_a_source_there_is_no_beta() -> None:
    field = Diffusion(RandomWalk(), source="none")
    assert field.beta is None
    assert [name for name, _ in field.named_parameters()] == ["alpha"]


def test_without_a_source_the_constant_term_is_zero() -> None:
    x0 = start(5)
    assert not grand(0.5, None)(x0, ring(5)).source.any()


def test_strength_and_source_start_at_one_half_and_zero() -> None:
    x0 = start(5)
    dynamics = Diffusion(RandomWalk()).double()(x0, ring(5))
    assert (dynamics.strength.item(), dynamics.source.abs().max().item()) == (0.5, 0.0)


def test_reset_gives_the_first_numbers_again() -> None:
    field = grand(0.9, 2.0)
    field.reset_parameters()
    assert [parameter.item() for parameter in field.parameters()] == [0.0, 0.0]


@pytest.mark.parametrize("backend", ["fused", "torch"])
@pytest.mark.parametrize("solver", [Solver("euler", steps=5), Solver("rk4", steps=2)], ids=lambda s: s.method)
def test_gradients_of_pull_and_source_by_finite_differences(backend: str, solver: Solver) -> None:
    graph, field = ring(4), grand(0.6, 0.4)

    def flow(alpha: torch.Tensor, beta: torch.Tensor, x0: torch.Tensor) -> torch.Tensor:
        dynamics = torch.func.functional_call(field, {"alpha": alpha, "beta": beta}, (x0, graph))
        return integrate(dynamics, x0, 1.0, solver).final

    numbers = [torch.tensor(value, dtype=torch.float64, requires_grad=True) for value in (0.3, 0.4)]
    with use_backend(backend):  # type: ignore[arg-type]
        assert torch.autograd.gradcheck(flow, (*numbers, start(4, 1).requires_grad_()))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_every_parameter_gets_a_gradient(dtype: torch.dtype) -> None:
    field = Diffusion(Attention(4, heads=2)).to(dtype)
    x0 = start(5, 4).to(dtype)
    integrate(field(x0, ring(5, dtype)), x0, 1.0, Solver("rk4", steps=3)).final.square().sum().backward()
    assert [name for name, p in field.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0] == []


def test_the_adjoint_solver_sees_pull_source_and_couplings() -> None:
    gradients = []
    for adjoint in (False, True):
        field, x0 = grand(0.6, 0.4), start(5)
        solver = Solver("dopri5", rtol=1e-9, atol=1e-9, adjoint=adjoint)
        final = integrate(field(x0, ring(5)), x0, 1.0, solver).final
        gradients.append(torch.stack(torch.autograd.grad(final.square().sum(), list(field.parameters()))))
    torch.testing.assert_close(gradients[1], gradients[0], atol=1e-6, rtol=1e-6)


# Every kind of diffusion with attention on a weighted graph of 20 nodes, against SciPy and torchdiffeq.

KINDS = {
    "grand-l": {"source": "initial"},
    "grand-l-no-x0": {"source": "none"},
    "grand-nl": {"source": "initial", "time_varying": True},
    "grand++": {"source": "labelled", "source_dropout": 0.0},
}
LABELLED = torch.tensor([2, 3, 11, 17])
RightHandSide = Callable[[Tensor, Tensor], Tensor]


def weighted_graph(num_nodes: int = 20) -> Graph:
    """Random edges, one way or both, with weights; the last node has none."""
    generator = torch.Generator().manual_seed(4)
    ends = torch.randint(num_nodes - 1, (2, 70), generator=generator)
    return Graph.from_edge_index(ends, num_nodes, torch.rand(70, generator=generator, dtype=torch.float64) + 0.2)


def make_field(kind: str) -> Diffusion:
    torch.manual_seed(0)
    field = Diffusion(Attention(4, heads=2), **KINDS[kind]).double()  # type: ignore[arg-type]
    field.set_training_nodes(LABELLED)
    with torch.no_grad():
        field.alpha.fill_(0.4)
        if field.beta is not None:
            field.beta.fill_(0.3)
    return field


def dense_attention(field: Diffusion, graph: Graph, x: Tensor) -> Tensor:
    """The attention matrix, by its definition on dense matrices."""
    attention = field.adjacency
    assert isinstance(attention, Attention)
    weight = torch.zeros(len(x), len(x), dtype=x.dtype)
    weight[graph.pattern.row, graph.pattern.col] = graph.weight
    heads = []
    keys = (x @ attention.key.weight.t() + attention.key.bias).chunk(attention.heads, dim=1)
    queries = (x @ attention.query.weight.t()).chunk(attention.heads, dim=1)
    for key, query in zip(keys, queries, strict=True):
        exponential = weight * torch.exp(key @ query.t() / math.sqrt(key.size(1)))
        total = exponential.sum(dim=1, keepdim=True)
        heads.append(exponential / torch.where(total == 0, 1.0, total))
    return torch.stack(heads).mean(dim=0)


def dense_right_hand_side(field: Diffusion, graph: Graph, x0: Tensor) -> RightHandSide:
    """The equation of the field on dense matrices."""
    source = torch.zeros_like(x0)
    if field.source == "initial":
        assert field.beta is not None
        source = field.beta * x0
    elif field.source == "labelled":
        inside = torch.zeros(len(x0), 1, dtype=x0.dtype)
        inside[LABELLED] = 1.0
        source = inside * (x0 - (inside * x0).sum(dim=0) / len(LABELLED))
    frozen = dense_attention(field, graph, x0)

    def velocity(t: Tensor, x: Tensor) -> Tensor:
        a = dense_attention(field, graph, x) if field.time_varying else frozen
        return torch.sigmoid(field.alpha) * (a @ x - x) + source

    return velocity


@pytest.mark.parametrize("kind", KINDS)
def test_flow_is_scipys(kind: str) -> None:
    graph, x0, field = weighted_graph(), start(20, 4), make_field(kind)
    velocity = dense_right_hand_side(field, graph, x0)

    @torch.no_grad()
    def flat(t: float, state: np.ndarray) -> np.ndarray:
        return velocity(torch.tensor(t), torch.from_numpy(state).view(20, 4)).flatten().numpy()

    oracle = solve_ivp(flat, (0.0, 2.0), x0.flatten().numpy(), rtol=1e-10, atol=1e-10).y[:, -1]
    final = integrate(field(x0, graph), x0, 2.0, FINE).final
    torch.testing.assert_close(final, torch.from_numpy(oracle).view(20, 4), atol=1e-7, rtol=1e-7)


@pytest.mark.parametrize("backend", ["fused", "torch"])
@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_torchdiffeqs(kind: str, backend: str) -> None:
    graph, x0, field = weighted_graph(), start(20, 4).requires_grad_(), make_field(kind)
    inputs = [x0, *field.parameters()]
    direction = start(20, 4).flip(0)
    times = torch.tensor([0.0, 1.0], dtype=torch.float64)
    oracle = torchdiffeq.odeint(dense_right_hand_side(field, graph, x0), x0, times, rtol=1e-9, atol=1e-9)[-1]
    expected = torch.autograd.grad((oracle * direction).sum(), inputs)
    with use_backend(backend):  # type: ignore[arg-type]
        final = integrate(field(x0, graph), x0, 1.0, Solver("rk4", steps=40)).final
        gradients = torch.autograd.grad((final * direction).sum(), inputs)
    for ours, theirs in zip(gradients, expected, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-7, rtol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_the_adjoint_solver_knows_all_that_the_field_depends_on(kind: str) -> None:
    gradients = []
    for adjoint in (False, True):
        field, x0 = make_field(kind), start(20, 4).requires_grad_()
        solver = Solver("dopri5", rtol=1e-9, atol=1e-9, adjoint=adjoint)
        final = integrate(field(x0, weighted_graph()), x0, 0.5, solver).final
        gradients.append(torch.autograd.grad(final.square().sum(), [x0, *field.parameters()]))
    for approximate, exact in zip(gradients[1], gradients[0], strict=True):
        torch.testing.assert_close(approximate, exact, atol=1e-5, rtol=1e-5)


def test_linear_flow_is_the_action_of_scipys_exponential() -> None:
    graph, x0, field = weighted_graph(), start(20, 4), make_field("grand-l-no-x0")
    with torch.no_grad():
        a = field.adjacency(x0, graph).numpy()
        alpha = float(field.alpha.sigmoid())
    matrix = csr_matrix((a, (graph.pattern.row.numpy(), graph.pattern.col.numpy())), shape=(20, 20))
    generator = alpha * (matrix - csr_matrix(np.eye(20)))
    final = integrate(field(x0, graph), x0, 5.0, FINE).final
    torch.testing.assert_close(final, torch.from_numpy(expm_multiply(5.0 * generator, x0.numpy())))


def test_grand_is_the_linearisation_of_kuramoto() -> None:
    """α = K and β = 1: the difference falls with the third power of the phases, relative to them with the second.

    Where rows of A sum to one: a node without edges stays in the Kuramoto model and decays by α(A − I)x.
    """
    graph, errors = Graph.from_edge_index(weighted_graph().edge_index, 20, self_loops=True, dtype=torch.float64), []
    for size in (1e-1, 1e-2):
        x0, field = size * start(20, 4), make_field("grand-l")
        with torch.no_grad():
            field.beta.fill_(1.0)  # type: ignore[union-attr]
        kuramoto = PhaseField(field.adjacency, coupling=field.alpha.sigmoid().item())
        flows = [integrate(each(x0, graph), x0, 1.0, FINE).final for each in (field, kuramoto)]
        errors.append((flows[0] - flows[1]).abs().max().item() / size)
    assert errors[1] < 1e-3
    assert 1.9 < math.log10(errors[0] / errors[1]) < 2.1


# The labelled source of GRAND++.


def test_only_labelled_nodes_are_sources_and_sources_add_to_zero() -> None:
    x0, field = start(20, 4), make_field("grand++")
    sources = make_source(field, x0, weighted_graph())
    others = [node for node in range(20) if node not in LABELLED.tolist()]
    assert not sources[others].any()
    torch.testing.assert_close(sources[LABELLED], x0[LABELLED] - x0[LABELLED].mean(dim=0))
    torch.testing.assert_close(sources.sum(dim=0), torch.zeros(4, dtype=torch.float64))


def test_sources_are_dropped_in_training_only() -> None:
    field = Diffusion(RandomWalk(), source="labelled", source_dropout=0.5).double()
    field.set_training_nodes(torch.arange(1000))
    x0, graph = start(1000), ring(1000)
    whole = make_source(field.eval(), x0, graph)
    torch.manual_seed(0)
    some = make_source(field.train(), x0, graph)
    silent = (some == 0).all(dim=1)
    assert 400 < int(silent.sum()) < 600
    torch.testing.assert_close(some[~silent], 2 * whole[~silent])


def make_source(field: Diffusion, x0: Tensor, graph: Graph) -> Tensor:
    return field(x0, graph).source  # type: ignore[attr-defined]


def test_without_labelled_nodes_the_remedy_is_told() -> None:
    field = Diffusion(RandomWalk(), source="labelled", source_dropout=0.0).double()
    with pytest.raises(ValueError, match="none is known yet; train with fit, load trained parameters, or call set_tra"):
        field(start(5), ring(5))
    field.set_training_nodes(torch.tensor([1, 7]))
    with pytest.raises(ValueError, match="go up to number 7, but the graph has 5 nodes"):
        field(start(5), ring(5))


def test_labelled_nodes_are_saved_and_loaded() -> None:
    field, other = (
        make_field("grand++"),
        Diffusion(Attention(4, heads=2), source="labelled", source_dropout=0.0).double(),
    )
    other.load_state_dict(field.state_dict())
    assert other.training_nodes.tolist() == LABELLED.tolist()


def test_other_sources_have_no_use_for_labelled_nodes() -> None:
    field = make_field("grand-l")
    assert "training_nodes" not in field.state_dict()


def test_an_unknown_source_is_refused() -> None:
    with pytest.raises(ValueError, match="source must be one of initial, labelled, none, got 'labeled'; did you mean"):
        Diffusion(RandomWalk(), source="labeled")  # type: ignore[arg-type]


def test_a_source_of_another_type_is_refused_with_the_choices() -> None:
    with pytest.raises(ValueError, match="source must be one of initial, labelled, none, got False"):
        Diffusion(RandomWalk(), source=False)  # type: ignore[arg-type]
