"""Flags that every command takes: where raw files are kept, and whether they may be downloaded."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

from cyclopts import Group, Parameter
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TransferSpeedColumn

from kuramotognn.cli.base import app, prepare
from kuramotognn.data.files import reporting

app.meta.group_parameters = Group("Data files, for every command", sort_key=10)
app.meta.suppress_keyboard_interrupt = False


@app.meta.default
def with_data_access(
    *tokens: Annotated[str, Parameter(show=False, allow_leading_hyphen=True)],
    data_root: Annotated[
        Path | None,
        Parameter(help="Folder of raw files (default: KURAMOTOGNN_DATA, or the platform's cache folder)."),
    ] = None,
    offline: Annotated[bool, Parameter(negative="", help="Download nothing (as KURAMOTOGNN_OFFLINE=1 does).")] = False,
) -> None:
    """Run a command with access to the data."""
    wanted = {
        "KURAMOTOGNN_DATA": str(data_root) if data_root else None,
        "KURAMOTOGNN_OFFLINE": "1" if offline else None,
    }
    silent = "--json" in tokens or "--quiet" in tokens
    with _environment(wanted), _download_bars(silent):
        app(prepare(tokens)[1], exit_on_error=False, print_error=False, result_action="return_none")


@contextmanager
def _environment(wanted: dict[str, str | None]) -> Iterator[None]:
    """Environment variables, so that the processes a command starts see them too."""
    before = {name: os.environ.get(name) for name, value in wanted.items() if value is not None}
    os.environ.update({name: value for name, value in wanted.items() if value is not None})
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def _download_bars(silent: bool) -> Iterator[None]:
    """A bar for each file that is downloaded, from its first byte to its last."""
    console = Console(stderr=True, quiet=silent)
    columns = (TextColumn("download {task.description}"), BarColumn(bar_width=24), DownloadColumn())
    bars: dict[str, tuple[Progress, TaskID]] = {}

    def show(name: str, done: int, total: int | None) -> None:
        if name not in bars:
            progress = Progress(*columns, TransferSpeedColumn(), console=console)
            progress.start()
            bars[name] = progress, progress.add_task(name, total=total)
        progress, bar = bars[name]
        progress.update(bar, completed=done, total=total)
        if done == total:
            progress.stop()
            del bars[name]

    try:
        with reporting(show):
            yield
    finally:
        for progress, _ in bars.values():
            progress.stop()
