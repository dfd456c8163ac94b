"""The journal of a study: optuna's record of every trial, and what makes it survive a kill."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, TrialState

from kuramotognn.atomic_write import write_atomically
from kuramotognn.config.resolve import ConfigError
from kuramotognn.documents import read_document
from kuramotognn.sweeps.tuning_plan import TuningPlan

JOURNAL = "journal.log"
START, FAILED, SECONDS = "start", "failed", "seconds"
"""Attributes of trials: which of the settings to try first it is, why it could not be trained, and what it took."""
FINISHED = (TrialState.COMPLETE, TrialState.PRUNED)


def open_study(plan: TuningPlan, folder: Path, journal: str = JOURNAL) -> optuna.Study:
    """The study in a folder, made if it is not there."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    path = (folder / journal).absolute()  # Optuna's lock is a link to it.
    try:
        return optuna.create_study(
            storage=JournalStorage(JournalFileBackend(str(path))),
            sampler=sampler(plan, 0, 0),
            # Splits come in the same order in every trial: after 1, 3, 9, … of them trials compare on equal terms, and
            # the best third goes on.
            pruner=optuna.pruners.SuccessiveHalvingPruner(min_resource=1, reduction_factor=3),
            study_name="tune",
            direction="maximize",
            load_if_exists=True,
        )
    except OSError:
        raise
    except Exception as error:  # Optuna does not document what a damaged journal raises.
        reason = f"{type(error).__name__}: {error}"
        raise ConfigError(
            f"{str(path)!r} is not the journal of a study: {reason}; remove it to search again"
        ) from error


def sampler(plan: TuningPlan, trial: int, process: int) -> optuna.samplers.BaseSampler:
    """What draws the settings of a trial: it depends on the trials before and on no earlier draw."""
    seed = int(np.random.SeedSequence([plan.seed, trial, process]).generate_state(1)[0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        return optuna.samplers.TPESampler(seed=seed, multivariate=True, n_startup_trials=12)


def finished(study: optuna.Study) -> list[FrozenTrial]:
    """Trials that count: complete, or stopped because they were poor."""
    return study.get_trials(deepcopy=False, states=FINISHED)


def mend(plan: TuningPlan, folder: Path) -> None:
    """Write the journal without trials that did not end: a process that was killed leaves such, half a line or a lock.

    Settings that were given to be tried first wait again; others are drawn again.
    """
    path, fresh = folder / JOURNAL, folder / f".{JOURNAL}"
    for left in (folder / f"{JOURNAL}.lock", fresh, folder / f".{JOURNAL}.lock"):
        left.unlink(missing_ok=True)
    if not path.exists():
        return
    content = read_document(path)
    if not content.endswith(b"\n"):
        write_atomically(path, content[: content.rfind(b"\n") + 1])
    old, new = open_study(plan, folder), open_study(plan, folder, fresh.name)
    try:
        for trial in old.get_trials(deepcopy=False):
            if trial.state in (TrialState.RUNNING, TrialState.FAIL):
                if (place := trial.user_attrs.get(START)) is not None:
                    new.enqueue_trial(plan.starts[place], user_attrs={START: place})
            else:
                new.add_trial(trial)
    except (TypeError, ValueError, IndexError, AttributeError) as error:
        raise ConfigError(
            f"{str(path)!r} is not the journal of this study: {error}; remove it to search again"
        ) from error
    fresh.replace(path)
