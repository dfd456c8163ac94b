"""A run: one configuration trained on several splits, in a folder that can be resumed, evaluated and predicted from."""

from __future__ import annotations

import csv
import io
import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import nn

from kuramotognn.checkpoints import CheckpointFolder, read_tensors, write_tensors
from kuramotognn.data import OWN_GRAPH, Columns, Encoder, NodeDataset, Split, Understood, read_graph
from kuramotognn.experiments.config import Config, ConfigError, parse, read_toml
from kuramotognn.experiments.data_config import FilesConfig
from kuramotognn.experiments.encoders import SavedEncoder
from kuramotognn.experiments.figures import draw_confusion, draw_curves
from kuramotognn.experiments.provenance import provenance
from kuramotognn.features import Features, check_features, compact_features, normalise_features, scale_features
from kuramotognn.files import write_atomically
from kuramotognn.graph import Graph
from kuramotognn.kernels import backend_in_use, set_backend, warm_up
from kuramotognn.training import EpochMetrics, TrainResult, accuracy, fit, predict
from kuramotognn.typing import Labels, Logits

CONFIG, RESULT, METRICS, MODEL = "config.toml", "result.json", "metrics.jsonl", "model.safetensors"
PREDICTIONS, CURVES, CONFUSION, ENCODER = "predictions.csv", "curves.svg", "confusion.svg", "encoder.json"


@dataclass(frozen=True)
class SplitResult:
    """What one split gave; a row of the final table and a file ``result.json`` in the split's folder."""

    protocol: str
    split: int
    seed: int
    train_nodes: int
    validation_nodes: int
    test_nodes: int
    best_epoch: int
    epochs: int
    time: float | None
    validation_accuracy: float
    test_accuracy: float
    evaluations: int
    seconds: float
    test_measures: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class RunResult:
    """All splits of a run, and where they are."""

    folder: Path
    splits: tuple[SplitResult, ...]

    def summary(self) -> dict[str, Any]:
        """Means and sample standard deviations over the splits."""
        values = {
            name: [getattr(split, name) for split in self.splits]
            for name in ("validation_accuracy", "test_accuracy", "evaluations", "seconds")
        }
        for name in ("macro_f1", "balanced_accuracy", "roc_auc"):
            measured = [split.test_measures.get(name) for split in self.splits]
            if None not in measured:
                values[f"test_{name}"] = measured
        return {"splits": len(self.splits)} | {name: _mean_and_std(numbers) for name, numbers in values.items()}


class RunObserver:
    """Told of what happens during a run; does nothing by itself."""

    def started(self, split: int, epochs: int) -> None:
        """A split begins that will take ``epochs`` at most."""

    def epoch(self, split: int, metrics: EpochMetrics) -> None:
        """An epoch is over."""

    def finished(self, result: SplitResult) -> None:
        """A split is done, now or in an earlier session."""

    def read(self, understood: Understood) -> None:
        """A graph of the user's own was read."""

    def compiled(self, seconds: float) -> None:
        """The kernels were compiled, which happens once."""

    def warning(self, message: str) -> None:
        """Something was mended that the user should know of."""


