"""What a model tells of itself: its settings, as a file or a flag spells them, and a row for the list of models."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from inspect import signature
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field
from torch import nn

from kuramotognn.models.space import SearchSpace
from kuramotognn.solve import Solver


class ModelSettings(BaseModel, ABC):
    """The settings of one model: its constructor's keyword arguments, with ``name`` as the tag that tells it apart.

    A model is added by a subclass with ``name: Literal["its-name"] = "its-name"`` and a :class:`ModelInfo` in the
    registry (:mod:`kuramotognn.models.registry`).

    Attributes:
        search_space: where a search looks for good settings, by dotted name.
        integrates: whether the model is a flow that a solver integrates.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    search_space: ClassVar[SearchSpace] = {}
    integrates: ClassVar[bool] = True

    name: str
    hidden_channels: int = Field(64, ge=1, description="Width of the hidden states.")

    @staticmethod
    @abstractmethod
    def constructor() -> Callable[..., nn.Module]:
        """What makes the model; called with ``in_channels, hidden_channels, out_channels`` and keywords."""

    @classmethod
    def fixed(cls) -> Mapping[str, Any]:
        """Arguments of the constructor that make this model what it is, and are therefore no settings."""
        return {}

    def build(self, in_channels: int, out_channels: int, solver: Solver) -> nn.Module:
        """The model these settings describe, freshly initialised."""
        keywords = {**self.model_dump(exclude={"name", "hidden_channels"}), **self.fixed()}
        if self.integrates:
            keywords["solver"] = solver
        return self.constructor()(in_channels, self.hidden_channels, out_channels, **keywords)


class FlowSettings(ModelSettings):
    """What all models share that flow from an encoder to a decoder."""

    time: float = Field(8.0, gt=0, description="Integration time T, the depth.")
    input_dropout: float = Field(0.5, ge=0, lt=1, description="Dropout on the features.")
    dropout: float = Field(0.5, ge=0, lt=1, description="Dropout on the final state.")


@dataclass(frozen=True)
class Setting:
    """One setting of a model, in words."""

    name: str
    default: str
    description: str


@dataclass(frozen=True)
class ModelInfo:
    """A model in the list of models.

    Attributes:
        name: what ``--model`` takes.
        settings: its settings.
        equation: what it computes, in one line of plain text.
        reference: the paper it is from.
        cost: arithmetic of one evaluation of the right-hand side, or of one layer; ``d`` channels, ``E`` edges.
        use: when to take it.
        fused: what the fused CPU kernels do for it.
    """

    name: str
    settings: type[ModelSettings]
    equation: str
    reference: str
    cost: str
    use: str
    fused: str

    def parameters(self) -> list[Setting]:
        """The model's settings."""
        return [
            Setting(name, "" if field.default is None else str(field.default), field.description or "")
            for name, field in self.settings.model_fields.items()
            if name != "name"
        ]

    def python(self) -> str:
        """The constructor, with what makes it this model."""
        constructor = self.settings.constructor()
        defaults = {name: each.default for name, each in signature(constructor).parameters.items()}
        own = [f", {name}={value!r}" for name, value in self.settings.fixed().items() if value != defaults[name]]
        return f"{constructor.__name__}(in_channels, hidden_channels, out_channels{''.join(own)})"

    def facts(self) -> dict[str, Any]:
        """Everything there is to tell, as JSON can hold it."""
        own = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "settings"}
        return own | {"python": self.python(), "settings": [asdict(setting) for setting in self.parameters()]}
