"""Limits on what reading a file may cost."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

GIGABYTE = 1 << 30
STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def memory(kind: str) -> int:
    """``VmRSS`` or ``VmHWM`` (its peak) in bytes; 0 where Linux does not tell."""
    if not STATUS.exists():
        return 0
    lines = [line.split() for line in STATUS.read_text().splitlines() if line.startswith(kind)]
    return 1024 * int(lines[0][1]) if lines else 0


@contextmanager
def limits(seconds: float) -> Iterator[None]:
    """Fail if the block takes longer, or more than a gigabyte above the start."""

    def too_long(*_: object) -> None:
        raise AssertionError(f"took longer than {seconds} s")

    if CLEAR.exists():
        CLEAR.write_text("5")  # The peak starts anew.
    before, start = memory("VmRSS"), time.monotonic()
    alarms = hasattr(signal, "setitimer")  # Not on Windows, where the time is looked at afterwards.
    if alarms:
        signal.signal(signal.SIGALRM, too_long)
        signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        if alarms:
            signal.setitimer(signal.ITIMER_REAL, 0)
    assert time.monotonic() - start < seconds
    assert memory("VmHWM") - before < GIGABYTE


def make_pipe(path: Path) -> None:
    """A named pipe; skips the test where there are none."""
    if not hasattr(os, "mkfifo"):
        pytest.skip("Windows has no named pipes in folders")
    os.mkfifo(path)
