"""The results in a folder, found again by what was run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from kuramotognn.experiments.config import ConfigError, parse
from kuramotognn.experiments.jobs import RESULT_FORMAT, Cell, Job, load, parse_record, store
from kuramotognn.files import write_atomically

Record = dict[str, Any]


class Records:
    """All records under a folder: one a file (``.json``), or one a line (``.jsonl``, as :func:`pack` writes)."""

    def __init__(self, *folders: Path) -> None:
        self._by_cell: dict[str, dict[tuple[int, int], Record]] = {}
        digests: dict[str, str] = {}
        for record in (record for folder in folders for record in _read(folder)):
            written = record["cell"]
            if written not in digests:
                digests[written] = _digest(record)
            self._by_cell.setdefault(digests[written], {})[record["split"], record["seed"]] = record

    def of(self, cell: Cell) -> list[Record]:
        """What is known of a cell, by split and seed."""
        return [record for _, record in sorted(self._by_cell.get(cell.digest, {}).items())]

    def __iter__(self) -> Iterator[Record]:
        return (record for cell in self._by_cell.values() for record in cell.values())

    def __len__(self) -> int:
        return sum(len(cell) for cell in self._by_cell.values())


def pack(records: Iterable[Record], path: Path) -> None:
    """Write records into one file, a line each."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, "".join(json.dumps(record) + "\n" for record in records))


def adopt(folder: Path) -> int:
    """Give results the names that this version gives them, so that they are not made again; how many there were.

    A setting that came since has its default in them, which must mean what its absence meant; else RESULT_FORMAT is
    raised, and they are left alone.
    """
    digests: dict[str, str] = {}
    adopted = 0
    for path in list(_files(folder)):
        record = load(path)
        written = record["cell"]
        if written not in digests:
            digests[written] = _digest(record)
        if digests[written] != written:
            job = Job(Cell(parse(record["config"]), record["measure"]), record["split"], record["seed"])
            if not job.path(folder).exists():
                store(record | {"cell": digests[written]}, job.path(folder))
            path.unlink()
            adopted += 1
    return adopted


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*.json")) if not path.name.startswith("."))


def _read(folder: Path) -> Iterator[Record]:
    for path in _files(folder):
        yield load(path)
    for path in sorted(folder.rglob("*.jsonl")):
        for number, line in enumerate(path.read_bytes().splitlines(), start=1):
            yield parse_record(line, f"{path}, line {number}")


def _digest(record: Record) -> str:
    """The cell as this version names it: settings that came later have their default in older records."""
    if record["format"] != RESULT_FORMAT:
        return str(record["cell"])
    try:
        digest: str = Cell(parse(record["config"]), record["measure"]).digest
    except ConfigError:
        return str(record["cell"])  # A setting or model that is gone: kept, but in no table.
    return digest
