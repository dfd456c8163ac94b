"""The plan of an experiment: its cells, missing data, and estimated time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any

from kuramotognn.config.resolve import ConfigError
from kuramotognn.data import DATASETS, load_dataset
from kuramotognn.data.raw_files import data_root
from kuramotognn.solver import ADAPTIVE
from kuramotognn.sweeps.catalogue import Experiment, Place
from kuramotognn.sweeps.cells import Case, Cell, load

#: Seconds for one channel of one edge, forward and backward, and for an epoch's fixed work; of a laptop of 2020.
EDGE_SECONDS, EPOCH_SECONDS = 1.2e-9, 0.015
#: Evaluations that an adaptive solver is taken to need.
ADAPTIVE_EVALUATIONS = 300
#: Nodes and edges where the paper gives none.
SIZES = {
    "texas": (183, 295),
    "wisconsin": (251, 499),
    "cornell": (183, 280),
    "roman-empire": (22_662, 32_927),
    "amazon-ratings": (24_492, 93_050),
    "ogbn-arxiv": (169_343, 1_166_243),
}


@dataclass(frozen=True)
class Sweep:
    """An experiment, or part of it, to be run.

    Attributes:
        experiment: what it is part of.
        cases: the cases and where they stand.
        splits: how many splits of each.
        seeds: how many seeds on each split.
        missing: data sets that are not there, and what to do about it; their cases are left out of :attr:`cells`.
    """

    experiment: Experiment
    cases: tuple[tuple[Place, Case], ...] = field(repr=False)
    splits: int
    seeds: int
    missing: Mapping[str, str]

    @property
    def cells(self) -> list[Cell]:
        """Everything to be done: split by split, so that a sweep that is stopped early has something of every case."""
        present = [case for place, case in self.cases if place.dataset not in self.missing]
        return [
            Cell(case, split, seed) for split in range(self.splits) for seed in range(self.seeds) for case in present
        ]

    @cached_property
    def _places(self) -> dict[str, Place]:
        return {case.digest: place for place, case in self.cases}

    def label(self, cell: Cell) -> str:
        """A cell in words."""
        place = self._places[cell.case.digest]
        where = "".join(f" {name}={value:g}" for name, value in place.at.items())
        return f"{place.dataset} {place.model}{where} split {cell.split}" + (f" seed {cell.seed}" if cell.seed else "")


def plan_sweep(
    experiment: Experiment,
    *,
    splits: int | None = None,
    seeds: int | None = None,
    datasets: Sequence[str] = (),
    models: Sequence[str] = (),
    only: Mapping[str, Sequence[float]] | None = None,
    tuned: Mapping[tuple[str, str], Mapping[str, Any]] | None = None,
    download: bool = False,
) -> Sweep:
    """An experiment's cases on some splits and seeds; the experiment's own numbers of them unless given.

    Args:
        experiment: what to run.
        splits: how many splits, from 0.
        seeds: how many seeds, from 0.
        datasets: some of its data sets.
        models: some of its models.
        only: some values of its axes, by the axis's name.
        tuned: settings to start from instead of the recommended ones, by data set and model.
        download: try to get data that is not there.
    """
    splits = min(experiment.splits, experiment.most_splits) if splits is None else splits
    seeds = experiment.seeds if seeds is None else seeds
    for name, value in (("splits", splits), ("seeds", seeds)):
        if value < 1:
            raise ConfigError(f"{name} must be at least 1, got {value}")
    if splits > experiment.most_splits:
        raise ConfigError(
            f"{experiment.name} uses protocol {experiment.protocol}, which has {experiment.most_splits} "
            f"split{'s' if experiment.most_splits > 1 else ''} to report on, got {splits}"
        )
    cases = tuple((place, place.case(tuned)) for place in experiment.places(datasets, models, only))
    reasons = {place.dataset: missing_data(place.dataset, experiment.protocol, download) for place, _ in cases}
    return Sweep(experiment, cases, splits, seeds, {name: reason for name, reason in reasons.items() if reason})


def missing_data(dataset: str, protocol: str, download: bool) -> str | None:
    """Why a data set cannot be used here, with the files to put where; None when it can."""
    info, root = DATASETS[dataset], data_root()
    if (info.embedded and protocol != info.given) or info.is_present(root):
        return None
    if download:
        try:
            load_dataset(dataset, protocol=protocol)
        except (ValueError, OSError) as error:
            return str(error)
        return None
    absent = [file.path for file in info.raw if not (root / file.path).is_file()]
    return f"{dataset} is not in {root}: {', '.join(absent)}"


@dataclass(frozen=True)
class Progress:
    """How far a sweep is: counts of cells, and seconds of one process that are left."""

    done: int
    failed: int
    total: int
    seconds: float


def progress(sweep: Sweep, folder: Path) -> Progress:
    """Look at the results in a folder."""
    left, done, failed, factors = [], 0, 0, []
    for cell in sweep.cells:
        path = cell.path(folder)
        if not path.exists():
            left.append(cell)
            continue
        record = load(path)
        done, failed = done + 1, failed + ("failed" in record)
        if seconds := record.get("result", {}).get("seconds"):
            factors.append(seconds / expected_seconds(cell.case))
    # What was run here says how this machine differs from the guess.
    factor = median(factors) if factors else 1.0
    return Progress(done, failed, done + len(left), factor * sum(expected_seconds(cell.case) for cell in left))


def expected_seconds(case: Case) -> float:
    """A rough guess at the time of one cell on one core."""
    config = case.config
    if case.outcome == "statistics":
        return 1.0
    paper = DATASETS[config.dataset].paper
    nodes, edges = (paper.nodes, paper.edges) if paper else SIZES.get(config.dataset, (10_000, 50_000))
    width = getattr(config.model, "hidden_channels", 64)
    evaluations = getattr(config.model, "num_layers", None) or (
        ADAPTIVE_EVALUATIONS
        if config.solver.method in ADAPTIVE
        else config.solver.num_steps(getattr(config.model, "time", 1.0))
    )
    fixed = EPOCH_SECONDS * max(1.0, nodes / 2500)
    epochs = 30 if case.outcome == "timing" else config.training.epochs
    return epochs * (fixed + evaluations * (2 * edges + nodes) * width * EDGE_SECONDS)
