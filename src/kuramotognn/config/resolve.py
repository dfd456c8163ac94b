"""From flags, files and recommended settings to one validated :class:`Config`."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from kuramotognn.checks import did_you_mean
from kuramotognn.config.model_settings import settings_class
from kuramotognn.config.tree import Config
from kuramotognn.data import OWN_GRAPH, dataset_name
from kuramotognn.documents import read_document
from kuramotognn.models.lookup import find_model
from kuramotognn.models.registry import DEFAULT_MODEL
from kuramotognn.solver import ADAPTIVE

DEEPEST = 8
"""Levels that a file of settings may have."""
MOST_DOTS = 10_000_000
"""Dots outside quotes that it may have: the sum of their squared numbers over the lines."""


class ConfigError(ValueError):
    """Settings that cannot be used; the message names the setting, its value and the remedy."""


@dataclass(frozen=True)
class Resolved:
    """Settings, and where each came from: ``flag``, ``file``, ``preset``, ``recommended`` or ``default``."""

    config: Config
    sources: Mapping[str, str]


def resolve(flags: Mapping[str, Any], file: Mapping[str, Any] | None = None) -> Resolved:
    """Merge settings: flag > file > preset, or what is recommended for the model on the data set > default.

    When a flag names another model than the file, the file's table ``[model]`` is for the other one and is left out. A
    file that says ``recommended = false`` is complete: a setting it leaves out has its default.

    Args:
        flags: settings by dotted name, such as ``model.time``, or nested as in a file.
        file: the content of a TOML file.
    """
    given, content = dict(flatten(flags)), dict(flatten(file or {}))
    content.pop("format", None)  # Of a run's config.toml.
    use_recommended = content.pop("recommended", True)
    if not isinstance(use_recommended, bool):
        raise ConfigError(f"recommended must be true or false, got {use_recommended!r}")
    model = chosen_model(given, content)
    if model != chosen_model(content, given):
        content = {key: value for key, value in content.items() if not key.startswith("model.")}
    own = any(layer.get("data.files.nodes") is not None for layer in (given, content))
    dataset = OWN_GRAPH if own else str(given.get("dataset", content.get("dataset", "cora")))
    name = given.get("preset", content.get("preset"))
    start: dict[str, Any] = {}
    if use_recommended:
        start = recommended(dataset, model) if name is None else preset(str(name), dataset, model)
    merged: dict[str, Any] = {}
    sources: dict[str, str] = {}
    layers = ("recommended" if name is None else "preset", dict(flatten(start))), ("file", content), ("flag", given)
    for source, layer in layers:
        for key, value in layer.items():
            for rival in excluded_by(key, value):
                merged.pop(rival, None)
                sources.pop(rival, None)
            merged[key], sources[key] = value, source
    config = parse(nest(merged))
    return Resolved(config, {key: sources.get(key, "default") for key, _ in flatten(config.model_dump())})


def chosen_model(*layers: Mapping[str, Any]) -> str:
    """The model that the first layer of dotted settings names."""
    return next((str(layer["model.name"]) for layer in layers if layer.get("model.name") is not None), DEFAULT_MODEL)


def parse(settings: Mapping[str, Any]) -> Config:
    """Validate settings, or say in one sentence what is wrong with the first wrong one."""
    try:
        # As JSON: strict about types, and lists, which is what TOML has, may stand for tuples.
        return Config.model_validate_json(json.dumps(settings, default=str), strict=True)
    except ValidationError as error:
        raise ConfigError(explain(error, settings)) from error
    except RuntimeError as error:  # A path with ``~user``.
        raise ConfigError(str(error)) from error


def explain(error: ValidationError, settings: Mapping[str, Any]) -> str:
    """The first problem that pydantic found, as one sentence with the setting's name and a remedy."""
    problem = error.errors(include_url=False)[0]
    path = [str(part) for part in problem["loc"]]
    setting, value, context = ".".join(path), problem["input"], problem.get("ctx", {})
    if problem["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        model = str((settings.get("model") or {}).get("name", DEFAULT_MODEL))
        if path[:-1] == ["model"]:
            return no_such_setting(model, path[-1])
        known = [".".join([*path[:-1], name]) for name in _fields_at(path[:-1])]
        return f"unknown setting {setting!r}{did_you_mean(setting, known)}; known here: {', '.join(known)}"
    if problem["type"] in ("missing", "missing_argument"):
        if path[:2] == ["data", "files"]:
            return f"a graph of your own needs --nodes, and --edges unless one file has both; --{path[-1]} is missing"
        return f"{setting} must be given; it has no default"
    if problem["type"] == "greater_than" and context.get("gt") == 0:
        return f"{setting} must be positive, got {value}"
    if problem["type"] in ("model_type", "model_attributes_type", "dataclass_type", "dataclass_exact_type"):
        return f"{setting} must be a table of settings ([{setting}] in the file), got {value!r}"
    if problem["type"] == "value_error":
        return str(context["error"])
    message = problem["msg"].replace("Input should be", "must be")
    near = did_you_mean(str(value), _choices(context)) if "expected" in context else ""
    return f"{setting} {message}, got {value!r}{near}"


def no_such_setting(model: str, setting: str) -> str:
    """The error message for a setting that a model lacks."""
    known = list(settings_class(model).model_fields)
    return f"{model} has no setting model.{setting}{did_you_mean(setting, known)}; it has {', '.join(known)}"


def read_toml(path: Path) -> dict[str, Any]:
    """Settings from a TOML file."""
    if path.is_dir():
        raise ConfigError(f"config file {str(path)!r} is a folder; name a TOML file in it")
    try:
        content = read_document(path)
    except FileNotFoundError as error:
        raise ConfigError(f"config file {str(path)!r} does not exist") from error
    try:
        text = content.decode()
        _check_dots(text)
        settings = tomllib.loads(text)
        _check_depth(settings)
    except ValueError as error:
        raise ConfigError(f"config file {str(path)!r} is not TOML: {error}") from error
    except RecursionError as error:
        raise ConfigError(f"config file {str(path)!r} is nested too deeply") from error
    return settings


def _check_dots(text: str) -> None:
    """Refuse dotted names on which the parser would spend seconds: it takes the square of their parts."""
    if sum(re.sub('"[^"]*"', "", line).count(".") ** 2 for line in text.splitlines()) > MOST_DOTS:
        raise RecursionError


def _check_depth(settings: Mapping[str, Any]) -> None:
    """Refuse what no setting is: the tree has three levels, and values are numbers, text and lists of them."""
    level: list[Any] = [settings]
    for _ in range(DEEPEST):
        level = [each for value in level for each in (value.values() if isinstance(value, dict) else value)]
        level = [each for each in level if isinstance(each, dict | list)]
    if level:
        raise RecursionError


def recommended(dataset: str, model: str) -> dict[str, Any]:
    """The settings that come with a model for a data set, found on validation nodes (drawn splits: 1000 and up)."""
    return _settings_file("recommended", dataset, model) or {}


def preset(name: str, dataset: str, model: str) -> dict[str, Any]:
    """The settings of a preset for a model on a data set."""
    names = [folder.name for folder in files("kuramotognn.config").joinpath("presets").iterdir()]
    if name not in names:
        raise ConfigError(f"unknown preset {name!r}{did_you_mean(name, names)}; known: {', '.join(names)}")
    found = _settings_file(f"presets/{name}", dataset, model)
    if found is None:
        known = ", ".join(presets_of(model).get(name, ())) or "no data set"
        raise ConfigError(f"preset {name} has no settings for {model} on {dataset}; for {model} it has {known}")
    return found


def presets_of(model: str) -> dict[str, list[str]]:
    """The presets of a model, each with its data sets."""
    found: dict[str, list[str]] = {}
    for folder in files("kuramotognn.config").joinpath("presets").iterdir():
        datasets = sorted(each.name for each in folder.iterdir() if each.joinpath(f"{model}.toml").is_file())
        if datasets:
            found[folder.name] = datasets
    return found


def _settings_file(folder: str, dataset: str, model: str) -> dict[str, Any] | None:
    place = files("kuramotognn.config").joinpath(*folder.split("/"), dataset_name(dataset))
    file = place.joinpath(f"{Path(find_model(model).name).name}.toml")
    return tomllib.loads(file.read_text(encoding="utf-8")) if file.is_file() else None


def excluded_by(key: str, value: object) -> tuple[str, ...]:
    """Settings that another one excludes, such as a step size a number of steps."""
    if key == "solver.steps":
        return ("solver.step_size",)
    if key == "solver.step_size":
        return ("solver.steps",)
    if key == "model.time":
        return ("try_times",)
    if key == "solver.method":
        return ("solver.steps", "solver.step_size") if value in ADAPTIVE else ("solver.rtol", "solver.atol")
    return ()


def flatten(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Settings under dotted names: ``model.time``."""
    for key, value in settings.items():
        if isinstance(value, Mapping):
            yield from flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def nest(flat: Mapping[str, Any]) -> dict[str, Any]:
    """The tree that :func:`flatten` came from."""
    nested: dict[str, Any] = {}
    for path, value in flat.items():
        *parents, key = path.split(".")
        level = nested
        for parent in parents:
            level = level.setdefault(parent, {})
            if not isinstance(level, dict):
                return nested  # A value where a table belongs: validation will say so.
        level[key] = value
    return nested


def _fields_at(path: list[str]) -> list[str]:
    level: Any = Config
    for part in path:
        annotation = level.model_fields[part].annotation
        level = next(each for each in getattr(annotation, "__args__", (annotation,)) if each is not type(None))
    if isinstance(level, type) and issubclass(level, BaseModel):
        return list(level.model_fields)
    return [each.name for each in fields(level)] if is_dataclass(level) else []


def _choices(context: Mapping[str, Any]) -> list[str]:
    return [choice.strip(" '") for choice in str(context["expected"]).replace(" or ", ",").split(",")]
