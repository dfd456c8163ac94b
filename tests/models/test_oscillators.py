"""What holds for every oscillator model; the equations are checked in tests/fields."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch_geometric.data import Data

from kuramotognn import (
    MODELS,
    ContinuousGNN,
    GraphCON,
    KuramotoGNN,
    Solver,
)
from kuramotognn.features import as_features
from kuramotognn.fields import (
    AdaptiveKuramoto,
    DelayedKuramoto,
    Equation,
    ResidualKuramoto,
    Sakaguchi,
    SecondOrderKuramoto,
)
from tests.models.test_kuramotognn import example

EULER = Solver("euler", step_size=0.5)
MAKERS: dict[str, Callable[..., ContinuousGNN]] = {
    "kuramotognn-res": lambda *a, **k: KuramotoGNN(*a, equation=ResidualKuramoto(a[1]), **k),
    "kuramotognn-second-order": lambda *a, **k: KuramotoGNN(*a, equation=SecondOrderKuramoto(), **k),
    "kuramotognn-tv": lambda *a, **k: KuramotoGNN(*a, time_varying=True, **k),
    "kuramotognn-lag": lambda *a, **k: KuramotoGNN(*a, equation=Sakaguchi(), **k),
    "kuramotognn-delay": lambda *a, **k: KuramotoGNN(*a, equation=DelayedKuramoto(), **k),
    "kuramotognn-adaptive": lambda *a, **k: KuramotoGNN(*a, equation=AdaptiveKuramoto(), **k),
    "kuramotognn-signed": lambda *a, **k: KuramotoGNN(*a, adjacency="signed-attention", **k),
    "graphcon": GraphCON,
    "graphcon-attention": lambda *a, **k: GraphCON(*a, adjacency="attention", activation="tanh", **k),
    "graphcon-attention-tv": lambda *a, **k: GraphCON(*a, adjacency="attention", time_varying=True, **k),
    "graphcon-res": lambda *a, **k: GraphCON(*a, residual="linear", source="added", **k),
}


@pytest.fixture(params=MAKERS)
def model(request: pytest.FixtureRequest) -> ContinuousGNN:
    torch.manual_seed(0)
    return MAKERS[request.param](5, 8, 3, time=2.0, heads=2, solver=EULER).eval()


def test_called_like_a_pyg_model(model: ContinuousGNN) -> None:
    data = example()
    logits = model(data.x, data.edge_index)
    assert logits.shape == (12, 3)
    assert model.evaluations == 4
    assert model.flow(data.x, data.edge_index, save_at=[0.0, 0.7, 2.0]).ys.shape == (3, 12, 8)
    weighted = model(data.x, data.edge_index, 0.1 + torch.rand(data.edge_index.size(1)))
    assert not torch.allclose(weighted, logits)
    torch.testing.assert_close(model(data.x, data.edge_index, nodes=torch.tensor([3, 1])), logits[[3, 1]])


def test_the_flow_starts_at_the_encoded_features(model: ContinuousGNN) -> None:
    data = example()
    torch.testing.assert_close(model.flow(data.x, data.edge_index, save_at=[0.0]).final, model.encoder(data.x))


def test_sparse_features_give_the_same(model: ContinuousGNN) -> None:
    data = example()
    logits = model(data.x, data.edge_index)
    torch.testing.assert_close(model(data.x.to_sparse_coo(), data.edge_index), logits)
    torch.testing.assert_close(model(as_features(data.x.to_sparse_csr()), data.edge_index), logits)


def test_equivariant_under_node_permutation(model: ContinuousGNN) -> None:
    data, permutation = example(), torch.randperm(12)
    position = torch.argsort(permutation)
    permuted = model(data.x[permutation], position[data.edge_index])
    torch.testing.assert_close(permuted, model(data.x, data.edge_index)[permutation])


@pytest.mark.parametrize("num_nodes", [0, 1, 4])
def test_graphs_without_edges(model: ContinuousGNN, num_nodes: int) -> None:
    logits = model(torch.randn(num_nodes, 5), torch.empty(2, 0, dtype=torch.long))
    assert logits.shape == (num_nodes, 3)
    logits.sum().backward()


def test_an_isolated_node_does_not_hear_the_others(model: ContinuousGNN) -> None:
    x, edges = torch.randn(4, 5), torch.tensor([[0, 1, 2], [1, 2, 0]])
    other = torch.cat([torch.randn(3, 5), x[3:]])
    torch.testing.assert_close(model(x, edges)[3], model(other, edges)[3])
    assert not torch.allclose(model(x, edges)[:3], model(other, edges)[:3])


def test_every_parameter_gets_a_gradient(model: ContinuousGNN) -> None:
    data = example()
    model(data.x, data.edge_index).square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


def test_state_dict_round_trip_and_reset(model: ContinuousGNN, request: pytest.FixtureRequest) -> None:
    data, maker = example(), MAKERS[request.node.callspec.params["model"]]
    other = maker(5, 8, 3, time=2.0, heads=2, solver=EULER).eval()
    other.load_state_dict(model.state_dict())
    assert torch.equal(other(data.x, data.edge_index), model(data.x, data.edge_index))
    first = {name: value.clone() for name, value in maker(5, 8, 3, heads=2).state_dict().items()}
    for parameter in other.parameters():
        parameter.data.fill_(7.0)
    other.reset_parameters()
    for name, value in other.state_dict().items():
        assert value.abs().max() <= max(1.0, 2 * float(first[name].abs().max())), f"{name} was not reset"


def test_float64_throughout(model: ContinuousGNN) -> None:
    data = example()
    assert model.double()(data.x.double(), data.edge_index).dtype == torch.float64


@pytest.mark.parametrize(
    "equation", [Sakaguchi(0.0), DelayedKuramoto(0.0), AdaptiveKuramoto(0.0), ResidualKuramoto(8)], ids=repr
)
def test_limits_are_kuramotognn(equation: Equation) -> None:
    data = example()
    plain = KuramotoGNN(5, 8, 3, time=2.0, coupling=1.5, heads=2, solver=EULER).eval()
    variant = KuramotoGNN(5, 8, 3, time=2.0, coupling=1.5, heads=2, solver=EULER, equation=equation).eval()
    variant.load_state_dict(plain.state_dict(), strict=False)
    torch.testing.assert_close(variant(data.x, data.edge_index), plain(data.x, data.edge_index))


def test_signed_edges_that_all_attract_are_kuramotognn() -> None:
    data = example()
    plain = KuramotoGNN(5, 8, 3, time=2.0, heads=2, solver=EULER).eval()
    signed = KuramotoGNN(5, 8, 3, time=2.0, heads=2, solver=EULER, adjacency="signed-attention").eval()
    names = {f"field.adjacency.attention.{n}": v for n, v in plain.field.adjacency.state_dict().items()}  # type: ignore[union-attr]
    signed.load_state_dict({**plain.state_dict(), **names, "field.adjacency.bias": torch.tensor(50.0)}, strict=False)
    assert torch.equal(signed(data.x, data.edge_index), plain(data.x, data.edge_index))


def test_signed_models_welcome_negative_weights() -> None:
    data, weight = example(), torch.linspace(-1, 1, 60)
    model = KuramotoGNN(5, 8, 3, adjacency="signed-attention")
    assert model(data.x, data.edge_index, weight).isfinite().all()
    with pytest.raises(ValueError, match="edge weights must not be negative"):
        KuramotoGNN(5, 8, 3)(data.x, data.edge_index, weight)


def test_phase_range_clamps_the_start() -> None:
    model = KuramotoGNN(5, 8, 3, phase_range=(0.0, torch.pi), equation=Sakaguchi())
    start = model.flow(example().x * 50, example().edge_index, save_at=[0.0]).final
    assert (start.min().item(), start.max().item()) == pytest.approx((0.0, torch.pi))


@pytest.mark.parametrize("method", ["euler", "midpoint", "heun", "rk4", "imex", "dopri5"])
def test_graphcon_and_second_order_take_any_solver(method: str) -> None:
    solver = Solver(method) if method == "dopri5" else Solver(method, steps=200)
    data, finals = example(), []
    for maker in (GraphCON, MAKERS["kuramotognn-second-order"]):
        torch.manual_seed(0)
        model, fine = (maker(5, 8, 3, time=1.0, solver=s).eval() for s in (solver, Solver("rk4", steps=100)))
        fine.load_state_dict(model.state_dict())
        finals.append((model(data.x, data.edge_index), fine(data.x, data.edge_index)))
    for final, expected in finals:
        torch.testing.assert_close(final, expected, atol=3e-2, rtol=3e-2)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GraphCON(5, 8, 3, adjacency="gat"), "adjacency must be one of attention"),
        (lambda: GraphCON(5, 8, 3, activation="rely"), "did you mean 'relu'"),
        (lambda: GraphCON(5, 8, 3, damping=-1.0), "damping must be at least 0 and finite, got -1.0"),
        (lambda: KuramotoGNN(5, 8, 3, equation=DelayedKuramoto(delay=-1.0)), "delay must be at least 0"),
        (
            lambda: KuramotoGNN(5, 8, 3, heads=3, adjacency="signed-attention"),
            "heads must divide the attention width 8, got 3",
        ),
        (lambda: KuramotoGNN(5, 8, 3, adjacency="atention", equation=Sakaguchi()), "did you mean 'attention'"),
    ],
)
def test_wrong_settings_get_a_sentence(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_solvers_that_cannot_get_a_sentence() -> None:
    data: Data = example()
    with pytest.raises(ValueError, match=r"no longer than the delay 0\.2, got 0\.5; take at least 5 steps"):
        KuramotoGNN(5, 8, 3, time=1.0, equation=DelayedKuramoto(delay=0.2))(data.x, data.edge_index)
    with pytest.raises(ValueError, match="dopri5 keeps no past states for a delayed field"):
        KuramotoGNN(5, 8, 3, solver=Solver("dopri5"), equation=DelayedKuramoto())(data.x, data.edge_index)
    with pytest.raises(ValueError, match="imex is for second-order fields"):
        KuramotoGNN(5, 8, 3, solver=Solver("imex", steps=2), equation=Sakaguchi())(data.x, data.edge_index)


OURS = [name for name in MODELS if name.startswith(("kuramotognn-", "graphcon"))]


def test_the_registry_has_the_family() -> None:
    assert [name for name in MAKERS if not name.startswith("graphcon-att")] == OURS
