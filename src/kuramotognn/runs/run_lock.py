"""A lock on a run folder, so that no two processes train in it."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kuramotognn.config.resolve import ConfigError

LOCK = ".lock"


@contextmanager
def run_lock(folder: Path) -> Iterator[None]:
    """Hold the folder, or say which process holds it. The system drops the lock of a killed process."""
    if sys.platform == "win32":
        yield
        return
    import fcntl

    with (folder / LOCK).open("a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            file.seek(0)
            holder = file.read(200).strip() or "another process"
            raise ConfigError(f"{str(folder)!r} is being trained by {holder}; wait for it or stop it") from error
        file.truncate(0)
        file.write(f"process {os.getpid()} on {socket.gethostname()}")
        file.flush()
        try:
            yield
        finally:
            file.truncate(0)
