"""Train a model. The flags depend on the model, so the command is made for it."""

# No postponed annotations here: the type of the flags is made when the command is.
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from kuramotognn.cli.check import show_summary
from kuramotognn.cli.flags import settings_flags
from kuramotognn.cli.output import PLAIN, Output
from kuramotognn.cli.ranks import run_folder
from kuramotognn.cli.terminal import make_console, say
from kuramotognn.config.resolve import Resolved, flatten, read_toml, resolve
from kuramotognn.config.tree import Config
from kuramotognn.data import GraphSummary
from kuramotognn.models.registry import DEFAULT_MODEL
from kuramotognn.printable import printable
from kuramotognn.runs.run import RunResult, resume_run, start_run
from kuramotognn.runs.stored_run import CONFIG, RunObserver
from kuramotognn.train_result import EpochMetrics, TrainResult

LOGGED = 20
"""Epochs between two lines of a log."""
NEARLY = 0.98
"""Share of equal predictions from which on a model is said to predict one class."""


def make_command(model: str) -> Any:
    """The command ``train`` with the flags of ``model``."""

    def train(
        *,
        settings: settings_flags(model) = {},  # type: ignore[valid-type] # noqa: B006 -- only read
        config: Annotated[Path | None, Parameter(help="TOML file with settings; a flag overrides it.")] = None,
        out: Annotated[Path | None, Parameter(help="Run folder to make (default: runs/DATASET-MODEL-TIME).")] = None,
        resume: Annotated[
            Path | None, Parameter(help="Go on with this interrupted run, with its own settings.")
        ] = None,
        output: Output = PLAIN,
    ) -> None:
        if resume is None:
            run = _start(settings, config, out, output)
        elif settings or config or out:
            raise ValueError(
                "--resume goes on with the run's own settings; leave out --config, --out and other settings"
            )
        else:
            with run_folder(resume) as folder, RunProgress(output) as progress:
                run = _naming(folder, lambda: resume_run(folder, progress))
        _show_run(run, output)

    return train


def _start(settings: dict[str, Any], config: Path | None, out: Path | None, output: Output) -> RunResult:
    resolved = resolve(settings, read_toml(config) if config else None)
    with run_folder(out or _new_run_folder(resolved.config)) as folder, RunProgress(output, resolved) as progress:
        return _naming(folder, lambda: start_run(resolved.config, folder, progress))


def _naming(folder: Path, run: Callable[[], RunResult]) -> RunResult:
    try:
        return run()
    except KeyboardInterrupt:
        if not (folder / CONFIG).exists():
            raise
        raise KeyboardInterrupt(f"go on with --resume {folder}") from None


class RunProgress(RunObserver):
    """A live progress bar for each split on a terminal, lines in a file."""

    def __init__(self, output: Output, resolved: Resolved | None = None) -> None:
        self.console = make_console(stderr=True, quiet=not output.verbose)
        self.resolved, self.bars = resolved, dict[int, TaskID]()
        self.progress = Progress(
            TextColumn("split {task.fields[split]}"),
            BarColumn(bar_width=24),
            TextColumn("epoch {task.completed:.0f}/{task.total:.0f}"),
            TextColumn("{task.fields[words]}", markup=False),
            TimeRemainingColumn(),
            console=self.console,
            disable=not self.console.is_terminal,
        )

    def __enter__(self) -> "RunProgress":
        self.progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.progress.stop()

    def prepared(self, folder: Path) -> None:
        if self.resolved is not None:
            _show_settings(self.resolved, folder, self.console)

    def started(self, split: int, epochs: int) -> None:
        self.bars[split] = self.progress.add_task("", total=epochs, split=split, words="")

    def epoch(self, split: int, metrics: EpochMetrics) -> None:
        words = (
            f"loss {metrics.train_loss:.3f}  validation {100 * metrics.validation_accuracy:.1f} %  "
            f"{metrics.evaluations} evaluations"
        )
        self.progress.update(self.bars[split], completed=metrics.epoch, words=words)
        if metrics.epoch % LOGGED == 0:
            self._log(f"split {split}, epoch {metrics.epoch}: {words}")

    def finished(self, result: TrainResult) -> None:
        words = f"validation {100 * result.validation_accuracy:.1f} %  test {100 * result.test_accuracy:.1f} %"
        self._log(f"split {result.split}, epoch {result.best_epoch} of {result.epochs} chosen: {words}")
        if result.split in self.bars:
            self.progress.update(self.bars[result.split], total=result.epochs, completed=result.epochs, words=words)

    def chose_time(self, time: float, tried: Mapping[float, float]) -> None:
        results = ", ".join(f"{each:g}: {100 * score:.1f} %" for each, score in tried.items())
        self.console.print(f"model.time={time:g} was chosen on validation nodes of the first split ({results})")

    def spread(self, sentence: str) -> None:
        self.console.print(sentence)

    def read(self, summary: GraphSummary) -> None:
        show_summary(summary, self.console)

    def warning(self, message: str) -> None:
        make_console(stderr=True).print(f"warning: {printable(message, 1000)}", style="yellow")

    def _log(self, line: str) -> None:
        if not self.console.is_terminal:
            self.console.print(line)


