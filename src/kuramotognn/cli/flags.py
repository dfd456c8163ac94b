"""Flags of settings: a flag for each setting, and a dict of those that were given."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, TypedDict, get_args, get_origin, get_type_hints

from cyclopts import Group, Parameter, Token

from kuramotognn.data.graph_files import GraphFiles

if TYPE_CHECKING:
    from pydantic import BaseModel

SHORT = {
    "model.name": "--model",
    "data.directed": "--directed",
    "training.metric": "--metric",
    "training.batch": "--batch",
    "training.parts": "--parts",
    "training.parts_per_batch": "--parts-per-batch",
}
"""Flags that leave out the name of the table."""
OWN_GRAPH = Group("Your own graph", sort_key=4)


def settings_flags(model: str) -> Any:
    """The type of a parameter that takes a flag for each setting of a run with ``model``: a dict by dotted names."""
    from kuramotognn.config.model_settings import settings_class, takes_solver
    from kuramotognn.config.tree import Config, DataConfig
    from kuramotognn.models.lookup import find_model
    from kuramotognn.solver import Solver
    from kuramotognn.training_config import TrainingConfig

    def group(title: str, order: int) -> Group:
        return Group(title, sort_key=order)

    flags = {
        **_of_model(Config, "", group("Run", 1), skip=("data", "model", "solver", "training")),
        **_of_model(settings_class(model), "model.", group(f"Model: {model}", 2)),
        **_of_model(DataConfig, "data.", group("Data", 3), skip=("files",)),
        **graph_file_flags("data.files."),
        **_of_model(TrainingConfig, "training.", group("Training", 6)),
    }
    if takes_solver(find_model(model)):
        flags |= _of_dataclass(Solver, "solver.", group("Solver", 5))
    return Annotated[TypedDict("Settings", flags, total=False), Parameter(name="*")]  # type: ignore[operator]


def file_flags() -> Any:
    """The type of a parameter that takes a flag for each attribute of :class:`GraphFiles`."""
    return Annotated[TypedDict("Files", graph_file_flags(""), total=False), Parameter(name="*")]  # type: ignore[operator]


def graph_file_flags(prefix: str) -> dict[str, Any]:
    """Flags without a prefix, such as --nodes, by dotted names with ``prefix``."""
    return _of_dataclass(GraphFiles, prefix, OWN_GRAPH, short=True)


def _of_model(model: type[BaseModel], prefix: str, group: Group, skip: tuple[str, ...] = ()) -> dict[str, Any]:
    found = {}
    for name, field in model.model_fields.items():
        if name not in skip:
            flag = SHORT.get(prefix + name, _flag(prefix + name))
            kind = str if prefix + name == "model.name" else field.annotation
            found[prefix + name] = _parameter(flag, kind, field.default, field.description or "", group)
    return found


def _of_dataclass(cls: type, prefix: str, group: Group, *, short: bool = False) -> dict[str, Any]:
    from kuramotognn.docstrings import argument_texts

    texts, hints = argument_texts(cls), get_type_hints(cls)
    return {
        prefix + field.name: _parameter(
            _flag(field.name if short else prefix + field.name),
            hints[field.name],
            field.default,
            texts[field.name],
            group,
        )
        for field in dataclasses.fields(cls)
    }


def _flag(dotted: str) -> str:
    return f"--{dotted.replace('_', '-')}"


def _parameter(flag: str, kind: Any, default: Any, text: str, group: Group) -> Any:
    plain = default is None or isinstance(default, str | int | float | tuple)
    if plain and default not in (None, (), "") and "(default" not in text:
        text = f"{text} [default: {default}]"
    several = any(get_args(each)[-1:] == (...,) for each in _members(kind))
    whole = {int: _whole, int | None: _whole_or_none}.get(kind)
    return Annotated[kind, Parameter(name=flag, help=text, group=group, consume_multiple=several, converter=whole)]


def _whole(_: Any, tokens: Sequence[Token]) -> int:
    """A whole number as it is written; cyclopts alone would round 2.5 to 2."""
    value = tokens[0].value
    if not re.fullmatch(r"[+-]?[0-9]{1,300}(\.0*)?", value):
        raise ValueError(f"must be a whole number, got {value}")
    return int(value.partition(".")[0])


def _whole_or_none(_: Any, tokens: Sequence[Token]) -> int | None:
    return None if tokens[0].value.lower() in ("none", "null") else _whole(int, tokens)


def _members(kind: Any) -> Iterator[Any]:
    yield kind
    if get_origin(kind) is not tuple:
        yield from get_args(kind)
