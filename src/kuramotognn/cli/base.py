"""The application that commands register with, and how every command speaks."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from cyclopts import App, Parameter
from pydantic import Field, create_model

from kuramotognn._version import __version__
from kuramotognn.experiments.config import Config, SolverConfig, chosen_model, read_toml
from kuramotognn.models.registry import DEFAULT_MODEL, MODELS, find_model

app = App(
    name="kuramotognn",
    version=__version__,
    help="Graph neural networks as coupled oscillators: train, evaluate and predict.",
    help_format="plaintext",
    default_parameter=Parameter(negative_iterable=()),
    suppress_keyboard_interrupt=False,  # main() says how to go on.
)


@Parameter(name="*")
@dataclass(frozen=True)
class Output:
    """How a command speaks."""

    quiet: Annotated[bool, Parameter(negative="", help="Print one line with the result, and errors.")] = False
    json: Annotated[bool, Parameter(negative="", help="Print the result as JSON and nothing else.")] = False

    @property
    def talkative(self) -> bool:
        """Whether progress and explanations are wanted."""
        return not (self.quiet or self.json)


PLAIN = Output()


class CheckError(Exception):
    """A command that did what it was asked and found what should not be: exit code 1."""


Command = TypeVar("Command", bound=Callable[..., Any])
_CONFIGURABLE: list[Callable[..., Any]] = []


def configurable(command: Command) -> Command:
    """Mark a command whose parameter ``settings: Config | None`` takes the flags of the model that the user names."""
    _CONFIGURABLE.append(command)
    _offer(command, DEFAULT_MODEL)
    return command


def prepare(tokens: Sequence[str]) -> tuple[str, list[str]]:
    """The model a command line is about, and its tokens; a configurable command is given that model's flags."""
    for command in _CONFIGURABLE:
        if [command.__name__] == list(tokens[:1]):
            _offer(command, model := model_in(tokens))
            # A flag can be a value or a table of flags, not both: --model is short for --model.name.
            return model, [re.sub(r"^--model(?=$|=)", "--model.name", token) for token in tokens]
    return DEFAULT_MODEL, list(tokens)


def _offer(command: Callable[..., Any], model: str) -> None:
    # Each model has settings of its own, and cyclopts cannot choose between members of a union of pydantic classes.
    command.__annotations__["settings"] = Annotated[flags_class(model) | None, Parameter(name="*")]


def model_in(tokens: Sequence[str]) -> str:
    """The model that --model names, else the file of --config, else the default."""
    named = _value_of("--model", tokens) or _value_of("--model.name", tokens)
    file = _value_of("--config", tokens)
    layers = [{"model": {"name": named}}, read_toml(Path(file)) if file else {}]
    return find_model(chosen_model(*layers)).name


@cache
def flags_class(model: str) -> type[Config]:
    """The configuration with one model's settings in place of any model's, as a command line spells it."""
    settings = find_model(model).settings
    name: Any = (Literal[tuple(MODELS)], Field(model, description="Which model; --model NAME is short for it."))
    named = create_model(settings.__name__, __base__=settings, name=name)
    fields: dict[str, Any] = {"model": (named, Field(named(), description=f"Settings of {model}."))}
    if not settings.integrates:
        fields["solver"] = (Annotated[SolverConfig, Parameter(parse=False)], SolverConfig())
    flags: type[Config] = create_model("Config", __base__=Config, **fields)
    return flags


def _value_of(flag: str, tokens: Sequence[str]) -> str | None:
    joined = [token.removeprefix(f"{flag}=") for token in tokens if token.startswith(f"{flag}=")]
    apart = [value for token, value in pairwise(tokens) if token == flag]
    return next(iter([*apart, *joined]), None)
