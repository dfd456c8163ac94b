"""Claims on work in a shared folder, so that no two processes do the same; a killed process loses its claims."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

LOCK = ".claims"


class Claims:
    """Locks on names in a folder, held by processes.

    A name is one byte of one lock file, far behind its end: nothing is written, nothing is left over, and network file
    systems understand such locks too. They belong to the process and vanish when any handle on the file is closed, so
    a process opens a folder's claims once. A context manager; leaving it drops what is claimed.
    """

    def __init__(self, folder: Path) -> None:
        if fcntl is None:
            raise OSError("sharing a folder between processes needs POSIX locks, which this system does not have")
        folder.mkdir(parents=True, exist_ok=True)
        self._file = (folder / LOCK).open("a+b")

    def __enter__(self) -> Claims:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    @contextmanager
    def claim(self, name: str) -> Iterator[bool]:
        """Hold ``name``, or find that another process does."""
        position = int(hashlib.sha256(name.encode()).hexdigest()[:15], 16)
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, position)
        except (BlockingIOError, PermissionError):
            yield False
            return
        try:
            yield True
        finally:
            fcntl.lockf(self._file, fcntl.LOCK_UN, 1, position)
