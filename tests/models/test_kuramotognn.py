import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import Sequential

from kuramotognn import Graph, Kuramoto, KuramotoConv, KuramotoGNN, Solver
from kuramotognn.features import as_features


def example(num_nodes: int = 12, seed: int = 0) -> Data:
    generator = torch.Generator().manual_seed(seed)
    edge_index = torch.randint(num_nodes, (2, 30), generator=generator)
    return Data(
        x=torch.randn(num_nodes, 5, generator=generator),
        edge_index=torch.cat([edge_index, edge_index.flip(0)], dim=1),
        num_nodes=num_nodes,
    )


@pytest.fixture
def data() -> Data:
    return example()


@pytest.fixture
def model() -> KuramotoGNN:
    torch.manual_seed(0)
    return KuramotoGNN(5, 8, 3, time=2.0, coupling=1.5, heads=2, solver=Solver("rk4", steps=4)).eval()


def test_called_like_a_pyg_model(model: KuramotoGNN, data: Data) -> None:
    logits = model(data.x, data.edge_index)
    assert logits.shape == (12, 3)
    assert model.evaluations == 16
    weighted = model(data.x, data.edge_index, torch.rand(data.edge_index.size(1)))
    assert not torch.equal(weighted, logits)


def test_a_ready_graph_and_sparse_features_give_the_same(model: KuramotoGNN, data: Data) -> None:
    logits = model(data.x, data.edge_index)
    graph = Graph.from_edge_index(data.edge_index, 12)
    torch.testing.assert_close(model(data.x, graph), logits)
    torch.testing.assert_close(model(data.x.to_sparse_coo(), graph), logits)
    torch.testing.assert_close(model(as_features(data.x.to_sparse_csr()), graph), logits)


def test_equivariant_under_node_permutation(data: Data) -> None:
    model = KuramotoGNN(5, 8, 3, time=2.0, solver=Solver("euler", steps=5)).double().eval()
    x, permutation = data.x.double(), torch.randperm(12)
    position = torch.argsort(permutation)
    logits = model(x, data.edge_index)
    permuted = model(x[permutation], position[data.edge_index])
    torch.testing.assert_close(permuted, logits[permutation], atol=1e-12, rtol=1e-12)


def test_isolated_nodes_turn_alone(model: KuramotoGNN) -> None:
    x = torch.randn(3, 5)
    phases = model.flow(x, torch.tensor([[0, 1], [1, 0]])).final
    omega = model.encoder(x)
    torch.testing.assert_close(phases[2], omega[2] * (1 + model.time))


@pytest.mark.parametrize("num_nodes", [0, 1, 4])
def test_graphs_without_edges(model: KuramotoGNN, num_nodes: int) -> None:
    logits = model(torch.randn(num_nodes, 5), torch.empty(2, 0, dtype=torch.long))
    assert logits.shape == (num_nodes, 3)
    logits.sum().backward()


def test_every_parameter_gets_a_gradient(model: KuramotoGNN, data: Data) -> None:
    model(data.x, data.edge_index).square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


def test_gradients_by_finite_differences(data: Data) -> None:
    torch.manual_seed(0)
    model = KuramotoGNN(5, 4, 3, time=1.0, heads=2, solver=Solver("heun", steps=3)).double().eval()
    names, values = zip(*model.named_parameters(), strict=True)

    def predict(*parameters: torch.Tensor) -> torch.Tensor:
        arguments = (data.x.double(), data.edge_index)
        return torch.func.functional_call(model, dict(zip(names, parameters, strict=True)), arguments)

    assert torch.autograd.gradcheck(predict, tuple(value.detach().requires_grad_() for value in values), fast_mode=True)


def test_state_dict_round_trip_and_reset(model: KuramotoGNN, data: Data) -> None:
    other = KuramotoGNN(5, 8, 3, time=2.0, coupling=1.5, heads=2, solver=Solver("rk4", steps=4)).eval()
    assert not torch.equal(other(data.x, data.edge_index), model(data.x, data.edge_index))
    other.load_state_dict(model.state_dict())
    assert torch.equal(other(data.x, data.edge_index), model(data.x, data.edge_index))
    other.reset_parameters()
    for name, value in other.state_dict().items():
        assert not torch.equal(value, model.state_dict()[name]), name


