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

from kuramotognn.cli.output import PLAIN, Output
from kuramotognn.cli.terminal import make_console, say
from kuramotognn.errors import CheckError
from kuramotognn.printable import printable

if TYPE_CHECKING:
    from kuramotognn.reports.result_tables import Grid
    from kuramotognn.sweeps.plan import Progress, Sweep

FOLDER = Path("runs/experiments")


def reproduce(
    experiment: str | None = None,
    *,
    splits: int | None = None,
    seeds: int | None = None,
    datasets: str = "",
    models: str = "",
    only: str = "",
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
    only
        Some values of what it varies besides, with commas between: T=64 or T=64,T=100,K=1.
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
    from kuramotognn.sweeps.catalogue import find_experiment, read_tuned
    from kuramotognn.sweeps.plan import plan_sweep

    if experiment is None:
        _list(out, output)
        return
    sweep = plan_sweep(
        find_experiment(experiment),
        splits=splits,
        seeds=seeds,
        datasets=_names(datasets),
        models=_names(models),
        only=_values(only),
        tuned=read_tuned(tuned or ()),
        download=True,
    )
    _forget(sweep, out, force=force, failures=retry_failed)
    _run(sweep, out, jobs, cluster, output)
    _show(sweep, out, output)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _values(text: str) -> dict[str, list[float]]:
    """Values by axis, from AXIS=VALUE with commas between."""
    found: dict[str, list[float]] = {}
    for pair in _names(text):
        name, _, value = pair.partition("=")
        try:
            found.setdefault(name.strip(), []).append(float(value))
        except ValueError:
            raise ValueError(f"--only must be AXIS=NUMBER, such as T=64, with commas between, got {pair!r}") from None
    return found


def _forget(sweep: Sweep, folder: Path, *, force: bool, failures: bool) -> None:
    from kuramotognn.sweeps.cells import load

    for cell in sweep.cells if force or failures else ():
        path = cell.path(folder)
        if path.exists() and (force or "failed" in load(path)):
            path.unlink()


def _run(sweep: Sweep, folder: Path, jobs: int, cluster: str | None, output: Output) -> None:
    from kuramotognn.sweeps.workers import run_cells

    console = make_console(stderr=True, quiet=not output.verbose)
    for reason in sweep.missing.values():
        make_console(stderr=True).print(f"left out: {printable(reason, 1000)}", style="yellow")
    try:
        with _watcher(sweep, folder, jobs, console) as watcher:
            if cluster is None:
                run_cells(sweep.cells, folder, processes=jobs, observer=watcher)
            else:
                from kuramotognn.sweeps.ray_cluster import run_on_cluster

                run_on_cluster(sweep.cells, folder, address=cluster, observer=watcher)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"go on by giving the same command again; results are in {folder}") from None


def _watcher(sweep: Sweep, folder: Path, jobs: int, console: Console) -> Any:
    """A live view: one bar for everything, and a line for each cell at work."""
    from kuramotognn.sweeps.plan import expected_seconds, progress
    from kuramotognn.sweeps.workers import SweepObserver

    class Watcher(SweepObserver):
        def __init__(self) -> None:
            before = progress(sweep, folder)
            # The bar measures expected seconds, not cells: a deep model counts for more than a shallow one.
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
            if console.is_terminal:
                self.live.start()
            return self

        def __exit__(self, *_: object) -> None:
            self.working.clear()
            self.live.stop()

        def counted(self, done: int, total: int) -> None:
            words = f"{done}/{total} runs" + (f", {self.failed} failed" if self.failed else "")
            self.bars.update(self.bar, words=words)
            if not console.is_terminal:
                console.print(words)

        def started(self, cell: Any) -> None:
            self.working[cell.name] = sweep.label(cell)

        def finished(self, cell: Any, record: dict[str, Any]) -> None:
            self.working.pop(cell.name, None)
            self.bars.advance(self.bar, expected_seconds(cell.case))
            if "failed" in record:
                self.failed += 1
                console.print(f"failed: {sweep.label(cell)}: {printable(record['failed'])}", style="yellow")

        def given_up(self, cell: Any, reason: str) -> None:
            self.working.pop(cell.name, None)
            console.print(f"not run: {sweep.label(cell)}: {printable(reason)}", style="yellow")

        def lost(self, cell: Any) -> None:
            if cell is not None:
                self.working.pop(cell.name, None)
                console.print(f"a process died at {sweep.label(cell)}; it is run again", style="yellow")

        def _picture(self) -> Group:
            return Group(self.bars, *(Text(f"  {label}", style="dim") for label in self.working.values()))

    return Watcher()


def _list(folder: Path, output: Output) -> None:
    from kuramotognn.data.raw_files import data_root
    from kuramotognn.sweeps.catalogue import experiments
    from kuramotognn.sweeps.plan import plan_sweep, progress

    rows: list[dict[str, Any]] = []
    for name, experiment in experiments().items():
        sweep = plan_sweep(experiment)
        state = progress(sweep, folder)
        rows.append(
            {
                "experiment": name,
                "what": experiment.title,
                "cases": len(sweep.cases),
                "splits": sweep.splits,
                "seeds": sweep.seeds,
                "runs": len(sweep.cases) * sweep.splits * sweep.seeds,
                "done": state.done,
                "failed": state.failed,
                "seconds_left": round(state.seconds),
                "missing": dict(sweep.missing),
            }
        )
    if output.json:
        print(json.dumps(rows, indent=2))
        return
    table = Table(title=f"Experiments; results in {printable(folder)}")
    table.add_column("experiment", no_wrap=True)
    table.add_column("what")
    for name in ("runs", "done", "left, 1 job"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        failed = f" ({row['failed']} failed)" if row["failed"] else ""
        done, left = f"{row['done']}{failed}", duration(row["seconds_left"])
        table.add_row(row["experiment"], row["what"], str(row["runs"]), done, left)
    console = make_console()
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
    from kuramotognn.reports.result_tables import compact, sweep_result
    from kuramotognn.sweeps.plan import progress
    from kuramotognn.sweeps.records import Records

    state = progress(sweep, folder)
    if output.json:
        print(json.dumps({"done": state.done, "failed": state.failed, "total": state.total}))
        _check_complete(state)
        return
    if not output.quiet:
        for grid in sweep_result(sweep, Records(folder)).grids:
            if not grid.empty:
                console = make_console()
                console.print(_fitting(compact(grid), console))
        make_console().print(" ".join(sweep.experiment.about.split()), style="dim", highlight=False, markup=False)
    failed = f", {state.failed} of them failed" if state.failed else ""
    say(f"{state.done} of {state.total} runs are in {folder}{failed}")
    _check_complete(state)


def _check_complete(state: Progress) -> None:
    if state.failed or state.done < state.total:
        raise CheckError(
            f"{state.failed} of {state.total} cells failed and {state.total - state.done} were not run; "
            "the same command runs the latter, --retry-failed the former"
        )


def _fitting(grid: Grid, console: Console) -> Table:
    """The table, or turned by a right angle where it is too wide for the terminal and would be narrower."""
    from kuramotognn.reports.result_tables import turned

    table = _table(grid)
    width = console.measure(table, options=console.options.update(max_width=10_000)).maximum
    return table if width <= console.width or len(grid.columns) <= len(grid.rows) else _table(turned(grid))


def _table(grid: Grid) -> Table:
    from kuramotognn.reports.report_files import ours, theirs

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