@dataclass(frozen=True, eq=False)
class Task:
    """The data of a run, ready for models: features, graph and labels on the run's device.

    Where features are fitted to training nodes (columns of a table, standardised numbers) :meth:`for_split` gives those
    of a split.
    """

    config: Config
    dataset: NodeDataset
    x: Features
    graph: Graph
    y: Labels
    encoder: Encoder | None = None

    @staticmethod
    def from_config(config: Config, observer: RunObserver | None = None) -> Task:
        """Load and prepare the data, and choose the kernels."""
        set_backend(config.backend)
        dataset = config.data.load(config.dataset, observer.read if observer else None)
        if config.data.largest_component:
            dataset = dataset.largest_component()
        return Task.of(config, dataset)

    @staticmethod
    def of(config: Config, dataset: NodeDataset) -> Task:
        """Prepare a data set that was loaded."""
        check_features(dataset.x)
        graph = Graph.from_edge_index(
            dataset.edge_index, dataset.num_nodes, dataset.edge_weight, self_loops=config.data.self_loops
        )
        task = Task(config, dataset, dataset.x, graph.to(config.device), dataset.y.to(config.device))
        return task._with_features(dataset.x)

    def for_split(self, number: int) -> Task:
        """The task with features that are fitted to the training nodes of a split, where features are fitted at all."""
        standardise = self.config.data.normalisation == "standardise"
        if self.dataset.columns is None and not standardise:
            return self
        return self.encoded(Encoder.fit(self._columns(), self.split(number).train, standardise=standardise))

    def encoded(self, encoder: Encoder) -> Task:
        """The task with the features that an encoder makes."""
        return replace(self._with_features(encoder.apply(self._columns())), encoder=encoder)

    def unseen(self) -> list[str]:
        """What the encoder has not met among the training nodes."""
        return self.encoder.unseen(self._columns()) if self.encoder else []

    def _columns(self) -> Columns:
        return self.dataset.columns or Columns.of_features(self.dataset.x)

    def _with_features(self, x: Features) -> Task:
        how = self.config.data.normalisation
        x = scale_features(x if how == "standardise" else normalise_features(x, how), self.config.data.scale)
        return replace(self, x=compact_features(x).to(self.config.device))

    def split(self, number: int) -> Split:
        """Split ``number`` of the run's protocol."""
        return self.config.data.split(self.dataset, number)

    def model(self) -> nn.Module:
        """The run's model, initialised from its seed; the global generator is left as it was."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.config.seed)
            model = self.config.model.build(self.x.shape[1], self.dataset.num_classes, self.config.solver.build())
        return model.to(self.config.device)


def start_run(config: Config, folder: Path, observer: RunObserver | None = None) -> RunResult:
    """Train on every split of ``config`` in a new folder."""
    if folder.exists() and any(folder.iterdir() if folder.is_dir() else [folder]):
        raise ConfigError(f"{str(folder)!r} exists and is not empty; resume it with --resume or name another folder")
    observer = observer or RunObserver()
    task = Task.from_config(config, observer)
    # Settings that cannot work should not leave a folder behind.
    task.for_split(config.first_split).model(), task.split(config.first_split + config.splits - 1)
    task.split(config.first_split)
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / CONFIG, config.to_toml())
    return _train_splits(task, folder, observer)


def resume_run(folder: Path, observer: RunObserver | None = None) -> RunResult:
    """Go on where a run stopped: finished splits are kept, the interrupted one continues from its checkpoint."""
    return _train_splits(Task.from_config(load_config(folder)), folder, observer or RunObserver())


def load_config(folder: Path) -> Config:
    """The settings of a run folder."""
    if not folder.is_dir():
        raise ConfigError(f"{str(folder)!r} is not a run folder: there is no such folder")
    if not (folder / CONFIG).is_file():
        raise ConfigError(f"{str(folder)!r} is not a run folder: it has no {CONFIG}; `kuramotognn train` makes one")
    return parse(read_toml(folder / CONFIG))


def load_split(folder: Path, number: int) -> SplitResult:
    """The recorded result of one split."""
    path = split_folder(folder, number) / RESULT
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        return SplitResult(**{name: record[name] for name in SplitResult.__dataclass_fields__ if name in record})
    except FileNotFoundError as error:
        raise ConfigError(f"split {number} of {str(folder)!r} is not finished; go on with --resume {folder}") from error
    except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError) as error:
        raise ConfigError(f"{str(path)!r} is not a result file of a split: {error}") from error


@dataclass(frozen=True)
class Evaluation:
    """Accuracies computed anew from a stored model, beside what was recorded."""

    recorded: SplitResult
    validation_accuracy: float
    test_accuracy: float


def evaluate_run(folder: Path) -> list[Evaluation]:
    """Load every finished split's model and compute its accuracies again."""
    task = Task.from_config(load_config(folder))
    return [_evaluate_split(task, folder, number) for number in finished_splits(folder, task.config)]


