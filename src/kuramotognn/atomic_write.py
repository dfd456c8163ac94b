"""Atomic file writes: after a crash the file is either the old one or the new one."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

PART = ".part"
"""How the name of a file ends that is being written; that of a file in use begins with a dot."""


def remove_parts(folder: Path, name: str = "*") -> None:
    """Remove what a process left that was killed while it wrote into ``folder``."""
    for left in folder.glob(f".{name}.*{PART}"):
        left.unlink(missing_ok=True)


def write_atomically(path: Path, content: bytes | str) -> None:
    """Replace ``path`` by ``content`` in one step: a temporary file beside it, flushed to disk, then renamed."""
    data = content.encode() if isinstance(content, str) else content
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=PART)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except OSError as error:
        Path(temporary).unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(path)) from error  # Such as a full disk, which names no file.
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