def _new_run_folder(config: Config) -> Path:
    name = config.dataset if config.data.files is None else config.data.files.nodes.stem
    stem = f"{name}-{Path(config.model.name).name}-{datetime.now():%Y%m%d-%H%M%S}"
    folder, again = Path("runs") / stem, 1
    while folder.exists():
        again += 1
        folder = Path("runs") / f"{stem}-{again}"
    return folder


def _show_settings(resolved: Resolved, folder: Path, console: Console) -> None:
    values = dict(flatten(resolved.config.model_dump()))
    for source in ("flag", "file", "preset", "recommended", "default"):
        chosen = [f"{key}={printable(values[key])}" for key, origin in resolved.sources.items() if origin == source]
        if chosen:
            console.print(Text.assemble((f"{source:>11}", "bold"), f"  {'  '.join(chosen)}"))
    console.print(Text.assemble((f"{'folder':>11}", "bold"), f"  {printable(folder)}"))


def _show_run(run: RunResult, output: Output) -> None:
    summary = run.summary()
    test = summary["test_accuracy"]
    line = (
        f"test accuracy {100 * test['mean']:.2f} ± {100 * test['std']:.2f} over {len(run.splits)} splits, {run.folder}"
    )
    if output.json:
        print((run.folder / "result.json").read_text(encoding="utf-8"), end="")
    elif output.quiet:
        say(line)
    else:
        make_console().print(_run_table(run))
        for sentence in majority_sentences(run):
            say(sentence)
        say(f"saved in {run.folder}")


def _run_table(run: RunResult) -> Table:
    """A row a split; where classes are uneven, balanced accuracy (and AUC for two classes) stand beside accuracy."""
    first = run.splits[0]
    extra = {"balanced": "balanced_accuracy"} if uneven(first) else {}
    extra |= {"AUC": "roc_auc"} if extra and first.test_measures.get("roc_auc") is not None else {}
    table = Table(title=f"{printable(first.protocol, 60)}: accuracy in %, epoch selected on validation")
    for name in ("split", "epoch", "validation", "test", *extra, "evals", "seconds"):
        table.add_column(name, justify="right", no_wrap=True)
    for split in run.splits:
        table.add_row(
            str(split.split),
            str(split.best_epoch),
            f"{100 * split.validation_accuracy:.2f}",
            f"{100 * split.test_accuracy:.2f}",
            *(f"{100 * split.test_measures[name]:.2f}" for name in extra.values()),
            str(split.evaluations),
            f"{split.seconds:.1f}",
        )
    summary, seconds = run.summary(), sum(split.seconds for split in run.splits)
    measures = [
        summary[name] for name in ("validation_accuracy", "test_accuracy", *(f"test_{each}" for each in extra.values()))
    ]
    table.add_section()
    # Two rows, for a column of means with deviations would be too wide for a terminal of 80 columns.
    evaluations = f"{summary['evaluations']['mean']:.0f}"
    table.add_row(
        "mean", "", *(f"{100 * each['mean']:.2f}" for each in measures), evaluations, f"{seconds:.1f}", style="bold"
    )
    table.add_row("± std", "", *(f"{100 * each['std']:.2f}" for each in measures), style="bold")
    return table


def uneven(result: TrainResult) -> bool:
    """Whether the largest class has more than three times its equal share of the test nodes, or 60 % of two."""
    sizes = [sum(row) for row in result.test_measures["confusion"]]
    return max(sizes) * len(sizes) > 3 * sum(sizes) or (len(sizes) == 2 and max(sizes) > 0.6 * sum(sizes))


def majority_sentences(run: RunResult) -> list[str]:
    """A sentence where a model predicts nearly one class, or is no better than always predicting the largest class."""
    sentences = []
    for result in run.splits:
        confusion = result.test_measures["confusion"]
        total, predicted = sum(map(sum, confusion)), [sum(column) for column in zip(*confusion, strict=True)]
        largest = max(map(sum, confusion)) / total
        if max(predicted) > NEARLY * total:
            share = 100 * max(predicted) / total
            sentences.append(f"split {result.split}: {share:.0f} % of the test nodes are predicted to be of one class")
        elif result.test_accuracy <= largest:
            sentences.append(
                f"split {result.split}: always predicting the largest class is at least as accurate "
                f"({100 * largest:.1f} %); try --metric balanced-accuracy or --training.class-weights balanced"
            )
    return sentences


train = make_command(DEFAULT_MODEL)
