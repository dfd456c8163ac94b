"""A run folder: its files, its trained models, and their evaluations and predictions."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from torch import Tensor, nn

from kuramotognn.checkpoints import read_tensors
from kuramotognn.config.resolve import ConfigError, parse, read_toml
from kuramotognn.config.tree import Config
from kuramotognn.data import DataError, GraphSummary, Split, read_graph
from kuramotognn.documents import first_problem, parse_json, read_document
from kuramotognn.printable import csv_cell
from kuramotognn.runs.saved_encoder import SavedEncoder
from kuramotognn.runs.task import Task
from kuramotognn.train_result import EpochMetrics, TrainResult
from kuramotognn.training import accuracy
from kuramotognn.typing import Logits

CONFIG, RESULT, METRICS, MODEL = "config.toml", "result.json", "metrics.jsonl", "model.safetensors"
PREDICTIONS, CURVES, CONFUSION, ENCODER = "predictions.csv", "curves.svg", "confusion.svg", "encoder.json"
RUN_FORMAT = 2
"""Written to ``config.toml``; raised when files of a run folder change their meaning."""


class RunObserver:
    """Called during a run; does nothing by itself."""

    def prepared(self, folder: Path) -> None:
        """The data was read, the settings fit, and the folder is there."""

    def started(self, split: int, epochs: int) -> None:
        """A split begins that will take ``epochs`` at most."""

    def epoch(self, split: int, metrics: EpochMetrics) -> None:
        """An epoch has ended."""

    def finished(self, result: TrainResult) -> None:
        """A split is done, now or before the run was resumed."""

    def read(self, summary: GraphSummary) -> None:
        """A graph of the user's own was read."""

    def spread(self, sentence: str) -> None:
        """The model is spread over ranks; the sentence says how."""

    def chose_time(self, time: float, tried: Mapping[float, float]) -> None:
        """The integration time was chosen by the validation results of several."""

    def warning(self, message: str) -> None:
        """A problem that was worked around."""


@dataclass(frozen=True)
class Evaluation:
    """Accuracies computed from a stored model, beside the recorded ones."""

    recorded: TrainResult
    validation_accuracy: float
    test_accuracy: float


@dataclass(frozen=True)
class Predictions:
    """Predictions of a stored model: which one, for how many nodes, and the CSV."""

    model: str
    split: int
    nodes: int
    csv: str


def load_config(folder: Path) -> Config:
    """The settings of a run folder."""
    if not folder.is_dir():
        raise ConfigError(f"{str(folder)!r} is not a run folder: there is no such folder")
    if not (folder / CONFIG).is_file():
        raise ConfigError(f"{str(folder)!r} is not a run folder: it has no {CONFIG}; `kuramotognn train` makes one")
    settings = read_toml(folder / CONFIG)
    if (found := settings.pop("format", None)) != RUN_FORMAT:
        raise ConfigError(
            f"{str(folder)!r} was made by another version of kuramotognn (format {found}, this one reads "
            f"{RUN_FORMAT}); train again"
        )
    config = parse(settings)
    name = str(settings.get("model", {}).get("name"))
    if name != config.model.name:  # A relative path would run a file of the current folder.
        raise ConfigError(f"{str(folder / CONFIG)!r} names the model file {name!r}; write its absolute path")
    return config


def load_split(folder: Path, number: int) -> TrainResult:
    """The recorded result of one split."""
    path = split_folder(folder, number) / RESULT
    try:
        result = TrainResult.from_record(parse_json(read_document(path)))
    except FileNotFoundError as error:
        raise ConfigError(f"split {number} of {str(folder)!r} is not finished; go on with --resume {folder}") from error
    except ValueError as error:
        what = first_problem(error) if isinstance(error, ValidationError) else error
        raise ConfigError(
            f"{str(path)!r} is not a result file of a split: {what}; remove it and train again with --resume {folder}"
        ) from error
    if result.split != number:
        raise ConfigError(f"{str(path)!r} is the result of split {result.split}, not {number}; put it where it belongs")
    return result


def split_folder(folder: Path, number: int) -> Path:
    """Where one split of a run is kept."""
    return folder / f"split-{number}"


def finished_splits(folder: Path, config: Config) -> list[int]:
    """Numbers of the splits that have a result."""
    numbers = range(config.first_split, config.first_split + config.splits)
    finished = [number for number in numbers if (split_folder(folder, number) / RESULT).is_file()]
    if not finished:
        raise ConfigError(f"no split of {str(folder)!r} is finished; go on with --resume {folder}")
    return finished


def finished_split(folder: Path, config: Config, wanted: int | None) -> int:
    """The wanted split if it is finished, the first finished one if none is wanted."""
    finished = finished_splits(folder, config)
    if wanted is not None and wanted not in finished:
        raise ConfigError(f"split {wanted} is not among the finished splits of {str(folder)!r}: {finished}")
    return finished[0] if wanted is None else wanted


def evaluate_run(folder: Path) -> list[Evaluation]:
    """Load every finished split's model and compute its accuracies again."""
    task = Task.from_config(load_config(folder))
    return [evaluate_split(task, folder, number) for number in finished_splits(folder, task.config)]


