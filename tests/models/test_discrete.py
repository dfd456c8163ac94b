"""Against plain torch_geometric layers with the same parameters."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import GATConv, GCN2Conv, GCNConv, SAGEConv

from kuramotognn import GAT, GCN, GCNII, Graph, GraphSAGE
from kuramotognn.features import compact_features
from kuramotognn.models.discrete import DiscreteGNN, LayeredGNN
from kuramotognn.models.layers import symmetric

F_IN, HIDDEN, CLASSES, NODES = 12, 8, 3, 20
Edges = tuple[Tensor, Tensor]


def features() -> Tensor:
    return torch.randn(NODES, F_IN, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def edges(weights: bool = False) -> Edges:
    """Distinct directed edges, some self-loops, the last node isolated; whole numbers as weights."""
    generator = torch.Generator().manual_seed(1)
    ends = torch.unique(torch.randint(NODES - 1, (2, 80), generator=generator), dim=1)
    count = ends.size(1)
    weight = torch.randint(1, 4, (count,), generator=generator).double() if weights else torch.ones(count).double()
    return ends, weight


def build(kind: type[DiscreteGNN], **settings: object) -> DiscreteGNN:
    torch.manual_seed(0)
    return kind(F_IN, HIDDEN, CLASSES, **settings).double().eval()  # type: ignore[arg-type, call-arg]


def copied(conv: nn.Module, layer: nn.Module, names: dict[str, Tensor]) -> nn.Module:
    """A plain layer with our layer's parameters."""
    conv.double().load_state_dict({**layer.conv.state_dict(), **names})  # type: ignore[union-attr]
    return conv


def plain_gcn(model: LayeredGNN, x: Tensor, edge_index: Tensor, weight: Tensor) -> Tensor:
    for index, layer in enumerate(model.layers):
        w = layer.map.weight
        conv = copied(GCNConv(w.size(1), w.size(0)), layer, {"lin.weight": w})
        x = conv(x if index == 0 else F.relu(x), edge_index, weight)
    return x


def plain_sage(model: LayeredGNN, x: Tensor, edge_index: Tensor, weight: Tensor) -> Tensor:
    for index, layer in enumerate(model.layers):
        w = layer.map.weight
        names = {"lin_l.weight": w, "lin_l.bias": layer.map.bias, "lin_r.weight": layer.own.weight}
        conv = copied(SAGEConv(w.size(1), w.size(0)), layer, names)
        x = conv(x if index == 0 else F.relu(x), repeated(edge_index, weight))
    return x


