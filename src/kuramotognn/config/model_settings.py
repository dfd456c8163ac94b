"""Settings of a model: its constructor's parameters, with their types, defaults and descriptions."""

from __future__ import annotations

import inspect
import json
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, create_model
from torch import nn

from kuramotognn.docstrings import argument_texts
from kuramotognn.models.lookup import find_model
from kuramotognn.models.registry import ModelInfo
from kuramotognn.solver import Solver

REQUIRED = inspect.Parameter.empty
SIZES = {"hidden_channels": 64, "num_layers": 2}
"""Values of settings for which constructors have no default."""
_PLAIN = (int, float, bool, str, type(None))


class ModelSettings(BaseModel):
    """The settings of one model; ``name`` says which. Subclasses are made by :func:`settings_class`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str

    def build(self, in_channels: int, out_channels: int, solver: Solver) -> nn.Module:
        """The model, freshly initialised."""
        info = find_model(self.name)
        arguments = {**info.fixed, **self.model_dump(exclude={"name"})}
        if info.equation is not None:
            own = {name: arguments.pop(name) for name in parameters(info.equation) if name in arguments}
            if "channels" in inspect.signature(info.equation).parameters:
                own["channels"] = self.hidden_channels  # type: ignore[attr-defined]
            arguments["equation"] = info.equation(**own)
        if takes_solver(info):
            arguments["solver"] = solver
        return info.make(in_channels=in_channels, out_channels=out_channels, **arguments)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as plain data: the class is made again where it is loaded."""
        return model_settings, (self.model_dump(),)


@dataclass(frozen=True)
class Parameter:
    """A parameter of a constructor that a file or a flag can set."""

    annotation: Any
    default: Any
    description: str


def model_settings(values: Mapping[str, Any]) -> ModelSettings:
    """Validate the settings of the model that ``values`` names."""
    return settings_class(values["name"]).model_validate_json(json.dumps(values), strict=True)


@cache
def settings_class(name: str) -> type[ModelSettings]:
    """The class of a model's settings."""
    found = settings_of(find_model(name))
    for key in found:
        if key.startswith("_") or hasattr(ModelSettings, key) or key in ModelSettings.model_fields:
            raise ValueError(
                f"parameter {key!r} of {name} cannot be a setting, which may not have this name; rename it"
            )
    fields: dict[str, Any] = {
        key: (each.annotation, Field(... if each.default is REQUIRED else each.default, description=each.description))
        for key, each in found.items()
    }
    fields["name"] = (Literal[name], Field(name, description="The model."))
    return create_model("ModelSettings", __base__=ModelSettings, **fields)


def settings_of(info: ModelInfo) -> dict[str, Parameter]:
    """The settings of a model: parameters of its constructor and of its equation, without those that are fixed."""
    found = parameters(info.make) | (parameters(info.equation) if info.equation else {})
    left_out = {"in_channels", "out_channels", "channels", "solver", *info.fixed}
    sizes = SIZES | dict(info.defaults)
    return {
        name: replace(each, default=sizes[name]) if each.default is REQUIRED and name in sizes else each
        for name, each in found.items()
        if name not in left_out
    }


def takes_solver(info: ModelInfo) -> bool:
    """Whether the model is a flow that a solver integrates."""
    return any(name == "solver" for _, name, _ in constructor_parameters(info.make))


def default_solver(info: ModelInfo) -> Solver:
    """The solver of the model's constructor."""
    defaults = [each.default for _, name, each in constructor_parameters(info.make) if name == "solver"]
    return defaults[0] if defaults and isinstance(defaults[0], Solver) else Solver()


def parameters(make: Callable[..., Any]) -> dict[str, Parameter]:
    """The parameters of a constructor that plain values can set, those it passes on to its base classes included.

    Raises:
        ValueError: a parameter has no type.
    """
    found: dict[str, Parameter] = {}
    texts: dict[str, str] = {}
    for each_class in reversed(make.__mro__) if inspect.isclass(make) else (make,):
        texts |= argument_texts(each_class)
    for owner, name, each in constructor_parameters(make):
        if name in found:
            continue
        hints = _hints(owner, make)
        if name not in hints:
            called = getattr(make, "__name__", str(make))
            raise ValueError(f"parameter {name!r} of {called} has no type; write it as {name}: float = 1.0")
        annotation = plain_type(hints[name])
        if annotation is not None:
            found[name] = Parameter(annotation, each.default, texts.get(name, ""))
        elif each.default is REQUIRED:
            raise ValueError(f"parameter {name!r} of {getattr(make, '__name__', make)} cannot be set by a plain value")
    return found


def constructor_parameters(make: Callable[..., Any]) -> Iterator[tuple[Any, str, inspect.Parameter]]:
    """Parameters and the class that declares them; ``*args`` and ``**options`` are those of the next base class."""
    owners = [cls for cls in make.__mro__ if "__init__" in vars(cls)] if inspect.isclass(make) else [make]
    positional = True
    for owner in owners:
        declared: Any = owner.__init__ if inspect.isclass(owner) else owner
        signature = inspect.signature(declared)
        listed = list(signature.parameters.values())[1 if inspect.isclass(owner) else 0 :]
        for each in listed:
            if each.kind is each.KEYWORD_ONLY or (positional and each.kind is each.POSITIONAL_OR_KEYWORD):
                yield owner, each.name, each
        kinds = {each.kind for each in listed}
        positional = inspect.Parameter.VAR_POSITIONAL in kinds
        if inspect.Parameter.VAR_KEYWORD not in kinds:
            return


@cache
def _hints(owner: Any, make: Any) -> dict[str, Any]:
    try:
        return get_type_hints(owner.__init__ if inspect.isclass(owner) else owner, include_extras=True)
    except Exception as error:  # Annotations may be any expression.
        raise ValueError(f"the types of {getattr(make, '__name__', make)} cannot be read: {error}") from error


def plain_type(annotation: Any) -> Any | None:
    """The part of a type that TOML and flags can express: numbers, text, choices and tuples of them; None if empty."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return annotation if plain_type(get_args(annotation)[0]) is not None else None
    if origin is Literal or annotation in _PLAIN:
        return annotation
    if origin is tuple:
        return annotation if all(each is ... or plain_type(each) is not None for each in get_args(annotation)) else None
    if origin in (Union, types.UnionType):
        kept = [each for each in get_args(annotation) if plain_type(each) is not None]
        return Union[tuple(kept)] if any(each is not type(None) for each in kept) else None  # noqa: UP007
    return None