def evaluate_split(task: Task, folder: Path, number: int) -> Evaluation:
    """Load one split's model and compute its accuracies again."""
    recorded, split = load_split(folder, number), task.split(number)
    logits = _stored_logits(task, folder, recorded)
    scores = (accuracy(logits, task.y, nodes) for nodes in (split.validation, split.test))
    return Evaluation(recorded, *scores)


def predict_run(
    folder: Path,
    split: int | None = None,
    *,
    new: dict[str, Any] | None = None,
    with_training_nodes: bool = False,
    observer: RunObserver | None = None,
) -> Predictions:
    """Predictions of one split's model (the first finished one unless named) for every node.

    Args:
        folder: of the run.
        split: whose model.
        new: attributes of :class:`~kuramotognn.data.GraphFiles` of a graph to predict instead of the one trained on;
            the meaning of its columns is as in the run.
        with_training_nodes: keep the nodes of the run as neighbours of the new ones.
        observer: called with what was read, and with categories that no training node has.
    """
    config, observer = load_config(folder), observer or RunObserver()
    number = finished_split(folder, config, split)
    recorded = load_split(folder, number)
    if new is None:
        task = Task.from_config(config)
        text = predictions_csv(task, _stored_logits(task, folder, recorded), task.split(number))
        return Predictions(config.model.name, number, task.dataset.num_nodes, text)
    saved = SavedEncoder.load(split_folder(folder, number) / ENCODER)
    if config.data.files is None or saved is None:
        raise ConfigError(
            f"{str(folder)!r} was trained on {config.dataset}; other nodes need a run on files of your own"
        )
    # The feature matrix of the run belongs to the nodes of the run.
    files = replace(config.data.files, **{"split_column": None, "features": None} | new)
    beside = config.data.files if with_training_nodes else None
    dataset, summary = read_graph(files, saved.encoder, beside=beside, directed=config.data.directed)
    observer.read(summary)
    task = Task.of(config, saved.with_known_classes(dataset)).encoded(saved.encoder)
    for sentence in task.unseen():
        observer.warning(sentence)
    logits = _stored_logits(task, folder, recorded)
    count = summary.nodes - summary.beside
    return Predictions(config.model.name, number, count, predictions_csv(task, logits, None, count=count))


def predictions_csv(task: Task, logits: Logits, split: Split | None, *, count: int | None = None) -> str:
    """A row a node: its id, its part in the split, its class, the predicted class, and all probabilities.

    Of the first ``count`` nodes, if given. Text that a spreadsheet would compute is marked, see :func:`csv_cell`.
    """
    names = task.dataset.class_names
    part = ["unused" if split else "new"] * task.dataset.num_nodes
    for name in ("train", "validation", "test") if split else ():
        for node in getattr(split, name).tolist():
            part[node] = name
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    shown = [csv_cell(name) for name in names]
    writer.writerow(["node", "part", "label", "prediction", *(f"p({name})" for name in names)])
    probabilities = logits.double().softmax(dim=-1).cpu()
    rows = zip(task.dataset.node_ids, part, task.y.tolist(), probabilities.tolist(), strict=True)
    for node, where, label, row in islice(rows, count):
        guess = max(range(len(row)), key=row.__getitem__)
        known = shown[label] if label >= 0 else ""
        writer.writerow([csv_cell(str(node)), where, known, shown[guess], *(f"{p:.6f}" for p in row)])
    return buffer.getvalue()


def with_encoder(task: Task, folder: Path, number: int) -> Task:
    """The task with features as a split's training nodes encode them, where the run has files of its own."""
    if task.encoder is not None or not task.fitted:
        return task
    path = split_folder(folder, number) / ENCODER
    saved = SavedEncoder.load(path)
    if saved is None:
        raise DataError(f"{path} is missing, and the features of this run depend on it; train again")
    return task.encoded(saved.encoder)


def stored_model(task: Task, folder: Path, recorded: TrainResult) -> nn.Module:
    """The trained model of a split."""
    tensors, _ = read_tensors(split_folder(folder, recorded.split) / MODEL)
    return with_parameters(task.skeleton(), task.model, tensors, recorded.split)


def with_parameters(
    skeleton: nn.Module | None, build: Callable[[], nn.Module], tensors: dict[str, Tensor], split: int
) -> nn.Module:
    """The model that ``build`` makes, with stored parameters; they must fit its skeleton, which takes no memory."""
    try:
        if skeleton is not None:
            skeleton.load_state_dict(tensors, assign=True)  # Settings of another size must not take memory first.
        model = build()
        model.load_state_dict(tensors)
    except RuntimeError as error:
        first = " ".join(str(error).split("\n\t")[1:2])
        raise ConfigError(f"{MODEL} of split {split} does not fit the model of {CONFIG}: {first}") from error
    return model


def _stored_logits(task: Task, folder: Path, recorded: TrainResult) -> Logits:
    task = with_encoder(task, folder, recorded.split)
    return task.predict(stored_model(task, folder, recorded), recorded.time)
