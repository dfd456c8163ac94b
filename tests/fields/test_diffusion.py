import math

import pytest
import torch
import torchdiffeq
from hypothesis import given, settings
from hypothesis import strategies as st

from kuramotognn import Attention, Graph, KuramotoDynamics, RandomWalk, Solver, integrate
from kuramotognn.fields import Diffusion, DiffusionDynamics
from kuramotognn.kernels import CoupledSystem, use_backend
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
        linear = DiffusionDynamics(CoupledSystem(graph.pattern, a, torch.zeros_like(x0), 1.0, linear=True))
        kuramoto = KuramotoDynamics(graph.pattern, a, torch.zeros_like(x0), 1.0)
        difference = integrate(kuramoto, x0, 2.0, FINE).final - integrate(linear, x0, 2.0, FINE).final
        errors.append(difference.abs().max() / size)
    assert errors[0] < 1e-3
    assert 1.9 < torch.log10(errors[0] / errors[1]) < 2.1, "sin x = x − x³/6: the relative error is quadratic"


def test_without_a_source_there_is_no_beta() -> None:
    field = Diffusion(RandomWalk(), source="none")
    assert field.beta is None
    assert [name for name, _ in field.named_parameters()] == ["alpha"]


def test_without_a_source_the_drive_is_zero() -> None:
    x0 = start(5)
    assert not grand(0.5, None)(x0, ring(5)).system.drive.any()


def test_pull_and_source_start_at_one_half_and_zero() -> None:
    x0 = start(5)
    system = Diffusion(RandomWalk()).double()(x0, ring(5)).system
    assert (system.strength.item(), system.drive.abs().max().item()) == (0.5, 0.0)


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
