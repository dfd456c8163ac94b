"""Trained models to share: a run folder of one split with a model card, which loads anywhere and runs no code.

The folder holds ``config.toml``, ``split-N/model.safetensors``, ``split-N/result.json``, for columns of a table
``split-N/encoder.json``, and the card as ``README.md``. Every command that takes a run folder takes it.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import tomli_w
import torch
from pydantic import BaseModel, ConfigDict, PositiveInt, ValidationError
from torch import nn

from kuramotognn.atomic_write import write_atomically
from kuramotognn.checkpoints import read_tensors, write_tensors
from kuramotognn.checks import did_you_mean
from kuramotognn.config.resolve import ConfigError, read_toml
from kuramotognn.config.tree import Config
from kuramotognn.data import NodeDataset
from kuramotognn.documents import first_problem, read_document
from kuramotognn.runs.model_card import model_card
from kuramotognn.runs.stored_run import (
    CONFIG,
    ENCODER,
    MODEL,
    RESULT,
    RUN_FORMAT,
    Evaluation,
    evaluate_split,
    finished_split,
    load_config,
    load_split,
    split_folder,
    with_encoder,
    with_parameters,
)
from kuramotognn.runs.task import Task, without_memory
from kuramotognn.train_result import TrainResult
from kuramotognn.typing import Logits

CARD = "README.md"
SHIPPED = Path(str(files("kuramotognn"))) / "pretrained"


class _Facts(BaseModel):
    """What the file of parameters says beside them."""

    model_config = ConfigDict(strict=True, extra="forbid")

    model: str
    in_channels: PositiveInt
    classes: list[str]


@dataclass(frozen=True, eq=False)
class Pretrained:
    """A trained model, and what its predictions must be read with.

    Attributes:
        name: of its folder.
        folder: where it is stored.
        model: the model in evaluation mode; it takes features as its settings normalise them.
        config: all settings it was trained with.
        result: what training found: protocol, split, seed, accuracies.
        in_channels: features of a node.
        classes: names of its classes, in the order of its logits.
    """

    name: str
    folder: Path
    model: nn.Module
    config: Config
    result: TrainResult
    in_channels: int
    classes: tuple[str, ...]

    @property
    def card(self) -> str:
        """The model card, in Markdown; empty if there is none."""
        path = self.folder / CARD
        return read_document(path).decode() if path.is_file() else ""

    def predict(self, dataset: NodeDataset | None = None) -> Logits:
        """Logits of every node of a data set, whose features are prepared as in training.

        Args:
            dataset: a graph with the same features; the one it was trained on unless given.
        """
        task = Task.from_config(self.config) if dataset is None else Task.of(self.config, dataset)
        task = with_encoder(task, self.folder, self.result.split)
        if task.x.shape[1] != self.in_channels:
            raise ValueError(f"{self.name} takes {self.in_channels} features of a node, got {task.x.shape[1]}")
        return task.predict(self.model, self.result.time)

    def evaluate(self) -> Evaluation:
        """Accuracies on the split it was trained on, computed again."""
        return evaluate_split(Task.from_config(self.config), self.folder, self.result.split)


def export_run(
    folder: Path, out: Path, split: int | None = None, *, card: bool = False, note: str = ""
) -> tuple[Evaluation, list[Path]]:
    """Write the model of one split of a run into a folder of its own, after its accuracies were computed again.

    Args:
        folder: of the run.
        out: folder to make; its name is the name of the model.
        split: whose model; the first finished one unless given.
        card: write a model card, too.
        note: a paragraph for the card.

    Returns:
        The accuracies, and the files that were written.
    """
    _refuse_model_files(folder)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ValueError(f"{str(out)!r} exists and is not empty; name another folder with --out")
    config = load_config(folder)
    number = finished_split(folder, config, split)
    task = Task.from_config(config)
    found = evaluate_split(task, folder, number)
    if found.test_accuracy != found.recorded.test_accuracy:
        raise ConfigError(
            f"split {number} of {str(folder)!r} has a test accuracy of {100 * found.test_accuracy:.2f} % when computed "
            f"again and {100 * found.recorded.test_accuracy:.2f} % in its result; export it where it was trained, or "
            "train again"
        )
    home, source = split_folder(out, number), split_folder(folder, number)
    home.mkdir(parents=True, exist_ok=True)
    task = with_encoder(task, folder, number)
    facts = _Facts(model=config.model.name, in_channels=task.x.shape[1], classes=list(task.dataset.class_names))
    write_tensors(home / MODEL, read_tensors(source / MODEL)[0], facts.model_dump())
    for name in (RESULT, ENCODER):
        if (source / name).is_file():
            shutil.copyfile(source / name, home / name)
    if card:
        write_atomically(out / CARD, model_card(out.resolve().name, task, found.recorded, source / RESULT, note))
    write_atomically(out / CONFIG, _settings_to_share(config, number))  # Last: it makes the folder a run.
    return found, files_of(out)


def load_pretrained(name: str | Path) -> Pretrained:
    """Load a model that comes with the library, or a folder that ``kuramotognn export`` wrote. No code of it is run.

    Args:
        name: such as ``"kuramotognn-cora"`` (``kuramotognn pretrained`` lists them), or a folder. A ``Path`` is a
            folder.

    Raises:
        ValueError: there is no such model, or its files are damaged or do not fit each other.
    """
    known = pretrained_names()
    folder = SHIPPED / name if isinstance(name, str) and name in known else Path(name)
    if not folder.is_dir():
        raise ConfigError(
            f"unknown pretrained model {str(name)!r}{did_you_mean(str(name), known)}; known: {', '.join(known)}, or a "
            "folder that `kuramotognn export` wrote"
        )
    _refuse_model_files(folder)
    config = load_config(folder)
    result = load_split(folder, finished_split(folder, config, None))
    tensors, stored = read_tensors(split_folder(folder, result.split) / MODEL)
    try:
        facts = _Facts.model_validate(stored)
    except ValidationError as error:
        raise ConfigError(
            f"{MODEL} in {str(folder)!r} does not say what it takes ({first_problem(error)}); write it with "
            "`kuramotognn export`"
        ) from error

    def build() -> nn.Module:
        with torch.random.fork_rng(devices=[]):
            return config.model.build(facts.in_channels, len(facts.classes), config.solver)

    model = with_parameters(without_memory(build), build, tensors, result.split).to(config.device).eval()
    return Pretrained(folder.resolve().name, folder, model, config, result, facts.in_channels, tuple(facts.classes))


def pretrained_names() -> list[str]:
    """Names of the models that come with the library."""
    return sorted(path.parent.name for path in SHIPPED.glob(f"*/{CONFIG}"))


def files_of(folder: Path) -> list[Path]:
    """The files of an exported model."""
    return [path for path in sorted(folder.rglob("*")) if path.is_file()]


def _refuse_model_files(folder: Path) -> None:
    """Settings that name a Python file would have it run."""
    if not (folder / CONFIG).is_file():
        return  # Loading the settings says so.
    model: Any = read_toml(folder / CONFIG).get("model")
    name = str(model.get("name")) if isinstance(model, dict) else ""
    if name.partition(":")[0].endswith(".py"):
        raise ConfigError(
            f"the model of {str(folder)!r} is Python code in {name!r}, which an exported model cannot hold; add it to "
            "a package with an entry point"
        )


def _settings_to_share(config: Config, number: int) -> str:
    """The settings of one split, on any machine: no device and no folder of this one."""
    settings = config.model_dump(mode="json", exclude_none=True)
    settings |= {"splits": 1, "first_split": number, "device": "cpu"}
    own = settings["data"].get("files", {})
    own |= {name: Path(own[name]).name for name in ("nodes", "edges", "features") if name in own}
    return f"format = {RUN_FORMAT}\n{tomli_w.dumps(settings)}"