def test_to_moves_everything(model: KuramotoGNN, data: Data) -> None:
    assert model.double()(data.x.double(), data.edge_index).dtype == torch.float64
    assert all(parameter.device.type == "meta" for parameter in model.to("meta").parameters())


def test_dropout_acts_in_training_only(data: Data) -> None:
    model = KuramotoGNN(5, 8, 3, input_dropout=0.5, dropout=0.5)
    assert not torch.equal(model(data.x, data.edge_index), model(data.x, data.edge_index))
    model.eval()
    assert torch.equal(model(data.x, data.edge_index), model(data.x, data.edge_index))


def test_phase_range_clamps_the_start(data: Data) -> None:
    model = KuramotoGNN(5, 8, 3, phase_range=(0.0, torch.pi))
    start = model.flow(data.x * 50, data.edge_index, save_at=[0.0]).final
    assert start.min() == 0.0
    assert start.max().item() == pytest.approx(torch.pi)


@pytest.mark.parametrize("options", [{"adjacency": "random-walk"}, {"equation": Kuramoto("local-order")}, {"heads": 1}])
def test_variants_differ(options: dict[str, object], model: KuramotoGNN, data: Data) -> None:
    settings: dict[str, object] = {"heads": 2, "time": 2.0, "coupling": 1.5, "solver": Solver("rk4", steps=4)} | options
    variant = KuramotoGNN(5, 8, 3, **settings).eval()  # type: ignore[arg-type]
    variant.load_state_dict(model.state_dict(), strict=False)
    assert not torch.allclose(variant(data.x, data.edge_index), model(data.x, data.edge_index))


def test_conv_inside_a_pyg_model(data: Data) -> None:
    network = Sequential(
        "x, edge_index",
        [
            (torch.nn.Linear(5, 8), "x -> x"),
            (KuramotoConv(8, time=1.0), "x, edge_index -> x"),
            torch.nn.ReLU(inplace=True),
            (KuramotoConv(8, time=0.5, adjacency="random-walk", solver=Solver("dopri5")), "x, edge_index -> x"),
        ],
    )
    out = network(data.x, data.edge_index)
    assert out.shape == (12, 8)
    out.sum().backward()


def test_conv_is_the_flow_of_the_model(model: KuramotoGNN, data: Data) -> None:
    conv = KuramotoConv(8, time=2.0, coupling=1.5, heads=2, solver=Solver("rk4", steps=4))
    conv.field.load_state_dict(model.field.state_dict())
    phases = conv(model.encoder(data.x), data.edge_index)
    torch.testing.assert_close(phases, model.flow(data.x, data.edge_index).final)
    conv.reset_parameters()
    assert not torch.equal(conv(model.encoder(data.x), data.edge_index), phases)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"time": 0.0}, "time must be positive and finite, got 0.0"),
        ({"time": -3.0}, "time must be positive and finite, got -3.0"),
        ({"coupling": -1.0}, "coupling must be positive and finite, got -1.0"),
        ({"heads": 3}, "heads must divide the attention width 8, got 3; the nearest that does is 2"),
        ({"heads": 4, "attention_channels": 6}, "heads must divide the attention width 6, got 4"),
        ({"dropout": 1.0}, "dropout must be at least 0 and below 1, got 1.0"),
        ({"input_dropout": -0.1}, "input_dropout must be at least 0 and below 1, got -0.1"),
        ({"phase_range": (2.0, 1.0)}, "phase_range must be an interval"),
        ({"adjacency": "atention"}, "did you mean 'attention'"),
    ],
)
def test_wrong_settings_get_a_sentence(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        KuramotoGNN(5, 8, 3, **options)  # type: ignore[arg-type]


def test_wrong_inputs_get_a_sentence(model: KuramotoGNN, data: Data) -> None:
    with pytest.raises(ValueError, match=r"x must have shape \[N, 5\], got \[12, 4\]"):
        model(data.x[:, :4], data.edge_index)
    with pytest.raises(ValueError, match=r"edge 0 \(99 -> 0\) is out of range: the graph has 12 nodes"):
        model(data.x, torch.tensor([[99], [0]]))
    with pytest.raises(ValueError, match="the graph has 3 nodes but x has 12 rows"):
        model(data.x, Graph.from_edge_index(torch.tensor([[0], [1]]), 3))
    with pytest.raises(ValueError, match=r"edge_weight must be given to Graph\.from_edge_index"):
        model(data.x, Graph.from_edge_index(data.edge_index, 12), torch.ones(60))
