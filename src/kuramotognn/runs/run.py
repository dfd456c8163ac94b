"""A run: one configuration trained on several splits, in a folder that can be resumed."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from torch import nn

from kuramotognn.atomic_write import PART, remove_parts, write_atomically
from kuramotognn.batches import check_parts
from kuramotognn.checkpoints import CheckpointFolder, write_tensors
from kuramotognn.config.resolve import ConfigError, flatten
from kuramotognn.config.tree import Config
from kuramotognn.data import Split
from kuramotognn.parallel.launch import current_ranks
from kuramotognn.plots.run_plots import draw_confusion, draw_curves
from kuramotognn.runs.pilot import choose_time
from kuramotognn.runs.provenance import provenance
from kuramotognn.runs.run_lock import LOCK, run_lock
from kuramotognn.runs.saved_encoder import SavedEncoder
from kuramotognn.runs.stored_run import (
    CONFIG,
    CONFUSION,
    CURVES,
    ENCODER,
    METRICS,
    MODEL,
    PREDICTIONS,
    RESULT,
    RUN_FORMAT,
    RunObserver,
    load_config,
    load_split,
    predictions_csv,
    split_folder,
)
from kuramotognn.runs.task import Task
from kuramotognn.train_result import EpochMetrics, TrainResult
from kuramotognn.training import check_batch_over_ranks


@dataclass(frozen=True)
class RunResult:
    """All splits of a run, and where they are."""

    folder: Path
    splits: tuple[TrainResult, ...]

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


def start_run(config: Config, folder: Path, observer: RunObserver | None = None) -> RunResult:
    """Train on every split of ``config`` in a new folder."""
    if folder.exists() and any(_contents(folder)):
        raise ConfigError(f"{str(folder)!r} exists and is not empty; resume it with --resume or name another folder")
    observer = observer or RunObserver()
    _check_same_settings(config)
    task = Task.from_config(config, observer.read)
    # Settings that cannot work should not leave a folder behind.
    check_batch_over_ranks(task.for_split(config.first_split).try_model(), config.training)
    task.split(config.first_split), task.split(config.first_split + config.splits - 1)
    check_parts(config.training, task.dataset.num_nodes)
    folder.mkdir(parents=True, exist_ok=True)
    with run_lock(folder):
        _write_config(folder, config)
        observer.prepared(folder)
        return _train_splits(task, folder, observer)


def _check_same_settings(config: Config) -> None:
    """Refuse ranks that were started with unlike settings; devices and the places of files may differ."""
    if (ranks := current_ranks()) is None:
        return
    first, *others = ranks.objects(dict(flatten(config.model_dump(exclude={"device": True, "data": {"files"}}))))
    for rank, other in enumerate(others, start=1):
        for name in ("dataset", "model.name", *first, *other):  # Defaults of the rest depend on these two.
            if other.get(name) != first.get(name):
                values = f"{other.get(name)!r} in rank {rank} and {first.get(name)!r} in rank 0"
                raise ConfigError(f"{name} is {values}; start all ranks with the same settings")


def _contents(folder: Path) -> list[Path]:
    """The files of a folder, without what a run leaves that is killed before it has a config; a file itself."""
    if not folder.is_dir():
        return [folder]
    return [path for path in folder.iterdir() if path.name != LOCK and not path.name.endswith(PART)]


def resume_run(folder: Path, observer: RunObserver | None = None) -> RunResult:
    """Go on where a run stopped: finished splits are kept, the interrupted one continues from its checkpoint."""
    config = load_config(folder)
    with run_lock(folder):
        return _train_splits(Task.from_config(config), folder, observer or RunObserver())


def _train_splits(task: Task, folder: Path, observer: RunObserver) -> RunResult:
    if task.config.try_times:
        task, tried = choose_time(task)
        observer.chose_time(task.config.model.time, tried)  # type: ignore[attr-defined]
        _write_config(folder, task.config)
    config, results = task.config, []
    for place in (folder, *folder.glob("split-*")):
        remove_parts(place)
    for number in range(config.first_split, config.first_split + config.splits):
        if (split_folder(folder, number) / RESULT).is_file():
            results.append(load_split(folder, number))
        else:
            observer.started(number, config.training.epochs)
            results.append(_train_split(task, folder, number, observer))
        observer.finished(results[-1])
    run = RunResult(folder, tuple(results))
    _write_json(folder / RESULT, _run_record(task, run))
    return run


def _write_config(folder: Path, config: Config) -> None:
    write_atomically(folder / CONFIG, f"format = {RUN_FORMAT}\n{config.to_toml()}")


def _train_split(task: Task, folder: Path, number: int, observer: RunObserver) -> TrainResult:
    home = split_folder(folder, number)
    home.mkdir(exist_ok=True)
    task = task.for_split(number)
    if number == task.config.first_split:
        for sentence in task.unseen():
            observer.warning(sentence)
    model, split, checkpoints = task.model(), task.split(number), CheckpointFolder(home)
    if number == task.config.first_split and (spread := getattr(model, "distributed", None)) is not None:
        observer.spread(spread.describe(task.graph))
    with (home / METRICS).open("w", encoding="utf-8") as metrics_file:

        def record(metrics: EpochMetrics) -> None:
            metrics_file.write(json.dumps(asdict(metrics)) + "\n")
            metrics_file.flush()
            observer.epoch(number, metrics)

        result = task.fit(model, split, checkpoints=checkpoints, on_epoch=record)
    for message in checkpoints.rejected:
        observer.warning(message)
    _store_split(task, home, model, split, result)
    checkpoints.clear()
    return result


def _store_split(task: Task, home: Path, model: nn.Module, split: Split, result: TrainResult) -> None:
    assert result.logits is not None
    names = task.dataset.class_names
    write_tensors(home / MODEL, model.state_dict(), {"model": task.config.model.name})
    write_atomically(home / PREDICTIONS, predictions_csv(task, result.logits, split))
    if task.encoder is not None:
        SavedEncoder(classes=names, encoder=task.encoder).store(home / ENCODER)
    draw_curves(result.history, result.best_epoch, home / CURVES)
    draw_confusion(result.test_measures["confusion"], names, home / CONFUSION)
    # The result comes last: its presence says that the split is complete.
    _write_json(home / RESULT, result.record() | _context(task))


def _context(task: Task) -> dict[str, Any]:
    """The facts that a number must be read with."""
    return {"dataset": task.config.dataset, "backend": task.backend, "provenance": provenance()}


def _run_record(task: Task, run: RunResult) -> dict[str, Any]:
    return {
        **_context(task),
        "protocol": task.config.data.protocol,
        "selection": f"epoch (and time, if select_time) by validation {task.config.training.metric}, ties by loss",
        "summary": run.summary(),
        "splits": [split.record() for split in run.splits],
        "config": task.config.model_dump(mode="json"),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _mean_and_std(values: Sequence[float]) -> dict[str, float]:
    return {"mean": statistics.fmean(values), "std": statistics.stdev(values) if len(values) > 1 else 0.0}


def _write_json(path: Path, content: object) -> None:
    write_atomically(path, json.dumps(content, indent=2) + "\n")
