"""What PyTorch and PyG code expects of a module, for each kind of flow."""

import copy
import io
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data
from torch_geometric.explain import Explainer, GNNExplainer
from torch_geometric.nn import global_mean_pool
from torch_geometric.utils import to_torch_coo_tensor, to_torch_csr_tensor

from kuramotognn import GAT, GCN, GRAND, Graph, GraphCON, KuramotoConv, KuramotoGNN, Solver, integrate
from kuramotognn.features import as_features
from kuramotognn.models.continuous import GraphFlow
from tests.models.test_kuramotognn import example

MAKERS: dict[str, Callable[[], GraphFlow]] = {
    "KuramotoGNN": lambda: KuramotoGNN(5, 8, 3, time=2.0, heads=2),
    "KuramotoConv": lambda: KuramotoConv(5, heads=1),
    "GRAND": lambda: GRAND(5, 8, 3, time=2.0, heads=2),
    "GraphCON": lambda: GraphCON(5, 8, 3, time=2.0, adjacency="attention", heads=2),
}


@pytest.fixture(params=MAKERS)
def model(request: pytest.FixtureRequest) -> GraphFlow:
    torch.manual_seed(0)
    return MAKERS[request.param]().eval()


@pytest.fixture
def data() -> Data:
    return example()


def saved(model: nn.Module) -> nn.Module:
    buffer = io.BytesIO()
    torch.save(model, buffer)
    buffer.seek(0)
    copied: nn.Module = torch.load(buffer, weights_only=False)
    return copied


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model)), saved])
def test_a_copy_predicts_the_same_and_is_independent(model: GraphFlow, data: Data, copied: Any) -> None:
    expected = model(data.x, data.edge_index)
    other = copied(model)
    assert torch.equal(other(data.x, data.edge_index), expected)
    for parameter in other.parameters():
        nn.init.zeros_(parameter)
    assert torch.equal(model(data.x, data.edge_index), expected)


def test_state_dict_round_trip(model: GraphFlow, data: Data, request: pytest.FixtureRequest) -> None:
    torch.manual_seed(1)
    other = MAKERS[request.node.callspec.params["model"]]().eval()
    assert not torch.equal(other(data.x, data.edge_index), model(data.x, data.edge_index))
    other.load_state_dict(model.state_dict())
    assert torch.equal(other(data.x, data.edge_index), model(data.x, data.edge_index))


def test_float64_follows_to(model: GraphFlow, data: Data) -> None:
    single = model(data.x, data.edge_index)
    double = model.to(torch.float64)(data.x.double(), data.edge_index)
    assert double.dtype == torch.float64
    torch.testing.assert_close(double.float(), single, atol=1e-4, rtol=1e-4)


def test_half_precision_is_refused_and_autocast_computes_in_float32(model: GraphFlow, data: Data) -> None:
    expected = model(data.x, data.edge_index)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = model(data.x, data.edge_index)
    torch.testing.assert_close(logits.float(), expected, atol=0.1, rtol=0.1)
    with pytest.raises(ValueError, match=r"computed in float32 or float64, got torch.float16; convert"):
        model.half()(data.x.half(), data.edge_index)


@pytest.mark.filterwarnings("ignore")
def test_torch_compile_without_graph_breaks(model: GraphFlow, data: Data) -> None:
    graph = Graph.from_edge_index(data.edge_index, data.num_nodes)
    expected = model(data.x, graph)
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(data.x, graph), expected)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_training_compiles_without_graph_breaks(sparse: bool, data: Data) -> None:
    """With dropout, and with gradients."""
    graph, model = Graph.from_edge_index(data.edge_index, data.num_nodes), KuramotoGNN(5, 8, 3, time=2.0, heads=2)
    x = as_features(data.x.relu().to_sparse()) if sparse else data.x
    torch._dynamo.reset()
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")

    def step(run: Callable[..., Tensor]) -> list[Tensor]:
        torch.manual_seed(1)
        logits = run(x, graph)
        return [logits, *torch.autograd.grad(logits.square().sum(), list(model.parameters()))]

    for ours, expected in zip(step(compiled), step(model), strict=True):
        torch.testing.assert_close(ours, expected)


