"""Training over ranks: checkpoints, inputs that are refused, and what one process does with them."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch
import torch.distributed as dist

from kuramotognn import Graph, TrainingConfig, fit, open_features, predict
from kuramotognn.checkpoints import CheckpointError, CheckpointFolder
from kuramotognn.config.resolve import resolve
from kuramotognn.features import FeatureRows
from kuramotognn.parallel import distribute, launch
from kuramotognn.parallel.exchange import Ranks
from kuramotognn.runs.run import start_run
from tests.parallel import cases
from tests.parallel.processes import FailedError, Processes
from tests.parallel.test_channels import assert_near


def train_some(folder: Path | None, epochs: int, name: str = "kuramotognn", graph: Graph | None = None) -> torch.Tensor:
    """Go on from the checkpoints of rank 0, which alone has the folder."""
    model = cases.make_model(name, time=2.0)
    if dist.is_initialized():
        distribute(model)
        folder = folder if dist.get_rank() == 0 else None
    y, split = cases.small_split()
    config = TrainingConfig(epochs=epochs, checkpoint_every=3)
    checkpoints = CheckpointFolder(folder) if folder else None
    result = fit(
        model, cases.small_features(), graph or cases.small_graph(), y, split, config=config, checkpoints=checkpoints
    )
    assert result.logits is not None
    return torch.cat([result.logits.flatten(), *(each.detach().flatten() for each in model.parameters())])


@pytest.mark.parametrize("name", ["kuramotognn", "kuramotognn-res"])
def test_training_goes_on_with_another_number_of_ranks(two: Processes, tmp_path: Path, name: str) -> None:
    whole = train_some(None, 6, name)
    two(train_some, tmp_path / "from two", 3, name)
    assert_near(train_some(tmp_path / "from two", 6, name), whole, "two, then one")
    train_some(tmp_path / "from one", 3, name)
    for found in two(train_some, tmp_path / "from one", 6, name):
        assert_near(found, whole, "one, then two")


def train_from_disk(path: Path, name: str) -> torch.Tensor:
    model = cases.make_model(name, input_dropout=0.3)
    if dist.is_initialized():
        distribute(model)
    y, split = cases.small_split()
    config = TrainingConfig(epochs=5, optimiser="sgd", clip_norm=1.0)
    result = fit(model, open_features(path), cases.small_graph(), y, split, config=config)
    assert result.logits is not None
    return result.logits


@pytest.mark.parametrize("name", ["kuramotognn", "gcn"])
def test_features_on_disk_are_read_by_each_rank_in_part(two: Processes, tmp_path: Path, name: str) -> None:
    np.save(tmp_path / "x.npy", cases.small_features().numpy())  # type: ignore[union-attr]
    expected = train_from_disk(tmp_path / "x.npy", name)
    for found in two(train_from_disk, tmp_path / "x.npy", name):
        assert_near(found, expected, "logits")


def test_checkpoint_of_another_graph_is_refused(two: Processes, tmp_path: Path) -> None:
    two(train_some, tmp_path, 3)
    fewer = Graph.from_edge_index(cases.small_graph().edge_index[:, 2:], cases.NODES)
    with pytest.raises(CheckpointError, match="does not fit the run: it was made on another graph; remove it"):
        train_some(tmp_path, 6, graph=fewer)


def spread(name: str, options: dict[str, Any], how: Any) -> None:
    distribute(cases.make_model(name, **options), how=how)


def spread_unlike() -> None:
    distribute(cases.make_model("kuramotognn", coupling=1.0 + dist.get_rank()))


def spread_in_unlike_versions() -> None:
    with mock.patch("kuramotognn.parallel.distribute.__version__", f"0.{dist.get_rank()}"):
        distribute(cases.make_model("kuramotognn"))


def call_on_unlike_graphs() -> None:
    edges = cases.small_graph().edge_index[:, dist.get_rank() :]
    distribute(cases.make_model("kuramotognn"))(cases.small_features(), edges)


def call_on_one_node() -> None:
    distribute(cases.make_model("kuramotognn"))(cases.small_features()[:1], torch.empty(2, 0, dtype=torch.long))


def start(folder: Path, settings: list[dict[str, Any]]) -> None:
    """As ``train`` does over ranks, each with settings of its own."""
    token = launch._current.set(Ranks())
    try:
        start_run(resolve({"dataset": "cora", "splits": 1} | settings[dist.get_rank()]).config, folder)
    finally:
        launch._current.reset(token)


REFUSED: dict[str, tuple[Any, ...]] = {
    "batch normalisation needs all nodes": (spread, "kuramotognn", {"batch_norm": True}, "auto"),
    "batch normalisation needs all nodes in": (spread, "gcn", {"norm": "batch"}, "auto"),
    "1 channels cannot be spread over 2 ranks": (spread, "kuramotognn", {"hidden_channels": 1, "heads": 1}, "auto"),
    "channels of GCN act on each other": (spread, "gcn", {}, "channels"),
    "how must be one of auto, channels, nodes": (spread, "gcn", {}, "edges"),
    "attention with squareplus over each row": (spread, "grand-nl", {"attention_squash": "squareplus"}, "auto"),
    "a source of labelled nodes needs their mean": (spread, "grand++", {}, "nodes"),
    "the version of rank 1 differs from that of rank 0": (spread_in_unlike_versions,),
    "the model of rank 1 differs from that of rank 0": (spread_unlike,),
    "the graph of rank 1 differs from that of rank 0": (call_on_unlike_graphs,),
    "a graph of 1 nodes cannot be spread over 2 ranks": (call_on_one_node,),
}


@pytest.mark.parametrize("sentence", REFUSED)
def test_refused_in_every_rank(two: Processes, sentence: str) -> None:
    with pytest.raises(FailedError) as error:
        two(*REFUSED[sentence])
    assert str(error.value).count(f"ValueError: {sentence}") == 2


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ([{"training.batch": "clusters"}] * 2, r"training\.batch 'clusters' is for one process"),
        ([{}, {"seed": 7}], "seed is 7 in rank 1 and 0 in rank 0; start all ranks with the same settings"),
        ([{"model.name": "gcn"}, {}], r"model\.name is 'kuramotognn' in rank 1 and 'gcn' in rank 0"),
    ],
)
def test_settings_are_refused_before_a_folder_is_made(
    two: Processes, tmp_path: Path, settings: list[dict[str, Any]], sentence: str
) -> None:
    with pytest.raises(FailedError, match=sentence) as error:
        two(start, tmp_path / "run", settings)
    assert "rank 0: " in str(error.value)
    assert "rank 1: " in str(error.value)
    assert not (tmp_path / "run").exists()


def state_dicts_and_rows() -> tuple[list[str], torch.Tensor, int]:
    """What a user has after spreading a model: the same names, the parameters of rank 0, and a part of the features."""
    model, x, graph = cases.make_model("kuramotognn"), cases.small_features(), cases.small_graph()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += dist.get_rank()
    rows = distribute(model).distributed.feature_rows(x, graph)
    assert isinstance(rows, FeatureRows)
    assert_near(predict(model, rows, graph), predict(model, x, graph), "with own rows")
    alone = copy.deepcopy(model)
    assert alone.distributed is None
    assert_near(predict(alone, x, graph), predict(model, x, graph), "copy in one process")
    return list(model.state_dict()), predict(model, rows, graph), rows.x.shape[0]


def test_a_spread_model_has_the_same_parameters_and_a_part_of_the_features(two: Processes) -> None:
    model = cases.make_model("kuramotognn")
    expected = predict(model, cases.small_features(), cases.small_graph())
    for names, logits, rows in two(state_dicts_and_rows):
        assert names == list(model.state_dict())
        assert_near(logits, expected, "logits")
        assert rows == cases.NODES // 2


def gradients() -> list[torch.Tensor]:
    """The gradients of a loss of one's own, of logits and of states, accumulated over two passes."""
    model = cases.make_model("kuramotognn", time=2.0).eval()
    if dist.is_initialized():
        distribute(model)
    for _ in range(2):
        logits = model(cases.small_features(), cases.small_graph().edge_index)
        states = model.flow(cases.small_features(), cases.small_graph(), save_at=[1.0, 1.7]).ys
        (logits.square().mean() + states.sin().mean()).backward()
    return [parameter.grad for parameter in model.parameters()]


def test_gradients_of_any_loss_are_those_of_one_process(two: Processes) -> None:
    expected = gradients()
    for found in two(gradients):
        for mine, theirs in zip(found, expected, strict=True):
            assert_near(mine, theirs, "gradient")
