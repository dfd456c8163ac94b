"""Against plain torch_geometric layers with the same parameters."""

import inspect
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import GATConv, GCN2Conv, GCNConv, SAGEConv, models

from kuramotognn import GAT, GCN, GCNII, Graph, GraphSAGE
from kuramotognn.features import compact_features
from kuramotognn.models.discrete import DiscreteGNN
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


def build(kind: type[DiscreteGNN], num_layers: int = 2, **settings: object) -> DiscreteGNN:
    torch.manual_seed(0)
    return kind(F_IN, HIDDEN, num_layers, CLASSES, **settings).double().eval()  # type: ignore[arg-type]


def pyg(kind: type[nn.Module], conv: nn.Module, *sizes: object, **options: object) -> nn.Module:
    """PyG's own layer with our layer's parameters: their names agree."""
    other = kind(*sizes, **options).double()
    other.load_state_dict(conv.state_dict())
    return other


def plain_gcn(model: GCN, x: Tensor, edge_index: Tensor, weight: Tensor) -> Tensor:
    for index, conv in enumerate(model.convs):
        theirs = pyg(GCNConv, conv, conv.in_channels, conv.out_channels)
        x = theirs(x if index == 0 else F.relu(x), edge_index, weight)
    return x


def plain_sage(model: GraphSAGE, x: Tensor, edge_index: Tensor, weight: Tensor) -> Tensor:
    for index, conv in enumerate(model.convs):
        theirs = pyg(SAGEConv, conv, conv.in_channels, conv.out_channels)
        x = theirs(x if index == 0 else F.relu(x), repeated(edge_index, weight))
    return x


def plain_gat(model: GAT, x: Tensor, edge_index: Tensor, weight: Tensor) -> Tensor:
    for index, conv in enumerate(model.convs):
        theirs = pyg(GATConv, conv, conv.in_channels, conv.out_channels, heads=conv.heads, concat=conv.concat)
        x = theirs(x if index == 0 else F.elu(x), repeated(edge_index, weight))
    return x


def plain_gcnii(model: GCNII, x: Tensor, edge_index: Tensor, weight: Tensor) -> Tensor:
    first = state = F.relu(model.encoder(x))
    for index, conv in enumerate(model.convs):
        theirs = pyg(GCN2Conv, conv, HIDDEN, 0.1, 0.5, index + 1)
        state = F.relu(theirs(state, first, edge_index, weight))
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
    model = build(kind, num_layers=3)
    edge_index, weight = edges(weights)
    if kind is GAT and weights:  # PyG replaces a self-loop, whatever its weight.
        kept = edge_index[0] != edge_index[1]
        edge_index, weight = edge_index[:, kept], weight[kept]
    expected = PLAIN[kind](model, features(), edge_index, weight)
    torch.testing.assert_close(model(features(), edge_index, weight), expected)


def test_the_last_heads_are_averaged() -> None:
    model, (edge_index, weight) = build(GAT, num_layers=2, out_heads=3), edges()
    logits = model(features(), edge_index, weight)
    torch.testing.assert_close(logits, plain_gat(model, features(), edge_index, weight))
    assert logits.shape == (len(features()), CLASSES)


@pytest.mark.parametrize("norm", [None, "batch_norm"])
@pytest.mark.parametrize(("kind", "theirs"), [(GCN, models.GCN), (GraphSAGE, models.GraphSAGE), (GAT, models.GAT)])
def test_parameters_and_signature_are_those_of_pygs_models(
    kind: type[DiscreteGNN], theirs: type[nn.Module], norm: str | None
) -> None:
    """Positional arguments mean the same, and a state_dict of one loads into the other."""
    ours, of_pyg = (list(inspect.signature(each).parameters) for each in (kind, theirs))
    assert ours[:4] == of_pyg[:4] == ["in_channels", "hidden_channels", "num_layers", "out_channels"]
    options = {"heads": 2} if kind is GAT else {}
    torch.manual_seed(1)
    other = theirs(F_IN, HIDDEN, 3, CLASSES, norm=norm, act="elu" if kind is GAT else "relu", **options).double().eval()
    own = {"heads": 2, "out_heads": 2} if kind is GAT else {}
    model = build(kind, 3, norm="batch" if norm else "none", **own)
    model.load_state_dict(other.state_dict())
    edge_index, _ = edges()
    torch.testing.assert_close(model(features(), edge_index), other(features(), edge_index))
    for name in ("in_channels", "hidden_channels", "out_channels", "num_layers"):
        assert getattr(model, name) == getattr(other, name)


def test_attention_weights_are_those_of_the_last_layer() -> None:
    model, (edge_index, _) = build(GAT, 2, out_heads=2), edges()
    logits, (ends, attention) = model(features(), edge_index, return_attention_weights=True)
    torch.testing.assert_close(logits, model(features(), edge_index))
    assert attention.shape == (ends.size(1), 2)
    total = torch.zeros(NODES, 2, dtype=torch.float64).index_add(0, ends[1], attention)
    torch.testing.assert_close(total, torch.ones_like(total))


@pytest.mark.parametrize("kind", PLAIN)
def test_gradients_are_pygs(kind: type[DiscreteGNN]) -> None:
    model, (edge_index, weight), x = build(kind, num_layers=3), edges(), features()
    ours, theirs = x.clone().requires_grad_(), x.clone().requires_grad_()
    model(ours, edge_index, weight).square().sum().backward()
    PLAIN[kind](model, theirs, edge_index, weight).square().sum().backward()
    torch.testing.assert_close(ours.grad, theirs.grad)


@pytest.mark.parametrize("kind", PLAIN)
def test_gradients_of_parameters_by_finite_differences(kind: type[DiscreteGNN]) -> None:
    model, (edge_index, weight) = build(kind, num_layers=2), edges(True)
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
    model = build(kind, num_layers=4, residual=residual, norm=norm).train()
    model(features(), *edges()).square().sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_a_residual_adds_the_input() -> None:
    plain, residual = build(GCN, num_layers=3), build(GCN, num_layers=3, residual=True)
    for model in (plain, residual):
        nn.init.zeros_(model.convs[1].lin.weight)  # type: ignore[union-attr,arg-type,index]
    edge_index, weight = edges()
    graph = Graph.from_edge_index(edge_index, NODES, weight)
    hidden = F.relu(residual.convs[0](features(), graph))  # type: ignore[index]
    torch.testing.assert_close(residual(features(), graph), residual.convs[2](hidden, graph))  # type: ignore[index]
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
        (GCN, {"num_layers": 0}, "num_layers must be positive and finite, got 0"),
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
