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
    """Write records into one file, a line each: the first of a case whole, the others where they differ from it."""
    lines: list[Record] = []
    before: Record = {}
    for record in records:
        lines.append(_changes(record, before) if _alike(record, before) else record)
        before = record
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, "".join(json.dumps(line) + "\n" for line in lines))


def unpack(path: Path) -> Iterator[Record]:
    """The records of a file that :func:`pack` wrote."""
    check_regular(path)
    record: Record = {}
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            record = parse_record(line, f"{path}, line {number}", before=record)
            yield record


def _alike(record: Record, before: Record) -> bool:
    """Whether two records are of one case and have the same entries, in their settings too."""
    same_case = record.keys() == before.keys() and record["case"] == before["case"]
    return same_case and record["config"].keys() == before["config"].keys()


def _changes(record: Record, before: Record) -> Record:
    """What of a record differs from the one before."""
    changed = {name: value for name, value in record.items() if value != before[name]}
    if "config" in changed:
        old = before["config"]
        changed["config"] = {name: value for name, value in changed["config"].items() if value != old[name]}
    return changed


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*.json")) if not path.name.startswith("."))


def _read(folder: Path) -> Iterator[Record]:
    for path in _files(folder):
        yield load(path)
    for path in sorted(folder.rglob("*.jsonl")):
        yield from unpack(path)


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
