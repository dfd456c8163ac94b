"""What a study searches: the base settings, the space around them, and the splits that settings are scored on."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from kuramotognn.config.resolve import ConfigError, excluded_by, flatten, nest, resolve
from kuramotognn.config.search_spaces import Choice, SearchSpace, search_space
from kuramotognn.config.tree import Config
from kuramotognn.data import PROTOCOLS
from kuramotognn.documents import first_problem, read_document
from kuramotognn.models.lookup import find_model
from kuramotognn.sweeps.outcomes import FIRST_TUNING_SPLIT

STUDY = "study.json"
#: Splits that the best settings are compared on again start here, apart from those of the search.
FIRST_CONFIRMATION_SPLIT, FIRST_CONFIRMATION_SEED = 1100, 100


@dataclass(frozen=True)
class TuningPlan:
    """What a study does.

    Attributes:
        base: whole settings that a trial changes in some places.
        fixed: dotted names of settings that are not searched.
        starts: settings to try first, under dotted names.
        trials: how many settings to try.
        splits: how many tuning splits a trial is scored on, unless it is stopped before.
        candidates: how many of the best are compared again.
        confirmation_splits: on how many fresh splits.
        seed: of the search.
    """

    base: dict[str, Any]
    fixed: tuple[str, ...] = ()
    starts: tuple[dict[str, Any], ...] = ()
    trials: int = 50
    splits: int = 8
    candidates: int = 5
    confirmation_splits: int = 16
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("trials", "splits", "candidates", "confirmation_splits"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name.replace('_', ' ')} must be at least 1, got {getattr(self, name)}")
        if self.splits > FIRST_CONFIRMATION_SPLIT - FIRST_TUNING_SPLIT:
            raise ConfigError(
                f"a trial has {FIRST_CONFIRMATION_SPLIT - FIRST_TUNING_SPLIT} tuning splits, got {self.splits}"
            )

    @property
    def space(self) -> SearchSpace:
        """The model's search space without what is fixed or ruled out by it."""
        config = self.config({})
        flat = dict(flatten(self.base))
        ruled_out = {rival for name in self.fixed for rival in excluded_by(name, flat.get(name))}
        space = {
            name: where
            for name, where in search_space(find_model(config.model.name), dict(flatten(config.model_dump()))).items()
            if name not in ruled_out and name not in self.fixed
        }
        if not space:
            raise ConfigError(f"nothing is left to search for {config.model.name}: every setting of its space is given")
        return space

    @property
    def given_splits(self) -> int:
        """Number of splits of a protocol with given splits; 0 where splits are drawn."""
        protocol = PROTOCOLS[self.config({}).data.protocol]
        return 0 if protocol.drawn else protocol.splits

    def search_on(self) -> list[tuple[int, int]]:
        """Splits and seeds that a trial is scored on."""
        return self._pairs(FIRST_TUNING_SPLIT, 0, self.splits)

    def confirm_on(self) -> list[tuple[int, int]]:
        """Splits and seeds that the best settings are compared on."""
        return self._pairs(FIRST_CONFIRMATION_SPLIT, FIRST_CONFIRMATION_SEED, self.confirmation_splits)

    def _pairs(self, first_split: int, first_seed: int, count: int) -> list[tuple[int, int]]:
        if given := self.given_splits:
            # There are no others: their validation nodes decide, and fresh means other seeds.
            return [(k % given, first_seed + k // given) for k in range(count)]
        seed = self.config({}).seed
        return [(first_split + k, seed) for k in range(count)]

    def config(self, settings: Mapping[str, Any]) -> Config:
        """The base with some settings changed."""
        return resolve(settings, self.base | {"recommended": False}).config


def plan_study(
    flags: Mapping[str, Any],
    file: Mapping[str, Any] | None = None,
    starts: Sequence[Mapping[str, Any]] = (),
    **settings: Any,
) -> TuningPlan:
    """A plan from flags and a file as :func:`~kuramotognn.config.resolve` takes them: what they set is fixed.

    First to be tried are the settings recommended for the data set, the model's defaults, and ``starts``.
    """
    given = nest(dict(flatten(_settings(file or {}))) | dict(flatten(flags)))
    fixed = tuple(sorted(name for name, _ in flatten(given)))
    base = _whole(resolve(flags, file).config)
    defaults = _whole(resolve(given, {"recommended": False}).config)
    tried = [_whole(resolve(_settings(start), base | {"recommended": False}).config) for start in starts]
    first = [dict(flatten(whole)) for whole in (base, *tried, defaults)]
    plan = TuningPlan(base, fixed, tuple(first), **settings)
    return TuningPlan(**(asdict(plan) | {"starts": tuple(_within(start, plan.space) for start in first)}))


def load_plan(folder: Path, trials: int | None = None) -> TuningPlan:
    """The plan of a study folder."""
    path = folder / STUDY
    try:
        content = read_document(path)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ConfigError(f"{str(folder)!r} is not a study: it has no {STUDY}; `kuramotognn tune` makes one") from error
    try:
        plan = TypeAdapter(TuningPlan).validate_json(content)
    except ValidationError as error:
        raise ConfigError(f"{str(path)!r} is not the plan of a study: {first_problem(error)}") from error
    name = plan.config({}).model.name
    if str(_table(plan.base, "model").get("name", name)) != name:  # A relative path would run a file of this folder.
        raise ConfigError(f"{str(path)!r} names a model file; write its absolute path")
    return replace(plan, trials=trials) if trials is not None else plan


def _table(settings: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = settings.get(name, {})
    return found if isinstance(found, Mapping) else {}


def _whole(config: Config) -> dict[str, Any]:
    return config.model_dump(mode="json", exclude_none=True, exclude={"splits", "first_split"})


def _settings(file: Mapping[str, Any]) -> dict[str, Any]:
    """A file's settings without the switch that is none."""
    return {name: value for name, value in file.items() if name != "recommended"}


def _within(settings: Mapping[str, Any], space: SearchSpace) -> dict[str, Any]:
    """Settings as optuna represents them, clipped to the space; settings that are missing are drawn."""
    inside: dict[str, Any] = {}
    for name, where in space.items():
        value = settings.get(name)
        if isinstance(where, Choice):
            known = [json.dumps(option) for option in where.options]
            if json.dumps(value) in known:
                inside[name] = json.dumps(value)
        elif value is not None:
            inside[name] = min(max(float(value), where.low), where.high)
    return inside
