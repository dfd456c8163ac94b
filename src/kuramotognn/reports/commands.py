"""Commands that repeat the runs of a table."""

from __future__ import annotations

import shlex

from kuramotognn.reports.result_tables import Entry, ExperimentResult


def experiment_command(result: ExperimentResult) -> str:
    """The command that makes the runs of an experiment's tables."""
    experiment = result.experiment
    seen = [entry for grid in result.grids for entry in grid.entries if entry.runs or entry.failed]
    splits = max((len(entry.by_split) for entry in seen), default=experiment.splits)
    seeds = max((record["seed"] + 1 for record in result.records), default=experiment.seeds)
    words = ["kuramotognn", "reproduce", experiment.name, "--splits", str(max(splits, 1)), "--seeds", str(seeds)]
    datasets = dict.fromkeys(entry.place.dataset for entry in seen)
    models = dict.fromkeys(entry.place.model for entry in seen)
    if 0 < len(datasets) < len(experiment.datasets):
        words += ["--datasets", ",".join(datasets)]
    if 0 < len(models) < len(experiment.models):
        words += ["--models", ",".join(models)]
    return shlex.join(words)


def entry_command(entry: Entry) -> str:
    """The command that makes the runs behind one number, and no others."""
    place = entry.place
    splits = max(entry.samples, default=0) + 1
    seeds = max((len(values) for values in entry.samples.values()), default=1)
    words = ["kuramotognn", "reproduce", place.experiment.name, "--datasets", place.dataset, "--models", place.model]
    if place.at:
        words += ["--only", ",".join(f"{axis}={value:g}" for axis, value in place.at.items())]
    return shlex.join([*words, "--splits", str(splits), "--seeds", str(seeds)])
