"""Train, evaluate, predict."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table

from kuramotognn.cli.base import PLAIN, Output, app, configurable
from kuramotognn.cli.own_graph import show_understood
from kuramotognn.data import Understood
from kuramotognn.experiments.config import Config, Resolved, read_toml, resolve
from kuramotognn.experiments.data_config import FilesConfig
from kuramotognn.experiments.run import (
    Evaluation,
    RunObserver,
    RunResult,
    SplitResult,
    evaluate_run,
    predict_run,
    resume_run,
    start_run,
)
from kuramotognn.files import write_atomically
from kuramotognn.training import EpochMetrics


@app.command
@configurable
def train(
    *,
    settings: Annotated[Config | None, Parameter(name="*")] = None,
    config: Annotated[Path | None, Parameter(help="TOML file with settings; a flag overrides it.")] = None,
    out: Annotated[Path | None, Parameter(help="Run folder to make (default: runs/DATASET-MODEL-TIME).")] = None,
    resume: Annotated[Path | None, Parameter(help="Go on with this interrupted run, with its own settings.")] = None,
    output: Output = PLAIN,
) -> None:
    """Train a model on several splits of a data set, and save everything in a run folder.

    Flags override --config, which overrides what is recommended for the model on the data set.
    """
    flags = settings.model_dump(exclude_unset=True) if settings else {}
    if resume is not None:
        if flags or config or out:
            raise ValueError(
                "--resume goes on with the run's own settings; leave out --config, --out and other settings"
            )
        with _Watcher(output) as watcher:
            run = resume_run(resume, watcher)
    else:
        resolved = resolve(flags, read_toml(config) if config else None)
        folder = out or _new_run_folder(resolved.config)
        if output.talkative:
            _show_settings(resolved, folder)
        with _Watcher(output) as watcher:
            run = start_run(resolved.config, folder, watcher)
    _show_run(run, output)


@app.command
def evaluate(run: Path, *, output: Output = PLAIN) -> None:
    """Load the models of a run and compute their accuracies again.

    Parameters
    ----------
    run
        Run folder.
    """
    evaluations = evaluate_run(run)
    if output.json:
        print(json.dumps([asdict(evaluation) for evaluation in evaluations], indent=2))
    elif output.quiet:
        tests = [evaluation.test_accuracy for evaluation in evaluations]
        print(f"test accuracy {100 * sum(tests) / len(tests):.2f} over {len(tests)} splits")
    else:
        Console().print(_evaluation_table(evaluations))


@app.command
def predict(
    run: Path,
    *,
    out: Path,
    split: int | None = None,
    nodes: Path | None = None,
    edges: Path | None = None,
    features: Path | None = None,
    with_training_nodes: Annotated[bool, Parameter(negative="")] = False,
    allow_missing: Annotated[bool, Parameter(negative="")] = False,
    output: Output = PLAIN,
) -> None:
    """Write the class probabilities of every node as CSV.

    Parameters
    ----------
    run
        Run folder.
    out
        CSV file to write.
    split
        Split whose model predicts (default: the first one).
    nodes
        Other nodes than those of the run, with the columns it was trained with; labels may be missing.
    edges
        The edges between these nodes.
    features
        Their feature matrix, if the run was trained with one.
    with_training_nodes
        Let the nodes that the run was trained on take part, so that new nodes keep them as neighbours.
    allow_missing
        Drop edges whose ends are not among the nodes.
    """
    new = None
    if nodes or edges or features:
        paths = {"nodes": nodes, "edges": edges, "features": features}
        given = {name: str(path) for name, path in paths.items() if path is not None}
        if nodes is None or edges is None:
            raise ValueError("other nodes need both --nodes and --edges")
        new = FilesConfig(**given, **({"allow_missing": True} if allow_missing else {}))
    text = predict_run(run, split, new=new, with_training_nodes=with_training_nodes, observer=_Watcher(output))
    write_atomically(out, text)
    count = text.count("\n") - 1
    if output.json:
        print(json.dumps({"nodes": count, "file": str(out)}))
    else:
        print(f"wrote {count} predictions to {out}")


class _Watcher(RunObserver):
    """A live progress bar for each split."""

    def __init__(self, output: Output) -> None:
        self.console = Console(stderr=True, quiet=not output.talkative)
        self.bars: dict[int, TaskID] = {}
        self.progress = Progress(
            TextColumn("split {task.fields[split]}"),
            BarColumn(bar_width=24),
            TextColumn("epoch {task.completed:.0f}/{task.total:.0f}"),
            TextColumn("{task.fields[words]}"),
            TimeRemainingColumn(),
            console=self.console,
        )

    def __enter__(self) -> _Watcher:
        self.progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.progress.stop()

    def started(self, split: int, epochs: int) -> None:
        self.bars[split] = self.progress.add_task("", total=epochs, split=split, words="")

    def epoch(self, split: int, metrics: EpochMetrics) -> None:
        words = (
            f"loss {metrics.train_loss:.3f}  validation {100 * metrics.validation_accuracy:.1f} %  "
            f"{metrics.evaluations} evaluations"
        )
        self.progress.update(self.bars[split], completed=metrics.epoch, words=words)

    def finished(self, result: SplitResult) -> None:
        if result.split in self.bars:
            words = f"validation {100 * result.validation_accuracy:.1f} %  test {100 * result.test_accuracy:.1f} %"
            self.progress.update(self.bars[result.split], total=result.epochs, completed=result.epochs, words=words)

    def read(self, understood: Understood) -> None:
        show_understood(understood, self.console)

    def compiled(self, seconds: float) -> None:
        self.console.print(
            f"compiled the kernels in {seconds:.1f} s; they are cached for the next run", highlight=False
        )

    def warning(self, message: str) -> None:
        Console(stderr=True).print(f"warning: {message}", style="yellow", highlight=False)


def _new_run_folder(config: Config) -> Path:
    files = config.data.files
    name = config.dataset if files.nodes is None else Path(files.nodes).stem
    stem = f"{name}-{config.model.name}-{datetime.now():%Y%m%d-%H%M%S}"
    folder, again = Path("runs") / stem, 1
    while folder.exists():
        again += 1
        folder = Path("runs") / f"{stem}-{again}"
    return folder


def _show_settings(resolved: Resolved, folder: Path) -> None:
    console = Console(stderr=True, highlight=False)
    values = _dotted(resolved.config.model_dump())
    for source in ("flag", "file", "recommended", "default"):
        chosen = [f"{key}={values[key]}" for key, origin in resolved.sources.items() if origin == source]
        if chosen:
            console.print(f"[bold]{source:>11}[/bold]  {'  '.join(chosen)}", soft_wrap=False)
    console.print(f"[bold]{'folder':>11}[/bold]  {folder}")


def _dotted(settings: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in settings.items():
        flat |= _dotted(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return flat


def _show_run(run: RunResult, output: Output) -> None:
    summary = run.summary()
    test = summary["test_accuracy"]
    line = (
        f"test accuracy {100 * test['mean']:.2f} ± {100 * test['std']:.2f} over {len(run.splits)} splits, {run.folder}"
    )
    if output.json:
        print((run.folder / "result.json").read_text(encoding="utf-8"), end="")
    elif output.quiet:
        print(line)
    else:
        Console().print(_run_table(run))
        print(f"saved in {run.folder}")


def _run_table(run: RunResult) -> Table:
    table = Table(title=f"{run.splits[0].protocol}: accuracy in %, epoch selected on validation")
    for name in ("split", "epoch", "validation", "test", "evaluations", "seconds"):
        table.add_column(name, justify="right", no_wrap=True)
    for split in run.splits:
        table.add_row(
            str(split.split),
            str(split.best_epoch),
            f"{100 * split.validation_accuracy:.2f}",
            f"{100 * split.test_accuracy:.2f}",
            str(split.evaluations),
            f"{split.seconds:.1f}",
        )
    summary = run.summary()
    spread = {
        name: f"{100 * summary[name]['mean']:.2f} ± {100 * summary[name]['std']:.2f}"
        for name in ("validation_accuracy", "test_accuracy")
    }
    table.add_section()
    table.add_row(
        "mean ± std",
        "",
        spread["validation_accuracy"],
        spread["test_accuracy"],
        f"{summary['evaluations']['mean']:.0f}",
        f"{sum(split.seconds for split in run.splits):.1f}",
        style="bold",
    )
    return table


def _evaluation_table(evaluations: list[Evaluation]) -> Table:
    table = Table(title=f"{evaluations[0].recorded.protocol}: accuracy in %, computed again (recorded)")
    for name in ("split", "validation", "test"):
        table.add_column(name, justify="right")
    for evaluation in evaluations:
        recorded = evaluation.recorded
        table.add_row(
            str(recorded.split),
            f"{100 * evaluation.validation_accuracy:.2f} ({100 * recorded.validation_accuracy:.2f})",
            f"{100 * evaluation.test_accuracy:.2f} ({100 * recorded.test_accuracy:.2f})",
        )
    return table