def predict_run(
    folder: Path,
    split: int | None = None,
    *,
    new: FilesConfig | None = None,
    with_training_nodes: bool = False,
    observer: RunObserver | None = None,
) -> str:
    """Predictions of one split's model (the first finished one unless named) for every node, as CSV.

    Args:
        folder: of the run.
        split: whose model.
        new: files of a graph to predict instead of the one trained on; what its columns mean is as in the run.
        with_training_nodes: let the nodes of the run take part, so that new ones keep them as neighbours.
        observer: told of what was read, and of categories that training nodes did not have.
    """
    config, observer = load_config(folder), observer or RunObserver()
    number = finished_split(folder, config, split)
    recorded = load_split(folder, number)
    if new is None:
        task = Task.from_config(config)
        return predictions_csv(task, _stored_logits(task, folder, recorded), task.split(number))
    saved = SavedEncoder.load(split_folder(folder, number) / ENCODER)
    if config.dataset != OWN_GRAPH or saved is None:
        raise ConfigError(
            f"{str(folder)!r} was trained on {config.dataset}; other nodes need a run on files of your own"
        )
    # The matrix of the run belongs to the nodes of the run.
    changed = {"split_column": None, "features": None} | new.model_dump(exclude_unset=True)
    files = config.data.files.model_copy(update=changed)
    beside = config.data.files.to_read(directed=config.data.directed) if with_training_nodes else None
    dataset, understood = read_graph(files.to_read(directed=config.data.directed), saved.encoder, beside=beside)
    observer.read(understood)
    task = Task.of(config, saved.with_known_classes(dataset)).encoded(saved.encoder)
    for sentence in task.unseen():
        observer.warning(sentence)
    return predictions_csv(
        task, _stored_logits(task, folder, recorded), None, count=understood.nodes - understood.beside
    )


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


def split_folder(folder: Path, number: int) -> Path:
    """Where one split of a run is kept."""
    return folder / f"split-{number}"


def predictions_csv(task: Task, logits: Logits, split: Split | None, *, count: int | None = None) -> str:
    """A row a node: its id, its part in the split, its class, the predicted class, and all probabilities.

    Of the first ``count`` nodes, if given.
    """
    names = task.dataset.class_names
    part = ["unused" if split else "new"] * task.dataset.num_nodes
    for name in ("train", "validation", "test") if split else ():
        for node in getattr(split, name).tolist():
            part[node] = name
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["node", "part", "label", "prediction", *(f"p({name})" for name in names)])
    probabilities = logits.double().softmax(dim=-1).cpu()
    rows = zip(task.dataset.node_ids, part, task.y.tolist(), probabilities.tolist(), strict=True)
    for node, where, label, row in islice(rows, count):
        guess = max(range(len(row)), key=row.__getitem__)
        writer.writerow([node, where, names[label] if label >= 0 else "", names[guess], *(f"{p:.6f}" for p in row)])
    return buffer.getvalue()


def _train_splits(task: Task, folder: Path, observer: RunObserver) -> RunResult:
    config, results = task.config, []
    if seconds := warm_up():
        observer.compiled(seconds)
    for number in range(config.first_split, config.first_split + config.splits):
        if (split_folder(folder, number) / RESULT).is_file():
            results.append(load_split(folder, number))
        else:
            observer.started(number, config.training.epochs)
            results.append(_train_split(task, folder, number, observer))
        observer.finished(results[-1])
    run = RunResult(folder, tuple(results))
    _write_json(folder / RESULT, _run_record(config, run))
    return run


def _train_split(task: Task, folder: Path, number: int, observer: RunObserver) -> SplitResult:
    home = split_folder(folder, number)
    home.mkdir(exist_ok=True)
    task = task.for_split(number)
    if number == task.config.first_split:
        for sentence in task.unseen():
            observer.warning(sentence)
    model, split, checkpoints = task.model(), task.split(number), CheckpointFolder(home)
    with (home / METRICS).open("w", encoding="utf-8") as metrics_file:

        def record(metrics: EpochMetrics) -> None:
            metrics_file.write(json.dumps(asdict(metrics)) + "\n")
            metrics_file.flush()
            observer.epoch(number, metrics)

        trained = fit(
            model,
            task.x,
            task.graph,
            task.y,
            split,
            config=task.config.training,
            seed=task.config.seed,
            checkpoints=checkpoints,
            on_epoch=record,
        )
    for message in checkpoints.rejected:
        observer.warning(message)
    result = split_result(split, task.config.seed, trained)
    _store_split(task, home, model, split, trained, result)
    checkpoints.clear()
    return result


