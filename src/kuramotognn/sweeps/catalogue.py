"""Experiments as data: each file in ``experiments/`` says what is compared, and makes the cases to run."""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, model_validator

from kuramotognn.checks import did_you_mean
from kuramotognn.config.resolve import ConfigError, flatten, presets_of, read_toml, resolve
from kuramotognn.config.tree import Strict
from kuramotognn.data import PROTOCOLS, Protocol
from kuramotognn.models.registry import DEFAULT_MODEL
from kuramotognn.sweeps.cells import Case
from kuramotognn.sweeps.outcomes import Outcome


class Axis(Strict):
    """Something that an experiment varies besides model and data set."""

    name: str = Field(description="What tables and figures call it.")
    setting: str = Field(description="Dotted name of the setting.")
    values: tuple[float, ...] = Field(min_length=1, description="Its values.")
    setting_of: Mapping[str, str] = Field({}, description="Models in which another setting has this meaning.")
    published: str | None = Field(None, description="The column of published.csv that holds it.")
    preset: str | None = Field(
        None, description="Preset with the settings found at a value, such as depth-{}, for models that have it."
    )

    def labels(self, values: Sequence[float]) -> list[str]:
        """Values as they are chosen on the command line."""
        return [f"{self.name}={value:g}" for value in values]

    def setting_for(self, model: str) -> str:
        """The setting that has this meaning in a model."""
        return self.setting_of.get(model, self.setting)


class SettingsOf(Strict):
    """Settings for some of the cases."""

    models: tuple[str, ...] = Field((), description="Models they are for; all unless given.")
    datasets: tuple[str, ...] = Field((), description="Data sets they are for; all unless given.")
    data: Mapping[str, Any] = {}
    model: Mapping[str, Any] = {}
    solver: Mapping[str, Any] = {}
    training: Mapping[str, Any] = {}

    def tables(self) -> dict[str, Any]:
        """The settings alone."""
        return self.model_dump(include={"data", "model", "solver", "training"})


class Experiment(Strict):
    """A table or figure: which cases it has and how they are shown."""

    name: str
    title: str = Field(description="Heading.")
    about: str = Field(description="What it shows, in the paper's terms.")
    outcome: Outcome = Field("accuracy", description="What is done with each case.")
    protocol: Protocol = Field(description="How nodes are split; one table never mixes two.")
    datasets: tuple[str, ...] = Field(min_length=1, description="Data sets.")
    models: tuple[str, ...] = Field((DEFAULT_MODEL,), description="Models; MODEL@PRESET starts from a preset.")
    metric: str = Field("test_accuracy", description="The number of a case.")
    metrics: tuple[str, ...] = Field((), description="Its numbers, when it has several.")
    published: str | None = Field(None, description="The table of published.csv that it repeats.")
    splits: int = Field(ge=1, description="Splits that are run unless given.")
    seeds: int = Field(ge=1, description="Seeds on each split unless given.")
    rows: str = Field(description="model, dataset or an axis.")
    columns: str = Field(description="model, dataset, metric or an axis.")
    figure: Literal["lines", "heat-map", "maps", "trajectory"] | None = Field(None, description="How it is drawn.")
    axes: tuple[Axis, ...] = ()
    recommended: bool = Field(True, description="Start from recommended settings; otherwise from the models' defaults.")
    settings: SettingsOf = SettingsOf()
    settings_of: tuple[SettingsOf, ...] = ()

    @model_validator(mode="after")
    def _consistent(self) -> Experiment:
        known = {"model", "dataset", "metric", *(axis.name for axis in self.axes)}
        for place in (self.rows, self.columns):
            if place not in known:
                raise ValueError(f"{self.name}: {place!r} is not one of {', '.join(sorted(known))}")
        return self

    @property
    def numbers(self) -> tuple[str, ...]:
        """Names of the numbers of a case."""
        return self.metrics or (self.metric,)

    @property
    def most_splits(self) -> int:
        """How many splits the protocol has."""
        return 1 if self.outcome == "statistics" else PROTOCOLS[self.protocol].splits

    def places(
        self,
        datasets: Sequence[str] = (),
        models: Sequence[str] = (),
        only: Mapping[str, Sequence[float]] | None = None,
    ) -> Iterator[Place]:
        """The cases, in the order of the file; of some data sets, models and values of axes, when they are named."""
        only = only or {}
        self._check_selection("data set", datasets, self.datasets)
        self._check_selection("model", models, self.models)
        self._check_selection("axis", list(only), [axis.name for axis in self.axes])
        for axis in self.axes:
            self._check_selection("case", axis.labels(only.get(axis.name, ())), axis.labels(axis.values))
        for dataset in [name for name in self.datasets if not datasets or name in datasets]:
            for model in [name for name in self.models if (not models or name in models) and _has(name, dataset)]:
                for values in itertools.product(*(_chosen(axis, only) for axis in self.axes)):
                    names = (axis.name for axis in self.axes)
                    yield Place(self, dataset, model, dict(zip(names, values, strict=True)))

    def _check_selection(self, kind: str, chosen: Sequence[str], there: Sequence[str]) -> None:
        for name in chosen:
            if name not in there:
                near = did_you_mean(name, there)
                raise ConfigError(
                    f"experiment {self.name} has no {kind} {name!r}{near}; it has {', '.join(there) or 'none'}"
                )


