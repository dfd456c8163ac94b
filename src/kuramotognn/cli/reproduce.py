"""Run the paper's experiments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bars
from rich.table import Table
from rich.text import Text

from kuramotognn.cli.base import PLAIN, Output, app

if TYPE_CHECKING:
    from kuramotognn.experiments.sweep import Sweep
    from kuramotognn.experiments.tables import Grid

FOLDER = Path("runs/experiments")


@app.command
def reproduce(
    experiment: str | None = None,
    *,
    splits: int | None = None,
    seeds: int | None = None,
    datasets: str = "",
    models: str = "",
    jobs: int = 1,
    cluster: str | None = None,
    out: Path = FOLDER,
    tuned: Annotated[list[Path] | None, Parameter(negative="")] = None,
    force: Annotated[bool, Parameter(negative="")] = False,
    retry_failed: Annotated[bool, Parameter(negative="")] = False,
    output: Output = PLAIN,
) -> None:
    """Run an experiment of the paper; without a name, list them.

    What was run before is not run again. The paper's own protocol is --splits 100 --seeds 20.

    Parameters
    ----------
    experiment
        Which one.
    splits
        How many splits, from split 0.
    seeds
        How many seeds on each split.
    datasets
        Some of its data sets, with commas between.
    models
        Some of its models, with commas between.
    jobs
        Processes on this machine, each with one thread.
    cluster
        Run on Ray instead: auto, or the address of a cluster.
    out
        Folder of results; several runners may share one.
    tuned
        Files that `kuramotognn tune` wrote, to use instead of recommended settings.
    force
        Run again what was run before.
    retry_failed
        Run again what failed.
    """
    from kuramotognn.experiments.catalogue import find_experiment, read_tuned
    from kuramotognn.experiments.records import adopt
    from kuramotognn.experiments.sweep import plan_sweep

    if experiment is None:
        _list(out, output)
        return
    sweep = plan_sweep(
        find_experiment(experiment),
        splits=splits,
        seeds=seeds,
        datasets=_names(datasets),
        models=_names(models),
        tuned=read_tuned(tuned or ()),
        download=True,
    )
    adopt(out)
    _forget(sweep, out, force=force, failures=retry_failed)
    _run(sweep, out, jobs, cluster, output)
    _show(sweep, out, output)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _forget(sweep: Sweep, folder: Path, *, force: bool, failures: bool) -> None:
    from kuramotognn.experiments.jobs import load

    for job in sweep.jobs if force or failures else ():
        path = job.path(folder)
        if path.exists() and (force or "failed" in load(path)):
            path.unlink()


def _run(sweep: Sweep, folder: Path, jobs: int, cluster: str | None, output: Output) -> None:
    from kuramotognn.experiments.workers import run_jobs

    console = Console(stderr=True, quiet=not output.talkative, highlight=False)
    for reason in sweep.missing.values():
        Console(stderr=True, highlight=False).print(f"left out: {reason}", style="yellow")
    try:
        with _watcher(sweep, folder, jobs, console) as watcher:
            if cluster is None:
                run_jobs(sweep.jobs, folder, processes=jobs, observer=watcher)
            else:
                from kuramotognn.experiments.cluster import run_on_cluster

                run_on_cluster(sweep.jobs, folder, address=cluster, observer=watcher)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("go on by giving the same command again") from None


def _watcher(sweep: Sweep, folder: Path, jobs: int, console: Console) -> Any:
    """A live view: one bar for everything, and a line for each job at work."""
    from kuramotognn.experiments.sweep import expected_seconds, progress
    from kuramotognn.experiments.workers import SweepObserver

    class Watcher(SweepObserver):
        def __init__(self) -> None:
            before = progress(sweep, folder)
            # The bar measures expected seconds, not jobs: a deep model counts for more than a shallow one.
            self.bars = Bars(
                TextColumn("{task.description}"),
                BarColumn(bar_width=30),
                TextColumn("{task.fields[words]}"),
                TimeElapsedColumn(),
                TextColumn("left"),
                TimeRemainingColumn(),
                console=console,
            )
            self.bar = self.bars.add_task(sweep.experiment.name, total=max(before.seconds, 1e-9), words="")
            self.working: dict[str, str] = {}
            self.failed = before.failed
            self.live = Live(console=console, get_renderable=self._picture, refresh_per_second=4)

        def __enter__(self) -> Watcher:
            self.live.start()
            return self

        def __exit__(self, *_: object) -> None:
            self.working.clear()
            self.live.stop()

        def counted(self, done: int, total: int) -> None:
            words = f"{done}/{total} runs" + (f", {self.failed} failed" if self.failed else "")
            self.bars.update(self.bar, words=words)

        def started(self, job: Any) -> None:
            self.working[job.name] = sweep.label(job)

        def finished(self, job: Any, record: dict[str, Any]) -> None:
            self.working.pop(job.name, None)
            self.bars.advance(self.bar, expected_seconds(job.cell))
            if "failed" in record:
                self.failed += 1
                console.print(f"failed: {sweep.label(job)}: {record['failed']}", style="yellow")

        def lost(self, job: Any) -> None:
            if job is not None:
                self.working.pop(job.name, None)
                console.print(f"a process died at {sweep.label(job)}; it is run again", style="yellow")

        def _picture(self) -> Group:
            return Group(self.bars, *(Text(f"  {label}", style="dim") for label in self.working.values()))

    return Watcher()


def _list(folder: Path, output: Output) -> None:
    from kuramotognn.data.files import data_root
    from kuramotognn.experiments.catalogue import experiments
    from kuramotognn.experiments.sweep import plan_sweep, progress

    rows: list[dict[str, Any]] = []
    for name, experiment in experiments().items():
        sweep = plan_sweep(experiment)
        state = progress(sweep, folder)
        rows.append(
            {
                "experiment": name,
                "what": experiment.title,
                "cells": len(sweep.cells),
                "splits": sweep.splits,
                "seeds": sweep.seeds,
                "runs": len(sweep.cells) * sweep.splits * sweep.seeds,
                "done": state.done,
                "failed": state.failed,
                "seconds_left": round(state.seconds),
                "missing": dict(sweep.missing),
            }
        )
    if output.json:
        print(json.dumps(rows, indent=2))
        return
    table = Table(title=f"Experiments; results in {folder}")
    table.add_column("experiment", no_wrap=True)
    table.add_column("what")
    for name in ("runs", "done", "left, 1 job"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        failed = f" ({row['failed']} failed)" if row["failed"] else ""
        done, left = f"{row['done']}{failed}", duration(row["seconds_left"])
        table.add_row(row["experiment"], row["what"], str(row["runs"]), done, left)
    console = Console(highlight=False)
    console.print(table)
    console.print("runs without --splits and --seeds; the paper's protocol is --splits 100 --seeds 20", style="dim")
    if missing := sorted({name for row in rows for name in row["missing"]}):
        console.print(
            f"not counted, because not in {data_root()}: {', '.join(missing)}. They are downloaded when an experiment "
            "needs them; --data-root names another folder",
            style="yellow",
        )


def duration(seconds: float) -> str:
    """A length of time in words."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 90 * 60 else f"{seconds / 3600:.1f} h"


