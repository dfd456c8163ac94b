"""Trained models to play: of run folders, or trained now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from kuramotognn.config.resolve import resolve
from kuramotognn.config.tree import Config
from kuramotognn.data import OWN_GRAPH
from kuramotognn.models import ContinuousGNN
from kuramotognn.models.lookup import find_model
from kuramotognn.runs.stored_run import (
    RunObserver,
    finished_split,
    load_config,
    load_split,
    stored_model,
    with_encoder,
)
from kuramotognn.runs.task import Task

MODELS = ("kuramotognn", "grand-l-no-x0")
"""Trained when a data set is named: one that stays apart, and one that over-smooths."""


@dataclass(frozen=True, eq=False)
class TrainedModel:
    """A trained model, its data, and the split and time that it was trained for."""

    task: Task
    model: ContinuousGNN
    split: int
    time: float
    source: str

    @property
    def title(self) -> str:
        """The model's name in tables."""
        info = find_model(self.task.config.model.name)
        return info.title or Path(info.name).name


def from_run(folder: Path, split: int | None = None) -> TrainedModel:
    """The model of one split of a run, the first finished one unless named."""
    config = load_config(folder)
    number = finished_split(folder, config, split)
    task, recorded = with_encoder(Task.from_config(config), folder, number), load_split(folder, number)
    model = _with_flow(stored_model(task, folder, recorded), config)
    return TrainedModel(task, model, number, recorded.time or model.time, str(folder))


def train_now(config: Config, observer: RunObserver) -> TrainedModel:
    """Train on the first split of ``config``; no folder is made."""
    split = config.first_split
    task = Task.from_config(config).for_split(split)
    model = _with_flow(task.model(), config)
    observer.started(split, config.training.epochs)
    result = task.fit(model, task.split(split), on_epoch=lambda metrics: observer.epoch(split, metrics))
    observer.finished(result)
    return TrainedModel(task, model, split, result.time or model.time, "trained for this page")


def settings(dataset: str, model: str, split: int = 0, time: float | None = None) -> Config:
    """Recommended settings for a model on a data set, at depth ``time`` if given."""
    depth = {} if time is None else {"model.time": time}
    return resolve({"dataset": dataset, "model.name": model, "splits": 1, "first_split": split} | depth).config


def settings_beside(other: TrainedModel, model: str, time: float | None = None) -> Config:
    """Recommended settings for a model on the data and split of another one."""
    config = other.task.config
    given: dict[str, Any] = {"data": config.data.model_dump(mode="json", exclude_none=True), "model.name": model}
    given |= {} if config.dataset == OWN_GRAPH else {"dataset": config.dataset}
    given |= {} if time is None else {"model.time": time}
    return resolve(given | {"splits": 1, "first_split": other.split}).config


def check_same_graph(models: Sequence[TrainedModel]) -> None:
    """Models on one page share nodes and classes."""
    for first, other in pairwise(models):
        one, two = first.task.dataset, other.task.dataset
        if list(one.node_ids) != list(two.node_ids) or one.class_names != two.class_names:
            raise ValueError(
                f"{first.source!r} and {other.source!r} have different nodes or classes ({one.name} with "
                f"{one.num_nodes} nodes, {two.name} with {two.num_nodes}); explore runs on one graph"
            )


def _with_flow(model: Any, config: Config) -> ContinuousGNN:
    if not isinstance(model, ContinuousGNN):
        raise ValueError(f"{config.model.name} has layers and no flow to play; explore a model such as kuramotognn")
    return model