@dataclass(frozen=True)
class Place:
    """Where a case stands in an experiment."""

    experiment: Experiment
    dataset: str
    model: str
    at: Mapping[str, float]

    def case(self, tuned: Mapping[tuple[str, str], Mapping[str, Any]] | None = None) -> Case:
        """What is run: tuned settings, a preset's, recommended or default ones; then the experiment's and its axes'."""
        experiment = self.experiment
        own = (tuned or {}).get((self.dataset, self.model))
        base = {"recommended": experiment.recommended} if own is None else own
        layers = [experiment.settings, *experiment.settings_of]
        settings: dict[str, Any] = {"data.protocol": experiment.protocol}
        for layer in layers:
            if (not layer.models or self.model in layer.models) and (
                not layer.datasets or self.dataset in layer.datasets
            ):
                settings |= dict(flatten(layer.tables()))
        name, _, preset = self.model.partition("@")
        for axis in experiment.axes:
            value = self.at[axis.name]
            settings[axis.setting_for(name)] = int(value) if _whole(axis, name) else float(value)
            if axis.preset and own is None and _has(f"{name}@{axis.preset.format(f'{value:g}')}", self.dataset):
                preset = preset or axis.preset.format(f"{value:g}")
        flags = settings | {"dataset": self.dataset, "model.name": name} | ({"preset": preset} if preset else {})
        return Case(resolve(flags, base).config, experiment.outcome)

    def value(self, axis: str) -> str | float:
        """Where it stands on an axis: a name or a number."""
        names = {"dataset": self.dataset, "model": self.model}
        return names[axis] if axis in names else self.at[axis]


def experiments() -> dict[str, Experiment]:
    """All experiments, in the order of a report: accuracy, depth, coupling, cost."""
    return dict(_experiments())


def find_experiment(name: str) -> Experiment:
    """The experiment of this name; an unknown one is refused with the nearest known."""
    known = experiments()
    if name not in known:
        raise ConfigError(f"unknown experiment {name!r}{did_you_mean(name, known)}; known: {', '.join(known)}")
    return known[name]


def parse_experiment(name: str, content: Mapping[str, Any]) -> Experiment:
    """Validate the content of a file."""
    try:
        return Experiment.model_validate({"name": name, **content})
    except ValidationError as error:
        raise ConfigError(f"experiment {name}: {_explain(error)}") from error


def read_tuned(paths: Sequence[Path]) -> dict[tuple[str, str], dict[str, Any]]:
    """Settings that ``tune`` wrote, by data set and model."""
    tuned = {}
    for path in paths:
        content = read_toml(path)
        try:
            tuned[content["dataset"], content["model"]["name"]] = content
        except (KeyError, TypeError) as error:
            raise ConfigError(f"{str(path)!r} names no data set or no model; `kuramotognn tune` writes both") from error
    return tuned


ORDER = (
    "main-accuracy",
    "main-accuracy-recipe",
    "all-models",
    "labels-per-class",
    "depth",
    "depth-all",
    "depth-coupling-grid",
    "coupling",
    "solver-evaluations",
    "heterophilic-webkb",
    "heterophilic-large",
    "ogbn-arxiv-depth",
    "dataset-statistics",
    "efficiency",
    "synchronisation",
    "oversmoothing",
)


@cache
def _experiments() -> Mapping[str, Experiment]:
    folder = files("kuramotognn.sweeps").joinpath("experiments")
    texts = {name: folder.joinpath(f"{name}.toml").read_text(encoding="utf-8") for name in ORDER}
    return {name: parse_experiment(name, tomllib.loads(text)) for name, text in texts.items()}


def _has(model: str, dataset: str) -> bool:
    """Whether a model can be run on a data set: presets have settings for some data sets only."""
    name, _, preset = model.partition("@")
    return not preset or dataset in presets_of(name).get(preset, ())


def _chosen(axis: Axis, only: Mapping[str, Sequence[float]]) -> list[float]:
    labels = axis.labels(only.get(axis.name, axis.values))
    return [value for value, label in zip(axis.values, axis.labels(axis.values), strict=True) if label in labels]


def _whole(axis: Axis, model: str) -> bool:
    return axis.setting_for(model) in ("data.per_class", "model.num_layers")


def _explain(error: ValidationError) -> str:
    problem = error.errors(include_url=False)[0]
    return f"{'.'.join(str(part) for part in problem['loc'])}: {problem['msg']}"