@pytest.mark.filterwarnings("ignore")
def test_compiled_code_takes_graphs_that_it_has_not_seen() -> None:
    """Large ones too, whose nodes are renumbered outside compiled code."""
    model, x = KuramotoGNN(4, 8, 2, time=1.0, solver=Solver(steps=2)).eval(), torch.randn(1500, 4)
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    generator = torch.Generator().manual_seed(0)
    graphs = [Graph.from_edge_index(torch.randint(1500, (2, 4000), generator=generator), 1500) for _ in range(2)]
    first = [compiled(x, graph) for graph in graphs]
    expected = [model(x, graph) for graph in graphs]
    again = [compiled(x, graph) for graph in graphs]
    for results in (first, again):
        for ours, theirs in zip(results, expected, strict=True):
            torch.testing.assert_close(ours, theirs)


def test_a_batch_of_graphs_with_pooling(model: GraphFlow) -> None:
    graphs = [example(12, seed=1), example(7, seed=2)]
    batch = Batch.from_data_list(graphs)
    pooled = global_mean_pool(model(batch.x, batch.edge_index), batch.batch)
    apart = torch.stack([model(graph.x, graph.edge_index).mean(dim=0) for graph in graphs])
    torch.testing.assert_close(pooled, apart)


@pytest.mark.parametrize("edge_mask_type", ["object", None])
def test_gnn_explainer(model: GraphFlow, data: Data, edge_mask_type: str | None) -> None:
    explainer = Explainer(
        model,
        GNNExplainer(epochs=5),
        explanation_type="model",
        node_mask_type="attributes",
        edge_mask_type=edge_mask_type,
        model_config={"mode": "multiclass_classification", "task_level": "node", "return_type": "raw"},
    )
    before = model(data.x, data.edge_index)
    explanation = explainer(data.x, data.edge_index, index=3)
    assert explanation.node_mask.shape == data.x.shape
    if edge_mask_type:
        assert explanation.edge_mask.shape == (data.edge_index.size(1),)
        assert explanation.edge_mask.max() > 0
    torch.testing.assert_close(model(data.x, data.edge_index), before)
    assert set(model.state_dict()) == set(copy.deepcopy(model).state_dict())


def test_attention_weights_are_returned_with_their_edges(model: GraphFlow, data: Data) -> None:
    out, (edge_index, attention) = model(data.x, data.edge_index, return_attention_weights=True)
    assert torch.equal(out, model(data.x, data.edge_index))
    assert {(j, i) for j, i in edge_index.t().tolist()} == {(j, i) for j, i in data.edge_index.t().tolist()}
    total = torch.zeros(12).index_add(0, edge_index[1], attention)
    torch.testing.assert_close(total[edge_index[1].unique()], torch.ones(len(edge_index[1].unique())))


class SparseTensor:
    """The part of ``torch_sparse.SparseTensor`` that is used; that package has no wheels for every platform."""

    def __init__(self, row: Tensor, col: Tensor, value: Tensor, size: int) -> None:
        self.entries, self.size = (row, col, value), size

    def coo(self) -> tuple[Tensor, Tensor, Tensor]:
        return self.entries

    def sparse_sizes(self) -> tuple[int, int]:
        return self.size, self.size


@pytest.mark.filterwarnings("ignore:Sparse")
def test_edges_may_be_a_sparse_transposed_adjacency(model: GraphFlow, data: Data) -> None:
    edge_index = torch.unique(data.edge_index[:, :25], dim=1)  # one way, so that the transpose matters
    weight = torch.linspace(0.5, 1.5, edge_index.size(1))
    expected = model(data.x, edge_index, weight)
    source, target = edge_index
    for make in (to_torch_coo_tensor, to_torch_csr_tensor):
        torch.testing.assert_close(model(data.x, make(edge_index.flip(0), weight, 12)), expected)
    torch.testing.assert_close(model(data.x, SparseTensor(target, source, weight, 12)), expected)
    with pytest.raises(ValueError, match=r"the adjacency has shape \[3, 3\] but x has 12 rows"):
        model(data.x, torch.eye(3).to_sparse())
    with pytest.raises(ValueError, match="holds its weights itself; leave out edge_weight"):
        model(data.x, torch.eye(12).to_sparse(), weight)
    with pytest.raises(TypeError, match="must be an edge_index, a sparse tensor or a Graph, got str"):
        model(data.x, "edges")


