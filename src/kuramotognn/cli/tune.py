"""Search for settings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from kuramotognn.cli.base import PLAIN, Output, app, configurable
from kuramotognn.experiments.config import Config, read_toml

if TYPE_CHECKING:
    from kuramotognn.experiments.tuning import TuningResult


@app.command
@configurable
def tune(
    *,
    settings: Annotated[Config | None, Parameter(name="*")] = None,
    config: Annotated[Path | None, Parameter(help="TOML file with settings that are not to be searched.")] = None,
    start: Annotated[list[Path] | None, Parameter(help="TOML files with settings to try first.", negative="")] = None,
    trials: Annotated[int | None, Parameter(help="How many settings to try (default 50).")] = None,
    jobs: Annotated[int, Parameter(help="Processes, each with one thread.")] = 1,
    tuning_splits: Annotated[int, Parameter(help="Tuning splits, from 1000, that a trial is scored on.")] = 8,
    candidates: Annotated[int, Parameter(help="How many of the best are compared again on fresh splits.")] = 5,
    confirmation_splits: Annotated[int, Parameter(help="Fresh splits, from 1100, for that comparison.")] = 16,
    search_seed: Annotated[int, Parameter(help="Seed of the search.")] = 0,
    out: Annotated[Path | None, Parameter(help="Study folder to make (default: studies/DATASET-MODEL).")] = None,
    resume: Annotated[Path | None, Parameter(help="Go on with this study, to more --trials if given.")] = None,
    output: Output = PLAIN,
) -> None:
    """Search the settings of a model for a data set by validation accuracy, and write them as best.toml.

    Settings given by a flag or by --config stay as they are; the rest of the model's search space is searched. Splits
    0 to 999 and all test nodes stay out of it. `kuramotognn train --config STUDY/best.toml` uses the result.
    """
    from kuramotognn.experiments.tuning import plan_study, resume_study, start_study

    flags = settings.model_dump(exclude_unset=True) if settings else {}
    with _watcher(output) as watcher:
        if resume is not None:
            if flags or config or start or out:
                raise ValueError(
                    "--resume goes on with the study's own settings; leave out all but --trials and --jobs"
                )
            result = resume_study(resume, trials=trials, processes=jobs, observer=watcher)
        else:
            for name in ("splits", "first_split"):
                if name in flags:
                    raise ValueError(
                        f"tune chooses its own splits: leave out --{name.replace('_', '-')}, see --tuning-splits"
                    )
            plan = plan_study(
                flags,
                read_toml(config) if config else None,
                [read_toml(path) for path in start or ()],
                trials=50 if trials is None else trials,
                splits=tuning_splits,
                candidates=candidates,
                confirmation_splits=confirmation_splits,
                seed=search_seed,
            )
            chosen = plan.config({})
            folder = out or Path("studies") / f"{chosen.dataset}-{chosen.model.name}"
            result = start_study(plan, folder, processes=jobs, observer=watcher)
    _show(result, output)


def _show(result: TuningResult, output: Output) -> None:
    from kuramotognn.experiments.tuning import BEST, SUMMARY

    best = result.best
    if output.json:
        print((result.folder / SUMMARY).read_text(encoding="utf-8"), end="")
        return
    if not output.quiet:
        table = Table(title=f"Best of {result.trials} settings: validation accuracy in %")
        for name in ("trial", "in the search", "on fresh splits (mean ± standard error)"):
            table.add_column(name, justify="right")
        for candidate in result.candidates:
            table.add_row(
                str(candidate.trial),
                f"{100 * candidate.searched:.2f}",
                f"{100 * candidate.mean:.2f} ± {100 * candidate.standard_error:.2f}",
            )
        Console().print(table)
    print(f"validation accuracy {100 * best.mean:.2f} ± {100 * best.standard_error:.2f}, {result.folder / BEST}")


def _watcher(output: Output) -> Any:
    from kuramotognn.experiments.tuning import TuningObserver

    class Watcher(TuningObserver):
        """One bar for the search, then one for the comparison."""

        def __init__(self) -> None:
            self.console = Console(stderr=True, quiet=not output.talkative)
            self.progress = Progress(
                TextColumn("{task.description}"),
                BarColumn(bar_width=24),
                MofNCompleteColumn(),
                TextColumn("{task.fields[words]}"),
                TimeElapsedColumn(),
                TimeRemainingColumn(),
                console=self.console,
            )
            self.bar = self.progress.add_task("settings", words="")

        def __enter__(self) -> Watcher:
            self.progress.start()
            return self

        def __exit__(self, *_: object) -> None:
            self.progress.stop()

        def searched(self, trials: Any, total: int) -> None:
            scores = [
                (trial.value, trial.number)
                for trial in trials
                if trial.value is not None and trial.state.name == "COMPLETE"
            ]
            words = f"best {100 * max(scores)[0]:.2f} % validation (trial {max(scores)[1]})" if scores else ""
            self.progress.update(self.bar, total=total, completed=len(trials), words=words)

        def confirming(self, candidates: int, splits: int) -> None:
            self.bar = self.progress.add_task("confirm", words=f"best {candidates} on {splits} fresh splits")

        def counted(self, done: int, total: int) -> None:
            self.progress.update(self.bar, total=total, completed=done)

    return Watcher()
