"""Every oscillator field against SciPy on twenty nodes, forward and backward."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
import torch

from kuramotognn import (
    AdaptiveKuramoto,
    Attention,
    DampedOscillators,
    Field,
    Graph,
    RandomWalk,
    ResidualKuramoto,
    Sakaguchi,
    SecondOrderKuramoto,
    SignedAttention,
    Solver,
    SymmetricWalk,
    integrate,
    use_backend,
)
from kuramotognn.fields import PhaseField
from tests.fields import oracles
from tests.fields.oracles import Array, attention, graph20, matrix, signed_attention, sines, start, symmetric, walk

TIME = 1.5
RK4 = Solver("rk4", steps=30)
DOPRI5 = Solver("dopri5", rtol=1e-7, atol=1e-7)


def drawn(field: Field) -> Field:
    """In float64, with parameters that are not their first values."""
    generator = torch.Generator().manual_seed(1)
    for parameter in field.double().parameters():
        parameter.data = 0.4 * torch.randn(parameter.shape, dtype=torch.float64, generator=generator)
    return field


@dataclass(frozen=True)
class Case:
    """A field, and the phases at ``TIME`` that SciPy gives for the equation in its docstring."""

    make: Callable[[], Field]
    oracle: Callable[[Field, Array, Array], Array]
    signed: bool = False


def second_order(acceleration: Callable[[Array, Array], Array], x0: Array) -> Array:
    def velocity(z: Array) -> Array:
        return np.stack([z[1], acceleration(z[0], z[1])])

    return oracles.solve(velocity, np.stack([x0, x0]), TIME)[0]


def residual(field: PhaseField, w: Array, x0: Array) -> Array:
    r = field.equation.residual.detach().numpy()  # type: ignore[union-attr]
    return oracles.solve(lambda x: x0 + 1.3 * sines(walk(w), x, x) + x @ r.T, x0, TIME)


def with_inertia(field: PhaseField, w: Array, x0: Array) -> Array:
    return second_order(lambda x, y: x0 + 1.3 * sines(walk(w), x, x) - 0.7 * y, x0)


def time_varying(field: PhaseField, w: Array, x0: Array) -> Array:
    assert isinstance(field.adjacency, Attention)
    module = field.adjacency
    return oracles.solve(lambda x: x0 + 1.3 * sines(attention(module, w, x), x, x), x0, TIME)


def lagged(field: PhaseField, w: Array, x0: Array) -> Array:
    return oracles.solve(lambda x: x0 + 1.3 * sines(walk(w), x, x + 0.6), x0, TIME)


def adaptive(field: PhaseField, w: Array, x0: Array) -> Array:
    a0, n = walk(w), x0.size

    def velocity(z: Array) -> Array:
        x, a = z[:n].reshape(x0.shape), z[n:].reshape(a0.shape)
        agreement = np.cos(x[None] - x[:, None]).mean(axis=-1)
        return np.concatenate([(x0 + 1.3 * sines(a, x, x)).ravel(), (0.8 * (a0 * agreement - a)).ravel()])

    return oracles.solve(velocity, np.concatenate([x0.ravel(), a0.ravel()]), TIME)[:n].reshape(x0.shape)


def signed(field: PhaseField, w: Array, x0: Array) -> Array:
    assert isinstance(field.adjacency, SignedAttention)
    a = signed_attention(field.adjacency, w, x0)
    return oracles.solve(lambda x: x0 + 1.3 * sines(a, x, x), x0, TIME)


def graphcon(field: DampedOscillators, w: Array, x0: Array) -> Array:
    if isinstance(field.adjacency, Attention):
        module, frozen = field.adjacency, attention(field.adjacency, w, x0)
        couplings = (lambda x: attention(module, w, x)) if field.time_varying else (lambda x: frozen)
    else:
        constant = symmetric(w)
        couplings = lambda x: constant  # noqa: E731
    eye = np.eye(x0.shape[1])
    transform = (
        (eye, 0.0) if field.transform is None else tuple(p.detach().numpy() for p in field.transform.parameters())
    )
    r = 0 * eye if field.residual is None else field.residual.weight.detach().numpy()
    beta = 0.0 if field.beta is None else field.beta.item()
    act = np.tanh if field.activation is torch.tanh else (lambda v: v)

    def force(x: Array, y: Array) -> Array:
        inside = couplings(x) @ x @ transform[0].T + transform[1] + x @ r.T
        return act(inside) - 0.9 * x - 0.6 * y + beta * x0

    return second_order(force, x0)


def oscillators(adjacency: Callable[[], RandomWalk | Attention | SymmetricWalk], **options: object) -> Field:
    settings: dict[str, object] = {"activation": torch.tanh, "stiffness": 0.9, "damping": 0.6} | options
    return DampedOscillators(2, adjacency(), **settings)  # type: ignore[arg-type]


def heads() -> Attention:
    return Attention(2, heads=2, width=6)


CASES = {
    "residual": Case(lambda: PhaseField(RandomWalk(), ResidualKuramoto(2), coupling=1.3), residual),
    "second-order": Case(lambda: PhaseField(RandomWalk(), SecondOrderKuramoto(0.7), coupling=1.3), with_inertia),
    "time-varying": Case(lambda: PhaseField(heads(), coupling=1.3, time_varying=True), time_varying),
    "lag": Case(lambda: PhaseField(RandomWalk(), Sakaguchi(lag=0.6), coupling=1.3), lagged),
    "adaptive": Case(lambda: PhaseField(RandomWalk(), AdaptiveKuramoto(rate=0.8), coupling=1.3), adaptive),
    "signed": Case(lambda: PhaseField(SignedAttention(2, heads=2, width=6), coupling=1.3), signed, signed=True),
    "graphcon-gcn": Case(lambda: oscillators(SymmetricWalk), graphcon),
    "graphcon-attention": Case(lambda: oscillators(heads, transform=False, source="added"), graphcon),
    "graphcon-attention-tv": Case(lambda: oscillators(heads, time_varying=True), graphcon),
    "graphcon-res": Case(lambda: oscillators(SymmetricWalk, residual="linear"), graphcon),
    "graphcon-linear": Case(
        lambda: oscillators(SymmetricWalk, transform=False, activation=torch.nn.Identity(), source="added"), graphcon
    ),
}  # fmt: skip


def flow(field: Field, x0: torch.Tensor, graph: Graph, solver: Solver) -> torch.Tensor:
    dynamics = field(x0, graph)
    return dynamics.nodes(integrate(dynamics, dynamics.start(x0), TIME, solver).final)


@pytest.mark.parametrize("solver", [RK4, DOPRI5], ids=lambda s: s.method)
@pytest.mark.parametrize("name", CASES)
def test_flow_is_scipys(name: str, solver: Solver) -> None:
    case, x0 = CASES[name], start()
    field, graph = drawn(case.make()), graph20(signed=case.signed)
    expected = case.oracle(field, matrix(graph), x0.numpy())
    torch.testing.assert_close(flow(field, x0, graph, solver), torch.from_numpy(expected), atol=2e-6, rtol=2e-6)


@pytest.mark.parametrize("backend", ["fused", "torch"])
@pytest.mark.parametrize("name", CASES)
def test_gradient_is_scipys_difference_quotient(name: str, backend: str) -> None:
    """Along a random direction of the initial state, which is also the natural frequency and moves the attention."""
    case, x0, graph = CASES[name], start(), graph20(signed=CASES[name].signed)
    field, upstream, direction, size = drawn(case.make()), start(seed=7), start(seed=8), 1e-4
    w, x, d = matrix(graph), x0.numpy(), size * direction.numpy()
    quotient = (case.oracle(field, w, x + d) - case.oracle(field, w, x - d)) / (2 * size)
    with use_backend(backend):  # type: ignore[arg-type]
        (gradient,) = torch.autograd.grad(flow(field, x0.requires_grad_(), graph, RK4), x0, upstream)
    assert (gradient * direction).sum().item() == pytest.approx((upstream.numpy() * quotient).sum(), rel=1e-5, abs=1e-5)


class Flow(torch.nn.Module):
    """A field and its integration as one module, so that parameters read while flowing are replaced too."""

    def __init__(self, field: Field, graph: Graph) -> None:
        super().__init__()
        self.field, self.graph = field, graph

    def forward(self, weight: torch.Tensor) -> torch.Tensor:
        return flow(self.field, start(), Graph(self.graph.pattern, weight), Solver("heun", steps=3))


@pytest.mark.parametrize("name", CASES)
def test_gradients_of_parameters_and_weights_by_finite_differences(name: str) -> None:
    case = CASES[name]
    module = Flow(drawn(case.make()), graph20(signed=case.signed))
    names = [name for name, _ in module.named_parameters()]

    def final(weight: torch.Tensor, *parameters: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(module, dict(zip(names, parameters, strict=True)), (weight,))

    operands = (module.graph.weight, *module.parameters())
    assert torch.autograd.gradcheck(final, tuple(t.detach().requires_grad_() for t in operands), fast_mode=True)


@pytest.mark.parametrize("name", CASES)
def test_the_adjoint_solver_sees_every_tensor(name: str) -> None:
    case, gradients = CASES[name], []
    for adjoint in (False, True):
        field, x0, graph = drawn(case.make()), start(), graph20(signed=case.signed)
        graph = Graph(graph.pattern, graph.weight.clone().requires_grad_())
        final = flow(field, x0, graph, Solver("dopri5", rtol=1e-6, atol=1e-6, adjoint=adjoint))
        leaves = [graph.weight, *field.parameters()]
        parts = torch.autograd.grad(final.square().sum(), leaves)
        gradients.append(torch.cat([part.flatten() for part in parts]))
    torch.testing.assert_close(gradients[1], gradients[0], atol=1e-3, rtol=1e-3)
