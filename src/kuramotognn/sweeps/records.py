"""The results in a folder, found again by what was run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from kuramotognn.atomic_write import write_atomically
from kuramotognn.config.resolve import ConfigError, parse
from kuramotognn.documents import check_regular
from kuramotognn.models.registry import MODELS
from kuramotognn.sweeps.cells import RESULT_FORMAT, Case, load, parse_record

Record = dict[str, Any]


class Records:
    """All records under a folder: one a file (``.json``), or one a line (``.jsonl``, as :func:`pack` writes)."""

    def __init__(self, *folders: Path) -> None:
        self._by_case: dict[str, dict[tuple[int, int], Record]] = {}
        digests: dict[str, str] = {}
        for record in (record for folder in folders for record in _read(folder)):
            written = record["case"]
            if written not in digests:
                digests[written] = _digest(record)
            self._by_case.setdefault(digests[written], {})[record["split"], record["seed"]] = record

    def of(self, case: Case) -> list[Record]:
        """What is known of a case, by split and seed."""
        return [record for _, record in sorted(self._by_case.get(case.digest, {}).items())]

    def __iter__(self) -> Iterator[Record]:
        return (record for case in self._by_case.values() for record in case.values())

    def __len__(self) -> int:
        return sum(len(case) for case in self._by_case.values())


def pack(records: Iterable[Record], path: Path) -> None:
    """Write records into one file, a line each."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, "".join(json.dumps(record) + "\n" for record in records))


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*.json")) if not path.name.startswith("."))


def _read(folder: Path) -> Iterator[Record]:
    for path in _files(folder):
        yield load(path)
    for path in sorted(folder.rglob("*.jsonl")):
        check_regular(path)
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                yield parse_record(line, f"{path}, line {number}")


def _digest(record: Record) -> str:
    """The case as this version names it: settings that came later have their default in older records."""
    # A model that is not ours would have its file run, and is in no experiment.
    if record["format"] != RESULT_FORMAT or record["config"]["model"]["name"] not in MODELS:
        return str(record["case"])
    try:
        digest: str = Case(parse(record["config"]), record["outcome"]).digest
    except ConfigError:
        return str(record["case"])  # A setting or model that is gone: kept, but in no table.
    return digest