def plain_gat(model: LayeredGNN, x: Tensor, edge_index: Tensor, weight: Tensor) -> Tensor:
    last = len(model.layers) - 1
    for index, layer in enumerate(model.layers):
        w, heads = layer.map.weight, layer.conv.heads
        conv = GATConv(w.size(1), w.size(0) // heads, heads=heads, concat=index < last)
        x = copied(conv, layer, {"lin.weight": w})(x if index == 0 else F.elu(x), repeated(edge_index, weight))
    return x


def plain_gcnii(model: GCNII, x: Tensor, edge_index: Tensor, weight: Tensor) -> Tensor:
    first = state = F.relu(model.encoder(x))
    for index, layer in enumerate(model.layers):
        conv = copied(GCN2Conv(HIDDEN, 0.1, 0.5, index + 1), layer, {})
        state = F.relu(conv(state, first, edge_index, weight))
    return model.decoder(state)


def repeated(edge_index: Tensor, weight: Tensor) -> Tensor:
    """An edge of weight n as n edges: what a weight means to layers of PyG that know none."""
    return edge_index.repeat_interleave(weight.long(), dim=1)


PLAIN: dict[type[DiscreteGNN], Callable[..., Tensor]] = {
    GCN: plain_gcn,
    GraphSAGE: plain_sage,
    GAT: plain_gat,
    GCNII: plain_gcnii,
}


@pytest.mark.parametrize("weights", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("kind", PLAIN)
def test_outputs_are_pygs(kind: type[DiscreteGNN], weights: bool) -> None:
    model = build(kind, layers=3)
    edge_index, weight = edges(weights)
    if kind is GAT and weights:  # PyG replaces a self-loop, whatever its weight.
        kept = edge_index[0] != edge_index[1]
        edge_index, weight = edge_index[:, kept], weight[kept]
    expected = PLAIN[kind](model, features(), edge_index, weight)
    torch.testing.assert_close(model(features(), edge_index, weight), expected)


def test_the_last_heads_are_averaged() -> None:
    model, (edge_index, weight) = build(GAT, layers=2, out_heads=3), edges()
    logits = model(features(), edge_index, weight)
    torch.testing.assert_close(logits, plain_gat(model, features(), edge_index, weight))
    assert logits.shape == (len(features()), CLASSES)


@pytest.mark.parametrize("kind", PLAIN)
def test_gradients_are_pygs(kind: type[DiscreteGNN]) -> None:
    model, (edge_index, weight), x = build(kind, layers=3), edges(), features()
    ours, theirs = x.clone().requires_grad_(), x.clone().requires_grad_()
    model(ours, edge_index, weight).square().sum().backward()
    PLAIN[kind](model, theirs, edge_index, weight).square().sum().backward()
    torch.testing.assert_close(ours.grad, theirs.grad)


@pytest.mark.parametrize("kind", PLAIN)
def test_gradients_of_parameters_by_finite_differences(kind: type[DiscreteGNN]) -> None:
    model, (edge_index, weight) = build(kind, layers=2), edges(True)
    for parameter in model.parameters():
        if parameter.dim() == 1:  # Biases start at zero, where a rectifier has a corner.
            nn.init.normal_(parameter, std=0.1)
    names, values = zip(*((name, p.detach().requires_grad_()) for name, p in model.named_parameters()), strict=True)
    x = compact_features(features() * (torch.rand(NODES, F_IN, generator=torch.Generator().manual_seed(2)) < 0.08))

    def loss(*parameters: Tensor) -> Tensor:
        return torch.func.functional_call(
            model, dict(zip(names, parameters, strict=True)), (x, edge_index, weight)
        ).sum(dim=0)

    assert torch.autograd.gradcheck(loss, values)


@pytest.mark.parametrize("norm", ["none", "batch", "layer"])
@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("kind", PLAIN)
def test_options_train(kind: type[DiscreteGNN], residual: bool, norm: str) -> None:
    model = build(kind, layers=4, residual=residual, norm=norm).train()
    model(features(), *edges()).square().sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_a_residual_adds_the_input() -> None:
    plain, residual = build(GCN, layers=3), build(GCN, layers=3, residual=True)
    for model in (plain, residual):
        for layer in model.layers[1:2]:  # type: ignore[index]
            nn.init.zeros_(layer.map.weight)
    edge_index, weight = edges()
    graph = Graph.from_edge_index(edge_index, NODES, weight)
    hidden = F.relu(residual.layers[0](features(), graph))  # type: ignore[index]
    torch.testing.assert_close(residual(features(), graph), residual.layers[2](hidden, graph))  # type: ignore[index]
    assert not torch.allclose(residual(features(), graph), plain(features(), graph))


def test_dropout_takes_part_in_training_only() -> None:
    model, (edge_index, weight) = build(GCN, dropout=0.9, input_dropout=0.9), edges()
    assert torch.equal(model(features(), edge_index, weight), model(features(), edge_index, weight))
    model.train()
    assert not torch.equal(model(features(), edge_index, weight), model(features(), edge_index, weight))


def test_a_graph_is_normalised_once() -> None:
    edge_index, weight = edges()
    graph = Graph.from_edge_index(edge_index, NODES, weight)
    assert symmetric(graph) is symmetric(graph)
    assert symmetric(graph) is not symmetric(Graph.from_edge_index(edge_index, NODES, weight))


@pytest.mark.parametrize("kind", PLAIN)
def test_edge_weights_can_be_learnt(kind: type[DiscreteGNN]) -> None:
    model, (edge_index, weight) = build(kind), edges()
    weight.requires_grad_()
    for _ in range(2):
        weight.grad = None
        model(features(), edge_index, weight).square().sum().backward()
        assert weight.grad is not None
        assert weight.grad.isfinite().all()
        assert weight.grad.any()


@pytest.mark.parametrize("kind", PLAIN)
def test_reset_draws_anew(kind: type[DiscreteGNN]) -> None:
    model = build(kind, norm="batch")
    before = {name: parameter.clone() for name, parameter in model.named_parameters()}
    model.reset_parameters()
    matrices = [name for name, parameter in model.named_parameters() if parameter.dim() > 1]
    assert all(not torch.equal(before[name], dict(model.named_parameters())[name]) for name in matrices)


@pytest.mark.parametrize(
    ("kind", "settings", "sentence"),
    [
        (GCN, {"layers": 0}, "layers must be positive and finite, got 0"),
        (GCN, {"dropout": 1.0}, "dropout must be at least 0 and below 1, got 1.0"),
        (GCN, {"norm": "bach"}, "norm must be one of none, batch, layer, got 'bach'; did you mean 'batch'?"),
        (GAT, {"heads": 3}, "heads must divide the attention width 8, got 3"),
        (GCNII, {"alpha": 1.5}, "alpha must be at least 0 and below 1, got 1.5"),
        (GCNII, {"theta": -1.0}, "theta must be positive and finite, got -1.0"),
    ],
)
def test_wrong_settings_get_a_sentence(kind: type[DiscreteGNN], settings: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValueError) as raised:  # noqa: PT011
        build(kind, **settings)
    assert sentence in str(raised.value)


@pytest.mark.parametrize("kind", PLAIN)
def test_wrong_inputs_get_a_sentence(kind: type[DiscreteGNN]) -> None:
    model, (edge_index, weight) = build(kind), edges()
    with pytest.raises(ValueError, match=r"x must have shape \[N, 12\], got \[20, 5\]"):
        model(features()[:, :5], edge_index, weight)
    with pytest.raises(ValueError, match="edge weights must not be negative"):
        model(features(), edge_index, -weight)
