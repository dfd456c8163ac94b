"""The unit of experiments: one configuration on one split with one seed, and the file that keeps what came out."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from kuramotognn.experiments.config import Config, ConfigError
from kuramotognn.experiments.measures import MEASURES, Measure
from kuramotognn.experiments.provenance import provenance
from kuramotognn.files import write_atomically
from kuramotognn.kernels import backend_in_use
from kuramotognn.solve import SolverError

#: Part of every hash: raise it when the same settings begin to mean another number.
RESULT_FORMAT = 1


@dataclass(frozen=True, eq=False)
class Cell:
    """Settings that are measured on several splits and seeds; which ones is not part of it."""

    config: Config
    measure: Measure = "accuracy"

    @cached_property
    def digest(self) -> str:
        """Names everything that decides the numbers, apart from split and seed."""
        settings = self.config.model_dump(mode="json", exclude={"splits", "first_split", "seed"})
        text = json.dumps({"format": RESULT_FORMAT, "measure": self.measure, **settings}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def jobs(self, splits: int, seeds: int) -> list[Job]:
        """Splits from 0, each with seeds from 0."""
        return [Job(self, split, seed) for split in range(splits) for seed in range(seeds)]


@dataclass(frozen=True)
class Job:
    """A cell on one split with one seed."""

    cell: Cell
    split: int
    seed: int = 0

    @property
    def name(self) -> str:
        """The path of the result in a folder of results, without its ending."""
        config = self.cell.config
        folder = f"{self.cell.measure}/{config.dataset}/{config.model.name}"
        return f"{folder}/{self.cell.digest}-{self.split}-{self.seed}"

    @property
    def config(self) -> Config:
        """Settings of this job alone."""
        return self.cell.config.model_copy(update={"splits": 1, "first_split": self.split, "seed": self.seed})

    def path(self, folder: Path) -> Path:
        """The result file."""
        return folder / f"{self.name}.json"

    def perform(self) -> dict[str, Any]:
        """Measure, and return the record to keep; what cannot be done is recorded with its reason."""
        try:
            return self._record() | {"result": MEASURES[self.cell.measure](self.config)}
        except (SolverError, ValueError, RuntimeError, MemoryError) as error:
            return self.failure(f"{type(error).__name__}: {error}".strip(": "))

    def failure(self, reason: str) -> dict[str, Any]:
        """The record of a job that could not be done."""
        return self._record() | {"failed": reason}

    def _record(self) -> dict[str, Any]:
        return {
            "format": RESULT_FORMAT,
            "cell": self.cell.digest,
            "measure": self.cell.measure,
            "split": self.split,
            "seed": self.seed,
            "config": self.config.model_dump(mode="json"),
            "backend": backend_in_use(self.config.device),
            "provenance": _provenance(),
            "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        }


_provenance = cache(provenance)  # It asks git, and a process does not change its code.


def store(record: dict[str, Any], path: Path) -> None:
    """Write a record: whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, json.dumps(record) + "\n")


def load(path: Path) -> dict[str, Any]:
    """Read a record."""
    return parse_record(path.read_bytes(), str(path))


def parse_record(content: bytes, place: str) -> dict[str, Any]:
    """A record from its JSON."""
    try:
        record = json.loads(content)
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{place!r} is not a result file: {error}; remove it to have it made again") from error
    known = isinstance(record, dict) and {"format", "cell", "config", "measure", "split", "seed"} <= record.keys()
    if not known or not {"result", "failed"} & record.keys():
        raise ConfigError(f"{place!r} is not a result file; remove it to have it made again")
    checked: dict[str, Any] = record
    return checked
