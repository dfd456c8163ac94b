"""Settings: one strict, typed tree that a file, a flag and Python spell the same way."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, Union

import tomli_w
import torch
from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, ValidationError, field_validator, model_validator

from kuramotognn.checks import did_you_mean
from kuramotognn.data import OWN_GRAPH, dataset_name
from kuramotognn.experiments.data_config import ONE_SPLIT, DataConfig, names_files
from kuramotognn.kernels import Backend
from kuramotognn.models.kuramoto import KuramotoSettings
from kuramotognn.models.registry import DEFAULT_MODEL, MODELS, find_model, unknown_model
from kuramotognn.models.settings import ModelSettings
from kuramotognn.solve import ADAPTIVE, Solver
from kuramotognn.training import TrainingConfig


class Strict(BaseModel):
    """Unknown keys are errors, values are not changed after validation."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class SolverConfig(Strict):
    """How the flow is integrated: see :class:`kuramotognn.Solver`."""

    method: str = Field(
        "euler",
        description="Fixed steps: euler, midpoint, heun, rk4; imex for second-order fields. "
        "Adaptive: dopri5, dopri8, bosh3, fehlberg2, adaptive_heun.",
    )
    step_size: float | None = Field(None, gt=0, description="Largest step of a fixed-step method (default 0.5).")
    steps: int | None = Field(None, ge=1, description="Number of steps, instead of a step size.")
    rtol: float | None = Field(None, gt=0, description="Relative tolerance of an adaptive method (default 1e-4).")
    atol: float | None = Field(None, gt=0, description="Absolute tolerance of an adaptive method (default 1e-4).")
    adjoint: bool = Field(False, description="Gradients by the adjoint equation (adaptive methods).")
    max_evaluations: int = Field(10_000, ge=1, description="Stop when one integration needs more evaluations.")
    memory: Literal["auto"] | Annotated[int, Field(ge=1)] = Field(
        "auto", description="Bytes a fused integration may keep for its gradient (auto: 2 GiB)."
    )

    def build(self) -> Solver:
        """The solver these settings describe."""
        settings = self.model_dump()
        if self.method not in ADAPTIVE and self.steps is None and self.step_size is None:
            settings["step_size"] = 0.5
        return Solver(**settings)


def named_model(settings: object) -> str:
    """Which model some settings are of; the default one when they do not say."""
    name = settings.get("name") if isinstance(settings, Mapping) else getattr(settings, "name", None)
    return DEFAULT_MODEL if name is None else str(name)


if TYPE_CHECKING:
    AnyModel: TypeAlias = ModelSettings
else:
    # The settings of any model in the registry, told apart by their name.
    AnyModel = Annotated[
        Union[tuple(Annotated[info.settings, Tag(name)] for name, info in MODELS.items())],  # noqa: UP007
        Discriminator(named_model),
    ]


class Config(Strict):
    """Everything that decides a run's numbers."""

    dataset: str = Field("cora", description="Name of the data set; see `kuramotognn datasets`.")
    splits: int = Field(5, ge=1, description="How many splits to train on (1 where a protocol has no more).")
    first_split: int = Field(0, ge=0, description="Number of the first split; tuning uses 1000 and up.")
    seed: int = Field(0, ge=0, description="Seed of initialisation and dropout.")
    device: str = Field("cpu", description="Where to compute: cpu, cuda, cuda:1, …")
    backend: Backend = Field(
        "auto", description="Kernels: fused on CPUs, torch anywhere, auto the faster that can run."
    )
    data: DataConfig = Field(DataConfig(), description="What is read and how it is split.")
    model: AnyModel = Field(KuramotoSettings(), description="The model.")
    solver: SolverConfig = Field(SolverConfig(), description="How the flow is integrated.")
    training: TrainingConfig = Field(TrainingConfig(), description="How the model is trained.")

    @field_validator("device")
    @classmethod
    def _usable_device(cls, name: str) -> str:
        try:
            torch.empty(0, device=name)
        except (RuntimeError, AssertionError) as error:
            reason = str(error).splitlines()[0].split(", ipu")[0]
            raise ValueError(f"device {name!r} cannot be used here: {reason}") from error
        return name

    @field_validator("dataset")
    @classmethod
    def _known_dataset(cls, name: str) -> str:
        return dataset_name(name)

    @model_validator(mode="after")
    def _data_of_the_dataset(self) -> Config:
        if self.data.files.nodes is not None and "dataset" not in self.model_fields_set:
            self.__dict__["dataset"] = OWN_GRAPH
        self.__dict__["data"] = self.data.for_dataset(self.dataset)
        if "splits" not in self.model_fields_set and self.data.protocol in ONE_SPLIT:
            self.__dict__["splits"] = 1
        return self

    def to_toml(self) -> str:
        """These settings as a file that :func:`read_toml` reads back."""
        return tomli_w.dumps(self.model_dump(mode="json", exclude_none=True))


class ConfigError(ValueError):
    """Settings that cannot be used; the message names the setting, its value and the remedy."""


@dataclass(frozen=True)
class Resolved:
    """Settings, and where each came from: ``flag``, ``file``, ``recommended`` or ``default``."""

    config: Config
    sources: Mapping[str, str]


