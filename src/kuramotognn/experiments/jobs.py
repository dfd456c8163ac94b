"""The unit of experiments: one training of one configuration on one split with one seed, and the file it leaves."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from pathlib import Path
from statistics import fmean
from typing import Any

from kuramotognn.experiments.config import Config, ConfigError
from kuramotognn.experiments.provenance import provenance
from kuramotognn.experiments.run import Task, split_result
from kuramotognn.files import write_atomically
from kuramotognn.kernels import backend_in_use
from kuramotognn.solve import SolverError
from kuramotognn.training import fit

#: Part of every hash: raise it when the same settings begin to mean another number.
RESULT_FORMAT = 1
#: Splits from here on are for choosing settings; what their test nodes say is not recorded.
FIRST_TUNING_SPLIT = 1000


@dataclass(frozen=True, eq=False)
class Cell:
    """Settings that are trained on several splits and seeds; which ones is not part of it."""

    config: Config

    @cached_property
    def digest(self) -> str:
        """Names everything that decides the numbers, apart from split and seed."""
        settings = self.config.model_dump(mode="json", exclude={"splits", "first_split", "seed"})
        text = json.dumps({"format": RESULT_FORMAT, **settings}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Job:
    """One training."""

    cell: Cell
    split: int
    seed: int = 0

    @property
    def name(self) -> str:
        """The path of the result in a folder of results, without its ending."""
        config = self.cell.config
        return f"{config.dataset}/{config.model.name}/{self.cell.digest}-{self.split}-{self.seed}"

    @property
    def config(self) -> Config:
        """Settings of this training alone."""
        return self.cell.config.model_copy(update={"splits": 1, "first_split": self.split, "seed": self.seed})

    def path(self, folder: Path) -> Path:
        """The result file."""
        return folder / f"{self.name}.json"


def perform(job: Job) -> dict[str, Any]:
    """Train, and return the record to keep; a training that cannot be done is recorded with its reason."""
    try:
        return _record(job) | {"result": train(job.config)}
    except (SolverError, ValueError, RuntimeError, MemoryError) as error:
        return failure(job, f"{type(error).__name__}: {error}".strip(": "))


def failure(job: Job, reason: str) -> dict[str, Any]:
    """The record of a training that could not be done."""
    return _record(job) | {"failed": reason}


def _record(job: Job) -> dict[str, Any]:
    return {
        "format": RESULT_FORMAT,
        "split": job.split,
        "seed": job.seed,
        "config": job.config.model_dump(mode="json"),
        "backend": backend_in_use(job.config.device),
        "provenance": provenance(),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def train(config: Config) -> dict[str, Any]:
    """Train on the configuration's first split; the test accuracy of a tuning split is left out."""
    task = replace(_task(config.model_copy(update={"splits": 1, "first_split": 0, "seed": 0})), config=config)
    split = task.split(config.first_split)
    trained = fit(task.model(), task.x, task.graph, task.y, split, config=config.training, seed=config.seed)
    result = asdict(split_result(split, config.seed, trained))
    result["mean_evaluations"] = fmean(metrics.evaluations for metrics in trained.history)
    if config.first_split >= FIRST_TUNING_SPLIT:
        del result["test_accuracy"]
    return result


def store(record: dict[str, Any], path: Path) -> None:
    """Write a record: whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, json.dumps(record, indent=1) + "\n")


def load(path: Path) -> dict[str, Any]:
    """Read a record."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{str(path)!r} is not a result file: {error}; remove it to have it made again") from error
    if not isinstance(record, dict) or not {"config", "split", "seed"} <= record.keys():
        raise ConfigError(f"{str(path)!r} is not a result file; remove it to have it made again")
    return record


@lru_cache(maxsize=1)
def _task(config: Config) -> Task:
    # Most trainings follow one of the same cell: the data need not be read again.
    return Task.from_config(config)
