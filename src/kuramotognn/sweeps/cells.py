"""Cells of a sweep: one configuration on one split with one seed, and the file that keeps its result."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from kuramotognn.atomic_write import write_atomically
from kuramotognn.config.resolve import ConfigError
from kuramotognn.config.tree import Config
from kuramotognn.data.data_error import DataError
from kuramotognn.documents import first_problem, parse_json, read_document
from kuramotognn.errors import memory_ran_out
from kuramotognn.printable import printable
from kuramotognn.runs.fingerprint import fingerprint, same_numbers
from kuramotognn.runs.provenance import backend, provenance
from kuramotognn.sweeps.outcomes import OUTCOMES, Outcome
from kuramotognn.sweeps.stored_record import StoredRecord

#: Part of every hash: raise it when the same settings begin to mean another number.
RESULT_FORMAT = 2


@dataclass(frozen=True, eq=False)
class Case:
    """Settings that are measured on several splits and seeds; which ones is not part of it."""

    config: Config
    outcome: Outcome = "accuracy"

    @cached_property
    def digest(self) -> str:
        """Names everything that decides the numbers, apart from split and seed."""
        settings = self.config.model_dump(mode="json", exclude={"splits", "first_split", "seed"})
        if self.config.training.batch == "none":  # They came later: results without batches keep their names.
            for name in ("batch", "parts", "parts_per_batch"):
                del settings["training"][name]
        text = json.dumps({"format": RESULT_FORMAT, "outcome": self.outcome, **settings}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def fingerprint(self) -> tuple[float, ...]:
        """What today's code computes with these settings; empty for what does not depend on it."""
        return () if self.outcome == "statistics" else fingerprint(self.config)

    def is_current(self, record: dict[str, Any]) -> bool:
        """Whether today's code computes the same numbers as the code that made a record of this case."""
        return same_numbers(record.get("fingerprint", ()), self.fingerprint)

    def cells(self, splits: int, seeds: int) -> list[Cell]:
        """Splits from 0, each with seeds from 0."""
        return [Cell(self, split, seed) for split in range(splits) for seed in range(seeds)]


@dataclass(frozen=True)
class Cell:
    """A case on one split with one seed."""

    case: Case
    split: int
    seed: int = 0

    @property
    def name(self) -> str:
        """The path of the result in a folder of results, without its ending."""
        config = self.case.config
        folder = f"{self.case.outcome}/{config.dataset}/{Path(config.model.name).name}"
        return f"{folder}/{self.case.digest}-{self.split}-{self.seed}"

    @property
    def config(self) -> Config:
        """Settings of this cell alone."""
        return self.case.config.model_copy(update={"splits": 1, "first_split": self.split, "seed": self.seed})

    def path(self, folder: Path) -> Path:
        """The result file."""
        return folder / f"{self.name}.json"

    def problem_path(self, folder: Path) -> Path:
        """A file that says why the cell was given up for now; it is no result."""
        return folder / f"{self.name}.problem"

    def perform(self) -> dict[str, Any]:
        """Measure, and return the record to keep; a failure of the settings is recorded with its reason.

        Raises:
            OSError: the machine failed, not the settings: data that cannot be read, memory that ran out.
        """
        try:
            return self._record() | {"result": OUTCOMES[self.case.outcome](self.config)}
        except OSError:
            raise
        except Exception as error:  # Models may be the user's own and raise anything.
            if isinstance(error, DataError) or memory_ran_out(error):
                raise OSError(str(error) or "memory ran out") from error
            return self.failure(printable(f"{type(error).__name__}: {error}".strip(": "), 2000))

    def failure(self, reason: str) -> dict[str, Any]:
        """The record of a cell whose settings failed."""
        return self._record() | {"failed": reason}

    def _record(self) -> dict[str, Any]:
        return {
            "format": RESULT_FORMAT,
            "case": self.case.digest,
            "outcome": self.case.outcome,
            "split": self.split,
            "seed": self.seed,
            "config": self.config.model_dump(mode="json"),
            "backend": backend(self.config),
            "provenance": _provenance(),
            "fingerprint": list(self.case.fingerprint),
            "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        }


_provenance = cache(provenance)  # It runs git, and the code of a process does not change.


def give_up(cell: Cell, folder: Path, reason: str) -> None:
    """Say why a cell has no result for now."""
    path = cell.problem_path(folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(reason, encoding="utf-8")


def store(record: dict[str, Any], path: Path) -> None:
    """Write a record atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, json.dumps(record) + "\n")


def load(path: Path) -> dict[str, Any]:
    """Read a record."""
    return parse_record(read_document(path), str(path))


def parse_record(content: bytes, place: str, before: dict[str, Any] | None = None) -> dict[str, Any]:
    """A record from its JSON, or one run more of the case ``before`` it, which then says all else."""
    try:
        record: dict[str, Any] = parse_json(content)
        if before and isinstance(record, dict) and "format" not in record:
            record = before | {"config": before["config"] | record.pop("config", {})} | record
        StoredRecord.model_validate(record)
    except ValueError as error:
        what = first_problem(error) if isinstance(error, ValidationError) else error
        raise ConfigError(f"{place!r} is not a result file: {what}; remove it to have it made again") from error
    return record
