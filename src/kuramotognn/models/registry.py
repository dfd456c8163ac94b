"""Every model by name: what ``--model`` takes and what the documentation lists."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from kuramotognn.checks import did_you_mean
from kuramotognn.models import discrete, grand, graphcon, kuramoto, oscillators
from kuramotognn.models.settings import ModelInfo

DEFAULT_MODEL = "kuramotognn"

#: The models, in the order in which they are listed; each family describes its own.
MODELS: Mapping[str, ModelInfo] = MappingProxyType(
    {info.name: info for family in (kuramoto, oscillators, graphcon, grand, discrete) for info in family.MODELS}
)


def find_model(name: str) -> ModelInfo:
    """The model of this name; an unknown one is refused with the nearest known."""
    if name not in MODELS:
        raise ValueError(unknown_model(name))
    return MODELS[name]


def unknown_model(name: str) -> str:
    """What to say of a name that is not in the registry."""
    return f"unknown model {name!r}{did_you_mean(name, MODELS)}; known: {', '.join(MODELS)}"