def _show(sweep: Sweep, folder: Path, output: Output) -> None:
    from kuramotognn.experiments.records import Records
    from kuramotognn.experiments.sweep import progress
    from kuramotognn.experiments.tables import compact, sweep_result

    state = progress(sweep, folder)
    if output.json:
        print(json.dumps({"done": state.done, "failed": state.failed, "total": state.total}))
        return
    if not output.quiet:
        for grid in sweep_result(sweep, Records(folder)).grids:
            if not grid.empty:
                console = Console()
                console.print(_fitting(compact(grid), console))
    failed = f", {state.failed} of them failed" if state.failed else ""
    print(f"{state.done} of {state.total} runs are in {folder}{failed}")


def _fitting(grid: Grid, console: Console) -> Table:
    """The table, or turned by a right angle where it is too wide for the terminal and would be narrower."""
    from kuramotognn.experiments.tables import turned

    table = _table(grid)
    width = console.measure(table, options=console.options.update(max_width=10_000)).maximum
    return table if width <= console.width or len(grid.columns) <= len(grid.rows) else _table(turned(grid))


def _table(grid: Grid) -> Table:
    from kuramotognn.experiments.report import ours, theirs

    title = ", ".join(part for part in (grid.experiment.title, grid.heading) if part)
    caption = f"{grid.experiment.protocol}; {grid.coverage}" + ("; below: the paper" if grid.has_paper else "")
    table = Table(title=title, caption=caption)
    table.add_column(grid.corner, no_wrap=True)
    for name in grid.columns:
        table.add_column(name, justify="right", no_wrap=True)
    for name, row in grid.rows:
        table.add_row(name, *(ours(entry) for entry in row))
        if any(entry.paper for entry in row):
            table.add_row("", *(theirs(entry) for entry in row), style="dim")
    return table
