import math

import pytest
import torch
from hypothesis import given, settings
from torch_geometric.nn import GCNConv
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from kuramotognn import (
    Attention,
    DampedOscillators,
    Graph,
    RandomWalk,
    SecondOrderKuramoto,
    Solver,
    SymmetricWalk,
    integrate,
)
from kuramotognn.fields import PhaseField
from kuramotognn.fields.oscillator import Residual
from tests.conftest import graphs, ring
from tests.fields.oracles import graph20, matrix, start

NO_EDGES = Graph.from_edge_index(torch.empty(2, 0, dtype=torch.long), 3, dtype=torch.float64)


def damped(t: float, gamma: float, alpha: float) -> float:
    """x(t) of x'' = −γ x − α x', x(0) = x'(0) = 1."""
    discriminant = gamma - alpha**2 / 4
    decay = math.exp(-alpha * t / 2)
    if discriminant == 0:
        return decay * (1 + (1 + alpha / 2) * t)
    root = math.sqrt(abs(discriminant))
    cosine, sine = (math.cos, math.sin) if discriminant > 0 else (math.cosh, math.sinh)
    return decay * (cosine(root * t) + (1 + alpha / 2) / root * sine(root * t))


@pytest.mark.parametrize(("gamma", "alpha"), [(1.0, 0.0), (2.0, 0.5), (1.0, 2.0), (0.5, 3.0)])
@pytest.mark.parametrize("solver", [Solver("rk4", steps=300), Solver("imex", steps=2000)])
def test_uncoupled_nodes_are_damped_oscillators(gamma: float, alpha: float, solver: Solver) -> None:
    field = DampedOscillators(1, RandomWalk(), transform=False, stiffness=gamma, damping=alpha)
    x0 = torch.tensor([[0.5], [-2.0], [1.0]], dtype=torch.float64)
    dynamics = field(x0, NO_EDGES)
    final = dynamics.nodes(integrate(dynamics, dynamics.start(x0), 4.0, solver).final)
    tolerance = 1e-7 if solver.method == "rk4" else 1e-2
    torch.testing.assert_close(final, damped(4.0, gamma, alpha) * x0, atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("solver", [Solver("imex", steps=3), Solver("euler", steps=3)])
def test_step_dropout_acts_at_the_start_and_after_every_step(solver: Solver) -> None:
    """Velocities without a force change by dropout alone: four times with three steps, each time kept ones double."""
    field = DampedOscillators(1000, RandomWalk(), transform=False, stiffness=0.0, damping=0.0, step_dropout=0.5)
    x0 = torch.rand(3, 1000, dtype=torch.float64) + 1
    torch.manual_seed(0)
    dynamics = field(x0, NO_EDGES)
    position, velocity = integrate(dynamics, dynamics.start(x0), 3.0, solver).final.chunk(2, dim=-1)
    kept = velocity != 0
    torch.testing.assert_close(velocity[kept], 16 * x0[kept])
    assert kept.double().mean().item() == pytest.approx(1 / 16, abs=0.015)
    assert (position[kept] == 0).double().mean().item() == pytest.approx(1 / 2, abs=0.15)
    dynamics = field.eval()(x0, NO_EDGES)
    final = dynamics.nodes(integrate(dynamics, dynamics.start(x0), 3.0, solver).final)
    torch.testing.assert_close(final, 4 * x0)


@pytest.mark.parametrize("residual", ["none", "linear", "composed", "difference"])
def test_the_imex_step_is_graphcons_layer_on_pygs_convolution(residual: Residual) -> None:
    """Rusch et al., eq. 3: Y ← Y + Δt (σ(F(X)) − γX − αY), X ← X + Δt Y."""
    graph, x0, step = graph20(), start(channels=4), 0.5
    field = DampedOscillators(4, SymmetricWalk(), residual=residual, stiffness=0.8, damping=0.3).double()
    conv = GCNConv(4, 4).double()
    assert field.transform is not None
    conv.lin.weight.data, conv.bias.data = field.transform.weight.data, field.transform.bias.data
    x = y = x0
    for _ in range(6):
        own = -field.residual(conv.lin(x)) if residual == "composed" else 0.0
        own = field.residual(x) if residual in ("linear", "difference") else own
        own = own - conv.lin(x) if residual == "difference" else own
        force = torch.relu(conv(x, graph.edge_index, graph.weight) + own)
        y = y + step * (force - 0.8 * x - 0.3 * y)
        x = x + step * y
    dynamics = field(x0, graph)
    solution = integrate(dynamics, dynamics.start(x0), 3.0, Solver("imex", step_size=step))
    torch.testing.assert_close(dynamics.nodes(solution.final), x)
    assert solution.nfe == 6


@settings(max_examples=30)
@given(graphs())
def test_symmetric_walk_is_pygs_normalisation(graph: Graph) -> None:
    edges, weights = gcn_norm(graph.edge_index, graph.weight, graph.num_nodes)
    expected = torch.zeros(graph.num_nodes, graph.num_nodes, dtype=torch.float64)
    expected.index_put_((edges[1], edges[0]), weights, accumulate=True)
    walk = SymmetricWalk()
    looped = walk.support(graph)
    ours = torch.from_numpy(matrix(looped, walk(start(graph.num_nodes), looped)))
    torch.testing.assert_close(ours, expected)


def test_a_lone_self_loop_of_weight_zero_gives_nothing() -> None:
    weight = torch.tensor([0.0, 2.0], dtype=torch.float64, requires_grad=True)
    graph = Graph.from_edge_index(torch.tensor([[0, 0], [0, 1]]), 2, weight)
    a = SymmetricWalk()(start(2), graph)
    assert a.tolist() == [0.0, 0.0]
    (gradient,) = torch.autograd.grad(a.sum(), weight)
    assert gradient.isfinite().all()


def test_attention_coupling_is_frozen_or_not() -> None:
    x0, graph = start(channels=4), graph20()
    frozen, varying = (
        DampedOscillators(4, Attention(4, heads=2), transform=False, time_varying=flag).double()
        for flag in (False, True)
    )
    varying.load_state_dict(frozen.state_dict())
    y0, later = torch.zeros_like(x0), x0 + 0.5
    for x, equal in ((x0, True), (later * x0, False)):
        forces = [field(x0, graph).acceleration(0.0, x, y0) for field in (frozen, varying)]
        assert torch.allclose(*forces) is equal


def test_strong_damping_gives_the_first_order_model() -> None:
    """α x' ≈ ω + K Σ a sin: the second-order phases at α t approach the first-order ones at t like 1/α."""
    graph, x0 = ring(6), start(6, 2)
    first = integrate(PhaseField(RandomWalk(), coupling=1.4)(x0, graph), x0, 1.0, Solver("rk4", steps=100)).final
    errors = []
    for damping in (20.0, 40.0):
        dynamics = PhaseField(RandomWalk(), SecondOrderKuramoto(damping=damping), coupling=1.4)(x0, graph)
        solution = integrate(dynamics, dynamics.start(x0), damping, Solver("heun", step_size=0.04))
        errors.append((dynamics.nodes(solution.final) - first).abs().max().item())
    assert errors[0] < 0.2
    assert errors[0] / errors[1] == pytest.approx(2.0, abs=0.25)


def test_undamped_motion_keeps_its_energy() -> None:
    """With symmetric couplings ½ Σ y² − Σ ω x + ½ K Σ a (1 − cos(x_i − x_j)) is constant."""
    graph, x0 = ring(8), start(8, 1)
    dynamics = PhaseField(RandomWalk(), SecondOrderKuramoto(damping=0.0), coupling=1.2)(x0, graph)
    a = torch.from_numpy(matrix(graph, RandomWalk()(x0, graph)))

    def energy(state: torch.Tensor) -> float:
        x, y = state.chunk(2, dim=-1)
        bonds = 0.5 * 1.2 * (a * (1 - torch.cos(x - x.T))).sum()
        return float(0.5 * y.square().sum() - (x0 * x).sum() + bonds)

    start_state = dynamics.start(x0)
    final = integrate(dynamics, start_state, 5.0, Solver("rk4", steps=300)).final
    assert energy(final) == pytest.approx(energy(start_state), abs=1e-6)


@pytest.mark.parametrize("name", ["stiffness", "damping"])
def test_negative_constants_get_a_sentence(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must be at least 0 and finite, got -1.0"):
        DampedOscillators(2, RandomWalk(), **{name: -1.0})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="damping must be at least 0 and finite, got nan"):
        PhaseField(RandomWalk(), SecondOrderKuramoto(damping=math.nan))
