"""Batches of parts: what they contain, and that training on them is exact, resumable and open to every model."""

from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch_geometric import nn as pyg
from torch_geometric.utils import subgraph

from kuramotognn import GRAND, Graph, KuramotoGNN, Solver, Split, TrainingConfig, TrainResult, fit
from kuramotognn.batches import PartBatches, make_batches
from kuramotognn.checkpoints import CheckpointFolder
from kuramotognn.features import compact_features
from tests.conftest import Refused, graphs

pytest.importorskip("pymetis", reason="pymetis is not installed; it has no wheels for Windows")

NODES = 60
CONSISTENT = {"consistency": 1.0, "clip_norm": 0.1, "schedule": "plateau", "class_weights": "balanced"}


@pytest.fixture(autouse=True)
def data_root(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KURAMOTOGNN_DATA", str(tmp_path_factory.mktemp("partitions")))


def problem() -> tuple[Tensor, Graph, Tensor, Split]:
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(NODES) % 3
    x = torch.rand(NODES, 6, generator=generator)
    x[torch.arange(NODES), y] += 1.0
    edges = torch.randint(NODES, (2, 200), generator=generator)
    graph = Graph.from_edge_index(edges, NODES, torch.rand(200, generator=generator))
    order = torch.randperm(NODES, generator=generator)
    return x, graph, y, Split(order[:18], order[18:36], order[36:], "test", 0)


class PlainGCN(nn.Module):
    """A model of PyG layers as users write them."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = pyg.GCNConv(6, 3)

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        out: Tensor = self.conv(x, edge_index, edge_weight)
        return out


def make(name: str, dropout: float) -> nn.Module:
    torch.manual_seed(0)
    if name == "pyg":
        return PlainGCN()
    options: dict[str, Any] = {"time": 2.0, "heads": 2, "dropout": dropout, "solver": Solver(steps=4)}
    options["input_dropout"] = dropout
    if name == "kuramotognn":
        return KuramotoGNN(6, 8, 3, **options)
    return GRAND(6, 8, 3, source="labelled", source_dropout=dropout, **options)


@given(graphs(), st.data())
def test_subgraph_is_that_of_pyg(graph: Graph, data: st.DataObject) -> None:
    chosen = data.draw(st.sets(st.integers(0, graph.num_nodes - 1)))
    nodes = torch.tensor(sorted(chosen), dtype=torch.long)
    edges, weight = subgraph(nodes, graph.edge_index, graph.weight, relabel_nodes=True, num_nodes=graph.num_nodes)
    found, expected = graph.subgraph(nodes), Graph.from_edge_index(edges, nodes.numel(), weight)
    assert torch.equal(found.edge_index, expected.edge_index)
    assert torch.equal(found.weight, expected.weight)
    assert torch.equal(found.pattern.rowptr, expected.pattern.rowptr)
    assert torch.equal(found.pattern.transpose, expected.pattern.transpose)


@pytest.mark.parametrize("batch", ["clusters", "nodes"])
@pytest.mark.parametrize("sparse", [False, True])
def test_an_epoch_has_every_training_node_once_with_its_features_and_class(batch: Any, sparse: bool) -> None:
    x, graph, y, split = problem()
    x[:, 0] = torch.arange(1.0, NODES + 1)  # Features that name their node.
    features = compact_features(torch.cat([x, torch.zeros(NODES, 200)], dim=1)) if sparse else x
    config = TrainingConfig(batch=batch, parts=12, parts_per_batch=3)
    batches = make_batches(nn.Linear(1, 1), (features, graph), y, split.train, config)
    assert isinstance(batches, PartBatches)
    orders = []
    for _ in range(2):
        drawn = list(batches.draw())
        assert len(drawn) <= 4
        rows = [batch.inputs[0] if not sparse else batch.inputs[0].to_dense() for batch in drawn]
        seen = torch.cat([x[batch.train, 0] for x, batch in zip(rows, drawn, strict=True)]).long() - 1
        assert torch.equal(seen.sort().values, split.train.sort().values)
        assert torch.equal(torch.cat([batch.classes for batch in drawn]), y[seen])
        assert sum(batch.share for batch in drawn) == pytest.approx(1.0)
        orders.append(seen)
    assert not torch.equal(*orders), "each epoch draws other batches"


def test_batches_without_training_nodes_are_left_out() -> None:
    x, graph, y, split = problem()
    config = TrainingConfig(batch="nodes", parts=NODES, parts_per_batch=1)
    drawn = list(make_batches(nn.Linear(1, 1), (x, graph), y, split.train, config).draw())
    assert len(drawn) == split.train.numel()
    assert {batch.inputs[1].num_nodes for batch in drawn} == {1}


def train(name: str, dropout: float = 0.0, checkpoints: CheckpointFolder | None = None, **options: Any) -> TrainResult:
    x, graph, y, split = problem()
    config = TrainingConfig(epochs=options.pop("epochs", 6), checkpoint_every=2, **options)
    return fit(make(name, dropout), x, graph, y, split, config=config, checkpoints=checkpoints)


@pytest.mark.parametrize("name", ["kuramotognn", "grand++", "pyg"])
def test_one_batch_of_all_parts_is_the_whole_graph(name: str) -> None:
    whole = train(name)
    for batch in ("clusters", "nodes"):
        parts = train(name, batch=batch, parts=5, parts_per_batch=5)
        for here, there in zip(parts.history, whole.history, strict=True):
            assert here.train_loss == pytest.approx(there.train_loss, rel=1e-5)
            assert here.validation_loss == pytest.approx(there.validation_loss, rel=1e-5)


@pytest.mark.parametrize("batch", ["clusters", "nodes"])
@pytest.mark.parametrize("name", ["kuramotognn", "grand++", "pyg"])
def test_interrupted_training_goes_on_to_the_same_numbers(name: str, batch: str, tmp_path: Path) -> None:
    options = CONSISTENT | {"batch": batch, "parts": 6, "parts_per_batch": 2}
    whole = train(name, 0.3, **options)
    train(name, 0.3, CheckpointFolder(tmp_path), epochs=4, **options)
    resumed = train(name, 0.3, CheckpointFolder(tmp_path), **options)
    assert resumed.history == whole.history
    assert torch.equal(resumed.logits, whole.logits)  # type: ignore[arg-type]


def test_predictions_use_all_labelled_nodes_again() -> None:
    x, graph, y, split = problem()
    model = make("grand++", 0.0)
    fit(model, x, graph, y, split, config=TrainingConfig(epochs=2, batch="nodes", parts=6, parts_per_batch=2))
    assert torch.equal(model.get_buffer("field.training_nodes"), split.train.sort().values)


def test_more_parts_than_nodes_are_refused(assert_refused: Refused) -> None:
    for batch in ("clusters", "nodes"):
        assert_refused(["train", "--batch", batch, "--parts", "9999"], "at most the 2485 nodes of the graph, got 9999")
    assert_refused(["train", "--batch", "clusters", "--parts", "0"], "training.parts")
    assert_refused(["train", "--batch", "cluster"], "clusters")


def test_missing_metis_is_said_before_a_folder_is_made(
    assert_refused: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kuramotognn.batches.find_spec", lambda name: None)
    assert_refused(["train", "--batch", "clusters"], "kuramotognn[scale]")
