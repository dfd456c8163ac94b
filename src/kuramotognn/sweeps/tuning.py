"""Search for settings by the chosen metric on validation nodes of tuning splits; test nodes take no part.

A study folder holds ``study.json`` (what is searched), ``journal.log`` (optuna's record of every trial), ``confirm/``
(the best settings on fresh splits) and, at the end, ``best.toml`` and ``tuning.json``.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import optuna
import tomli_w
from optuna.trial import FrozenTrial, Trial, TrialState

from kuramotognn.atomic_write import PART, remove_parts, write_atomically
from kuramotognn.config.resolve import ConfigError
from kuramotognn.config.search_spaces import Choice, LogUniform, Range, Uniform
from kuramotognn.config.tree import Config
from kuramotognn.data import DataError
from kuramotognn.printable import printable
from kuramotognn.runs.provenance import provenance
from kuramotognn.runs.task import Task
from kuramotognn.sweeps.cells import Case, Cell
from kuramotognn.sweeps.outcomes import validation
from kuramotognn.sweeps.tuning_journal import FAILED, FINISHED, SECONDS, START, finished, mend, open_study, sampler
from kuramotognn.sweeps.tuning_plan import STUDY, TuningPlan, load_plan
from kuramotognn.sweeps.work_claims import Claims
from kuramotognn.sweeps.worker_process import how_it_ended, start_worker, stop_worker
from kuramotognn.sweeps.workers import SweepObserver, check_processes, run_cells

BEST, SUMMARY, CONFIRM = "best.toml", "tuning.json", "confirm"


@dataclass(frozen=True)
class Candidate:
    """Settings that did well in the search, and their validation scores on fresh splits."""

    trial: int
    searched: float
    config: Config
    confirmed: tuple[float, ...] = field(repr=False)

    @property
    def metric(self) -> str:
        """What epochs and settings are selected by."""
        return self.config.training.metric

    @property
    def mean(self) -> float:
        """Mean validation score on the fresh splits."""
        return statistics.fmean(self.confirmed)

    @property
    def standard_error(self) -> float:
        """Of the mean."""
        spread = statistics.stdev(self.confirmed) if len(self.confirmed) > 1 else math.nan
        return spread / math.sqrt(len(self.confirmed))


@dataclass(frozen=True)
class TuningResult:
    """The candidates, best first, and where the study is."""

    folder: Path
    trials: int
    candidates: tuple[Candidate, ...]

    @property
    def best(self) -> Candidate:
        """The winner on fresh splits."""
        return self.candidates[0]


class TuningObserver(SweepObserver):
    """Called during a study; does nothing by itself."""

    def searched(self, trials: Sequence[FrozenTrial], total: int) -> None:
        """Finished trials; called whenever there is a new one."""

    def confirming(self, candidates: int, splits: int) -> None:
        """The search is over; the best settings are compared on fresh splits."""


def start_study(
    plan: TuningPlan, folder: Path, *, processes: int = 1, observer: TuningObserver | None = None
) -> TuningResult:
    """Search, confirm, and write ``best.toml``, in a new folder."""
    check_processes(processes)
    there = list(folder.iterdir()) if folder.is_dir() else [folder] if folder.exists() else []
    if any(not path.name.endswith(PART) for path in there):
        raise ConfigError(f"{str(folder)!r} exists and is not empty; resume it with --resume or name another folder")
    task = Task.from_config(plan.config({}))
    # Settings that cannot work should not leave a folder behind.
    task.for_split(plan.search_on()[0][0]).try_model()
    task.split(plan.search_on()[0][0]), plan.space
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / STUDY, json.dumps(asdict(plan), indent=1) + "\n")
    return resume_study(folder, processes=processes, observer=observer)


def resume_study(
    folder: Path, *, trials: int | None = None, processes: int = 1, observer: TuningObserver | None = None
) -> TuningResult:
    """Continue a study, to more trials if given; finished ones are kept."""
    plan, observer = load_plan(folder, trials), observer or TuningObserver()
    with Claims(folder) as claims, claims.claim(STUDY) as mine:
        if not mine:
            raise ConfigError(f"{str(folder)!r} is being searched by another process; wait for it or stop it")
        try:
            remove_parts(folder)
            mend(plan, folder)
            _search(plan, folder, processes, observer)
            return _confirm(plan, folder, processes, observer)
        except OSError as error:
            raise OSError(f"the search stopped: {error}; go on with --resume {folder}") from error


def suggest(trial: Trial, name: str, where: Range) -> Any:
    """A value for a setting; numbers are rounded to three digits, so that they can be read and typed."""
    match where:
        case Uniform(low, high):
            return float(f"{trial.suggest_float(name, low, high):.3g}")
        case LogUniform(low, high):
            return float(f"{trial.suggest_float(name, low, high, log=True):.3g}")
        case Choice(options):
            return json.loads(trial.suggest_categorical(name, [json.dumps(option) for option in options]))


def _search(plan: TuningPlan, folder: Path, processes: int, observer: TuningObserver) -> None:
    study = open_study(plan, folder)
    for place, start in enumerate(plan.starts):
        study.enqueue_trial(start, user_attrs={START: place}, skip_if_exists=True)
    observer.searched(finished(study), plan.trials)
    if len(finished(study)) >= plan.trials:
        return
    workers = [start_worker(_try_settings, plan, folder, number) for number in range(processes)]
    try:
        while workers:
            for process, pipe in [worker for worker in workers if worker[1] in wait([p for _, p in workers])]:
                try:
                    message = pipe.recv()
                except (EOFError, ConnectionError):
                    workers.remove((process, pipe))
                    process.join()
                    if process.exitcode != 0:
                        how = how_it_ended(process)
                        raise ConfigError(f"a searching process ended ({how}); go on with --resume {folder}") from None
                else:
                    if isinstance(message, str):
                        raise OSError(message)
                    observer.searched(finished(study), plan.trials)
    finally:
        for worker in workers:
            stop_worker(*worker)


def _try_settings(plan: TuningPlan, folder: Path, number: int, pipe: Connection) -> None:
    """What a searching process does: trials, until there are enough."""
    try:
        study = open_study(plan, folder)
        while len(tried := study.get_trials(deepcopy=False, states=(*FINISHED, TrialState.RUNNING))) < plan.trials:
            # Drawn from the trial's own seed: a search that was killed goes on as if it had not been.
            study.sampler = sampler(plan, len(tried), number)
            trial = study.ask()
            try:
                study.tell(trial, _score(plan, trial))
            except optuna.TrialPruned:
                study.tell(trial, state=TrialState.PRUNED)
            pipe.send(None)
    except (OSError, ValueError) as error:
        pipe.send(str(error))
    except Exception as error:  # One sentence from the parent says more than a traceback from here.
        pipe.send(f"{type(error).__name__}: {error}")


def _score(plan: TuningPlan, trial: Trial) -> float:
    """Mean validation score over the tuning splits; poor settings are stopped after some of them."""
    config = plan.config({name: suggest(trial, name, where) for name, where in plan.space.items()})
    scores: list[float] = []
    for split, seed in plan.search_on():
        try:
            result = validation(config.model_copy(update={"splits": 1, "first_split": split, "seed": seed}))
        except (OSError, DataError):
            raise
        except Exception as error:  # Models may be the user's own and raise anything.
            trial.set_user_attr(FAILED, printable(f"split {split}: {type(error).__name__}: {error}", 2000))
            raise optuna.TrialPruned from error
        scores.append(_selected_on(result))
        trial.report(statistics.fmean(scores), step=len(scores))
        trial.set_user_attr(SECONDS, trial.user_attrs.get(SECONDS, 0.0) + result["seconds"])
        if len(scores) < plan.splits and trial.should_prune():
            raise optuna.TrialPruned
    return statistics.fmean(scores)


def _selected_on(result: Mapping[str, Any]) -> float:
    """What settings are compared by: ``training.metric`` on validation nodes."""
    return float(result.get("validation_score", result["validation_accuracy"]))


def _confirm(plan: TuningPlan, folder: Path, processes: int, observer: TuningObserver) -> TuningResult:
    """Compare the best settings again on fresh splits: the maximum of noisy scores is biased upward."""
    study = open_study(plan, folder)
    complete = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    if not complete:
        reasons = [trial.user_attrs[FAILED] for trial in finished(study) if FAILED in trial.user_attrs]
        why = f" ({reasons[0]})" if reasons else ""
        raise ConfigError(f"no setting of {str(folder)!r} could be trained on every tuning split{why}; try more trials")
    chosen = _best_distinct(plan, complete)
    splits = plan.confirm_on()
    cases = [Case(config, "validation") for _, config in chosen]
    cells = [Cell(case, split, seed) for case in cases for split, seed in splits]
    observer.confirming(len(chosen), len(splits))
    records = run_cells(cells, folder / CONFIRM, processes=processes, observer=observer)
    if len(records) < len(cells):
        problems = [path.read_text(encoding="utf-8") for path in (folder / CONFIRM).rglob("*.problem")]
        missing = len(cells) - len(records)
        raise ConfigError(f"{missing} cells were not run: {problems[0]}; go on with --resume {folder}")
    candidates = []
    for place, (trial, config) in enumerate(chosen):
        own = records[place * len(splits) : (place + 1) * len(splits)]
        if all("result" in record for record in own):
            scores = tuple(_selected_on(record["result"]) for record in own)
            assert trial.value is not None
            candidates.append(Candidate(trial.number, trial.value, config, scores))
    if not candidates:
        raise ConfigError(f"none of the best settings could be trained on every fresh split: {records[0]['failed']}")
    candidates.sort(key=lambda candidate: candidate.mean, reverse=True)
    result = TuningResult(folder, len(finished(study)), tuple(candidates))
    tried = finished(study)
    seconds = sum(trial.user_attrs.get(SECONDS, 0.0) for trial in tried)
    seconds += sum(record.get("result", {}).get("seconds", 0.0) for record in records)
    trials = [_tried(trial, result.best.metric) for trial in tried]
    summary = _summary(plan, result) | {"seconds": round(seconds), "tried": trials}
    write_atomically(folder / BEST, _best_toml(plan, result))
    write_atomically(folder / SUMMARY, json.dumps(summary, indent=1) + "\n")
    return result


def _best_distinct(plan: TuningPlan, trials: Sequence[FrozenTrial]) -> list[tuple[FrozenTrial, Config]]:
    """The best trials whose settings differ."""
    chosen: dict[str, tuple[FrozenTrial, Config]] = {}
    for trial in sorted(trials, key=lambda trial: trial.value or 0.0, reverse=True):
        replay = optuna.trial.FixedTrial(trial.params)
        config = plan.config({name: suggest(replay, name, where) for name, where in plan.space.items()})  # type: ignore[arg-type]
        chosen.setdefault(Case(config).digest, (trial, config))
    return list(chosen.values())[: plan.candidates]


def _best_toml(plan: TuningPlan, result: TuningResult) -> str:
    best, source = result.best, provenance()
    searched, compared = (_words(pairs) for pairs in (plan.search_on(), plan.confirm_on()))
    lines = (
        f"Found by `kuramotognn tune`: {result.trials} settings tried on {searched}, poor ones on fewer,",
        f"the best {len(result.candidates)} compared again on {compared}. Trial {best.trial} won: validation",
        f"{best.metric} {100 * best.mean:.2f} ± {100 * best.standard_error:.2f} (mean ± standard error).",
        "Test nodes were not used.",
        f"kuramotognn {source['kuramotognn']}, commit {source['commit']}.",
    )
    settings = best.config.model_dump(
        mode="json", exclude_none=True, exclude={"splits", "first_split", "seed", "device", "backend"}
    )
    whole = {"dataset": settings.pop("dataset"), "recommended": False} | settings
    return "".join(f"# {line}\n" for line in lines) + "\n" + tomli_w.dumps(whole)


def _summary(plan: TuningPlan, result: TuningResult) -> dict[str, Any]:
    return {
        "dataset": result.best.config.dataset,
        "model": result.best.config.model.name,
        "metric": result.best.metric,
        "trials": result.trials,
        "searched_on": _words(plan.search_on()),
        "compared_on": _words(plan.confirm_on()),
        "candidates": [
            {
                "trial": candidate.trial,
                "searched": candidate.searched,
                "confirmed": candidate.mean,
                "standard_error": candidate.standard_error,
                "settings": candidate.config.model_dump(mode="json"),
            }
            for candidate in result.candidates
        ],
        "provenance": provenance(),
    }


def _tried(trial: FrozenTrial, metric: str) -> dict[str, Any]:
    """A trial as it is kept: its settings, its score, and on how many splits it was scored before it was stopped."""
    scores = trial.intermediate_values
    score = scores[max(scores)] if scores else None
    name = "validation_accuracy" if metric == "accuracy" else "validation_score"
    kept = {"settings": trial.params, name: score, "splits": max(scores, default=0)}
    return kept | ({FAILED: trial.user_attrs[FAILED]} if FAILED in trial.user_attrs else {})


def _words(pairs: Sequence[tuple[int, int]]) -> str:
    splits, seeds = ({pair[k] for pair in pairs} for k in (0, 1))
    words = f"splits {min(splits)}-{max(splits)}"
    return words if seeds == {0} else f"{words}, seeds {min(seeds)}-{max(seeds)}"