def test_edges_edited_in_place_count(model: GraphFlow, data: Data) -> None:
    edge_index, weight = data.edge_index.clone(), torch.ones(60)
    first = model(data.x, edge_index, weight)
    assert torch.equal(model(data.x, edge_index, weight), first)
    weight[:20] = 0.1
    assert not torch.allclose(model(data.x, edge_index, weight), first)
    edge_index[0, :20] = 0
    expected = model(data.x, Graph.from_edge_index(edge_index, 12, weight))
    torch.testing.assert_close(model(data.x, edge_index, weight), expected)


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("form", ["edge_index", "coo", "csr", "SparseTensor"])
def test_the_graph_of_an_edge_index_is_built_once(
    monkeypatch: pytest.MonkeyPatch, model: GraphFlow, data: Data, form: str
) -> None:
    source, target = torch.unique(data.edge_index.flip(0), dim=1).flip(0)
    weight = torch.linspace(0.5, 1.5, len(source))
    by_target = torch.stack([target, source])
    edges: Any = {
        "edge_index": data.edge_index,
        "coo": torch.sparse_coo_tensor(by_target, weight, (12, 12), is_coalesced=True),
        "csr": to_torch_csr_tensor(by_target, weight, 12),
        "SparseTensor": SparseTensor(target, source, weight, 12),
    }[form]
    first = model(data.x, edges)
    with monkeypatch.context() as patch:
        patch.setattr(Graph, "from_edge_index", None)
        assert torch.equal(model(data.x, edges), first)
    if form in ("coo", "SparseTensor"):  # They share memory with the weights that they were made of.
        weight[:20] = 0.1
        assert not torch.allclose(model(data.x, edges), first)


@pytest.mark.parametrize("form", ["edge_index", "Graph"])
@pytest.mark.parametrize("make", [*MAKERS.values(), *[lambda kind=kind: kind(5, 8, 2, 3) for kind in (GCN, GAT)]])
def test_a_model_called_in_inference_mode_can_be_trained(make: Callable[[], nn.Module], form: str) -> None:
    """As PyTorch Lightning does before the first epoch; what is kept of the graph must have been made for both."""
    data, model = example(1500), make()  # So large that flows renumber the nodes.
    edges = data.edge_index if form == "edge_index" else Graph.from_edge_index(data.edge_index, 1500)
    with torch.inference_mode():
        model(data.x, edges)
    model(data.x, edges).sum().backward()


def test_channels_are_attributes() -> None:
    for name, make in MAKERS.items():
        model: Any = make()
        widths = (5, 5, 5) if name == "KuramotoConv" else (5, 8, 3)
        assert (model.in_channels, model.hidden_channels, model.out_channels) == widths


@pytest.mark.parametrize("method", ["euler", "rk4", "dopri5"])
def test_any_function_can_be_integrated(method: str) -> None:
    """x' = −x: a lambda, a module, and a module under the adjoint."""
    x0 = torch.ones(3, 2, dtype=torch.float64)
    solver = Solver(method) if method == "dopri5" else Solver(method, steps=1000)
    final = integrate(lambda t, x: -x, x0, 1.0, solver).final
    torch.testing.assert_close(final, x0 * torch.exp(torch.tensor(-1.0)), atol=1e-3, rtol=1e-3)

    class Decay(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rate = nn.Parameter(torch.ones((), dtype=torch.float64))

        def forward(self, t: float | Tensor, x: Tensor) -> Tensor:
            return -self.rate * x

    decay = Decay()
    integrate(decay, x0, 1.0, Solver("dopri5", adjoint=True)).final.sum().backward()  # type: ignore[no-untyped-call]
    assert decay.rate.grad is not None
    assert decay.rate.grad.item() == pytest.approx(-6 * 0.36788, rel=1e-2)
    with pytest.raises(ValueError, match="adjoint needs the tensors"):
        integrate(lambda t, x: -x, x0, 1.0, Solver("dopri5", adjoint=True))
