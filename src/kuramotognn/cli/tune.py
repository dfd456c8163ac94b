"""Search for settings. The flags depend on the model, so the command is made for it."""

# No postponed annotations here: the type of the flags is made when the command is.
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from kuramotognn.cli.flags import settings_flags
from kuramotognn.cli.output import PLAIN, Output
from kuramotognn.cli.terminal import make_console, say
from kuramotognn.config.resolve import read_toml
from kuramotognn.models.registry import DEFAULT_MODEL
from kuramotognn.sweeps.tuning import BEST, SUMMARY, TuningObserver, TuningResult, resume_study, start_study
from kuramotognn.sweeps.tuning_plan import STUDY, plan_study


def make_command(model: str) -> Any:
    """The command ``tune`` with the flags of ``model``."""

    def tune(
        *,
        settings: settings_flags(model) = {},  # type: ignore[valid-type] # noqa: B006 -- only read
        config: Annotated[Path | None, Parameter(help="TOML file with settings that are not to be searched.")] = None,
        start: Annotated[
            list[Path] | None, Parameter(help="TOML files with settings to try first.", negative="")
        ] = None,
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
        with TuningProgress(output) as watcher:
            if resume is not None:
                if settings or config or start or out:
                    raise ValueError(
                        "--resume goes on with the study's own settings; leave out all but --trials and --jobs"
                    )
                again = partial(resume_study, resume, trials=trials, processes=jobs, observer=watcher)
                result = _naming(resume, again)
            else:
                _check_splits(settings)
                plan = plan_study(
                    settings,
                    read_toml(config) if config else None,
                    [read_toml(path) for path in start or ()],
                    trials=50 if trials is None else trials,
                    splits=tuning_splits,
                    candidates=candidates,
                    confirmation_splits=confirmation_splits,
                    seed=search_seed,
                )
                chosen = plan.config({})
                folder = out or Path("studies") / f"{chosen.dataset}-{Path(chosen.model.name).name}"
                result = _naming(folder, partial(start_study, plan, folder, processes=jobs, observer=watcher))
        _show(result, output)

    return tune


def _naming(folder: Path, search: Callable[[], TuningResult]) -> TuningResult:
    try:
        return search()
    except KeyboardInterrupt:
        if not (folder / STUDY).exists():
            raise
        raise KeyboardInterrupt(f"go on with --resume {folder}") from None


def _check_splits(settings: dict[str, Any]) -> None:
    for name in ("splits", "first_split"):
        if name in settings:
            flag = name.replace("_", "-")
            raise ValueError(f"tune chooses its own splits: leave out --{flag}, see --tuning-splits")


def _show(result: TuningResult, output: Output) -> None:
    best = result.best
    if output.json:
        print((result.folder / SUMMARY).read_text(encoding="utf-8"), end="")
        return
    if not output.quiet:
        table = Table(title=f"Best of {result.trials} settings: validation {best.metric} in %")
        for name in ("trial", "in the search", "on fresh splits (mean ± standard error)"):
            table.add_column(name, justify="right")
        for candidate in result.candidates:
            table.add_row(
                str(candidate.trial),
                f"{100 * candidate.searched:.2f}",
                f"{100 * candidate.mean:.2f} ± {100 * candidate.standard_error:.2f}",
            )
        make_console().print(table)
    say(f"validation {best.metric} {100 * best.mean:.2f} ± {100 * best.standard_error:.2f}, {result.folder / BEST}")


class TuningProgress(TuningObserver):
    """One bar for the search, then one for the comparison; lines in a file."""

    def __init__(self, output: Output) -> None:
        self.console = make_console(stderr=True, quiet=not output.verbose)
        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[words]}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=self.console,
            disable=not self.console.is_terminal,
        )
        self.bar = self.progress.add_task("settings", words="")

    def __enter__(self) -> "TuningProgress":
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
        self._log(f"{len(trials)} of {total} settings tried{'; ' if words else ''}{words}")

    def confirming(self, candidates: int, splits: int) -> None:
        words = f"best {candidates} on {splits} fresh splits"
        self.bar = self.progress.add_task("confirm", words=words)
        self._log(f"comparing the {words}")

    def counted(self, done: int, total: int) -> None:
        self.progress.update(self.bar, total=total, completed=done)
        self._log(f"{done} of {total} comparisons done")

    def _log(self, line: str) -> None:
        if not self.console.is_terminal:
            self.console.print(line)


tune = make_command(DEFAULT_MODEL)
