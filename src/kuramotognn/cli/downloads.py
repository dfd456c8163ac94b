"""Progress bars of downloads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TransferSpeedColumn

from kuramotognn.cli.terminal import make_console
from kuramotognn.data.raw_files import reporting


@contextmanager
def download_bars(*, silent: bool) -> Iterator[None]:
    """A bar for each file that is downloaded, from its first byte to its last."""
    console = make_console(stderr=True, quiet=silent)
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