def split_result(split: Split, seed: int, trained: TrainResult) -> SplitResult:
    """What is recorded of a training."""
    return SplitResult(
        protocol=split.protocol,
        split=split.number,
        seed=seed,
        train_nodes=split.train.numel(),
        validation_nodes=split.validation.numel(),
        test_nodes=split.test.numel(),
        best_epoch=trained.best.epoch,
        epochs=len(trained.history),
        time=trained.best.time,
        validation_accuracy=trained.best.validation_accuracy,
        test_accuracy=trained.test_accuracy,
        evaluations=trained.best.evaluations,
        seconds=round(trained.seconds, 3),
        test_measures=trained.test_measures,
    )


def _store_split(
    task: Task, home: Path, model: nn.Module, split: Split, trained: TrainResult, result: SplitResult
) -> None:
    write_tensors(home / MODEL, model.state_dict(), {"model": task.config.model.name})
    logits = predict(model, task.x, task.graph, time=result.time)
    write_atomically(home / PREDICTIONS, predictions_csv(task, logits, split))
    if task.encoder is not None:
        SavedEncoder(classes=task.dataset.class_names, encoder=task.encoder).store(home / ENCODER)
    draw_curves(trained.history, trained.best.epoch, home / CURVES)
    draw_confusion(result.test_measures["confusion"], task.dataset.class_names, home / CONFUSION)
    # The result comes last: its presence says that the split is complete.
    _write_json(home / RESULT, asdict(result) | _context(task.config))


def _context(config: Config) -> dict[str, Any]:
    """What a number must be read with."""
    return {"dataset": config.dataset, "backend": backend_in_use(config.device), "provenance": provenance()}


def _run_record(config: Config, run: RunResult) -> dict[str, Any]:
    return {
        **_context(config),
        "protocol": config.data.protocol,
        "selection": "epoch (and time, if select_time) by validation accuracy, ties by validation loss",
        "summary": run.summary(),
        "splits": [asdict(split) for split in run.splits],
        "config": config.model_dump(mode="json"),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _evaluate_split(task: Task, folder: Path, number: int) -> Evaluation:
    recorded, split = load_split(folder, number), task.split(number)
    logits = _stored_logits(task, folder, recorded)
    return Evaluation(recorded, accuracy(logits, task.y, split.validation), accuracy(logits, task.y, split.test))


def _stored_logits(task: Task, folder: Path, recorded: SplitResult) -> Logits:
    task = with_encoder(task, folder, recorded.split)
    return predict(stored_model(task, folder, recorded), task.x, task.graph, time=recorded.time)


def with_encoder(task: Task, folder: Path, number: int) -> Task:
    """The task with features as a split's training nodes encode them, where the run has files of its own."""
    if task.encoder is None and (saved := SavedEncoder.load(split_folder(folder, number) / ENCODER)):
        return task.encoded(saved.encoder)
    return task


def stored_model(task: Task, folder: Path, recorded: SplitResult) -> nn.Module:
    """The trained model of a split."""
    model = task.model()
    tensors, _ = read_tensors(split_folder(folder, recorded.split) / MODEL)
    try:
        model.load_state_dict(tensors)
    except RuntimeError as error:
        first = " ".join(str(error).split("\n\t")[1:2])
        raise ConfigError(f"{MODEL} of split {recorded.split} does not fit the model of {CONFIG}: {first}") from error
    return model


def _mean_and_std(values: Sequence[float]) -> dict[str, float]:
    return {"mean": statistics.fmean(values), "std": statistics.stdev(values) if len(values) > 1 else 0.0}


def _write_json(path: Path, content: object) -> None:
    write_atomically(path, json.dumps(content, indent=2) + "\n")
