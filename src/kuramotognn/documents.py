"""Small files that are read whole: settings, results, records."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

from pydantic import ValidationError

LARGEST = 32 << 20
"""Bytes of a file that is read whole; what Python makes of it takes up to thirty times as much."""


def read_document(path: Path) -> bytes:
    """The content of a regular file: a FIFO would block, a device has no end.

    Raises:
        ValueError: it is something else, or larger than :data:`LARGEST`.
    """
    check_regular(path)
    size = path.stat().st_size
    if size > LARGEST:
        raise ValueError(f"{str(path)!r} has {size >> 20} MB; such files have at most {LARGEST >> 20} MB")
    return path.read_bytes()


def check_regular(path: Path) -> None:
    """Raise ValueError for a FIFO, a device or a folder; FileNotFoundError if there is nothing."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise ValueError(f"{str(path)!r} is not a regular file")


def parse_json(content: bytes | str) -> Any:
    """The content of a JSON file; every mistake in it is a ValueError."""
    try:
        return json.loads(content)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def first_problem(error: ValidationError) -> str:
    """What pydantic found first: the place and what is wrong there."""
    problem = error.errors(include_url=False)[0]
    place = ".".join(str(part) for part in problem["loc"])
    return f"{place}: {problem['msg']}" if place else str(problem["msg"])