def resolve(flags: Mapping[str, Any], file: Mapping[str, Any] | None = None) -> Resolved:
    """Merge settings: flag > file > what is recommended for the model on the data set > default.

    When a flag names another model than the file, the file's table ``[model]`` is not for it and is left out. A file
    that says ``recommended = false`` is whole: what it leaves out is the default.
    """
    file = dict(file or {})
    dataset = OWN_GRAPH if names_files(flags, file) else str(flags.get("dataset", file.get("dataset", "cora")))
    model = chosen_model(flags, file)
    if model != chosen_model(file, flags):
        file.pop("model")
    start = recommended(dataset, model) if _switch(file, "recommended", True) else {}
    layers = [("recommended", start), ("file", file), ("flag", flags)]
    merged: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for source, layer in layers:
        for key, value in flatten(layer):
            for rival in replaced_by(key, value):
                merged.pop(rival, None)
                sources.pop(rival, None)
            merged[key], sources[key] = value, source
    config = parse(nest(merged))
    everything = {key: sources.get(key, "default") for key, _ in flatten(config.model_dump())}
    return Resolved(config, everything)


def chosen_model(*layers: Mapping[str, Any]) -> str:
    """The model that the first layer to name one chooses."""
    tables = [layer["model"] for layer in layers if isinstance(layer.get("model"), Mapping)]
    return next((str(table["name"]) for table in tables if table.get("name") is not None), DEFAULT_MODEL)


def parse(settings: Mapping[str, Any]) -> Config:
    """Validate settings, or say in one sentence what is wrong with the first wrong one."""
    try:
        return Config.model_validate(settings, strict=True)
    except ValidationError as error:
        raise ConfigError(explain(error)) from error


def explain(error: ValidationError) -> str:
    """The first problem that pydantic found, as one sentence with the setting's name and a remedy."""
    problem = error.errors(include_url=False)[0]
    path = [str(part) for part in problem["loc"]]
    # Below "model" pydantic says which member of the union it looked at; the user does not write that.
    model = path.pop(1) if path[:1] == ["model"] and path[1:2] and path[1] in MODELS else DEFAULT_MODEL
    setting, value = ".".join(path), problem["input"]
    if problem["type"] == "union_tag_invalid":
        return unknown_model(named_model(value))
    if problem["type"] == "extra_forbidden":
        if path[:-1] == ["model"]:
            return no_such_setting(model, setting)
        known = [".".join([*path[:-1], name]) for name in _fields_at(path[:-1])]
        return f"unknown setting {setting!r}{did_you_mean(setting, known)}; known here: {', '.join(known)}"
    context = problem.get("ctx", {})
    if problem["type"] == "greater_than" and context.get("gt") == 0:
        return f"{setting} must be positive, got {value}"
    if problem["type"] in ("model_type", "model_attributes_type"):
        return f"{setting} must be a table of settings ([{setting}] in the file), got {value!r}"
    if problem["type"] == "value_error":
        return str(context["error"])
    message = problem["msg"].replace("Input should be", "must be")
    near = did_you_mean(str(value), _choices(context)) if "expected" in context else ""
    return f"{setting} {message}, got {value!r}{near}"


def no_such_setting(model: str, setting: str) -> str:
    """What to say of a setting that the model lacks."""
    known = list(MODELS[model].settings.model_fields)
    near = did_you_mean(setting.removeprefix("model."), known)
    return f"{model} has no setting {setting}{near}; it has {', '.join(known)}"


def read_toml(path: Path) -> dict[str, Any]:
    """Settings from a TOML file."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ConfigError(f"config file {str(path)!r} does not exist") from error
    except IsADirectoryError as error:
        raise ConfigError(f"config file {str(path)!r} is a folder; name a TOML file in it") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"config file {str(path)!r} is not TOML: {error}") from error


def recommended(dataset: str, model: str) -> dict[str, Any]:
    """The settings that come with a model for a data set, found on validation nodes (drawn splits: 1000 and up)."""
    folder = files("kuramotognn.experiments").joinpath("recommended", dataset_name(dataset))
    file = folder.joinpath(f"{find_model(model).name}.toml")
    return tomllib.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


def _switch(settings: dict[str, Any], name: str, default: bool) -> bool:
    """Take an on-off switch that is no setting out of a file's content."""
    value = settings.pop(name, default)
    if not isinstance(value, bool):
        raise ConfigError(f"{name} must be true or false, got {value!r}")
    return value


def replaced_by(key: str, value: object) -> tuple[str, ...]:
    """Settings of lower precedence that a setting rules out: a step size and a number of steps exclude each other."""
    if key == "solver.steps":
        return ("solver.step_size",)
    if key == "solver.step_size":
        return ("solver.steps",)
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
    model: type[BaseModel] = Config
    for part in path:
        annotation = model.model_fields[part].annotation
        assert isinstance(annotation, type)
        assert issubclass(annotation, BaseModel)
        model = annotation
    return list(model.model_fields)


def _choices(context: Mapping[str, Any]) -> list[str]:
    return [choice.strip(" '") for choice in str(context["expected"]).replace(" or ", ",").split(",")]
