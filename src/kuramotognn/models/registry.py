"""Every model by name, as ``models.toml`` has it: its constructor, the arguments that make it this model, and facts."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from torch import nn

from kuramotognn import fields
from kuramotognn.fields import Equation
from kuramotognn.models.discrete import GAT, GCN, GCNII, GraphSAGE
from kuramotognn.models.grand import GRAND
from kuramotognn.models.graphcon import GraphCON
from kuramotognn.models.kuramotognn import KuramotoGNN

DEFAULT_MODEL = "kuramotognn"


@dataclass(frozen=True)
class ModelInfo:
    """A model in the list of models.

    Attributes:
        name: what ``--model`` takes.
        make: its constructor, called with ``in_channels``, ``out_channels`` and its settings.
        fixed: arguments of the constructor that make it this model, and are no settings.
        equation: the equation of a Kuramoto model; its parameters are settings.
        title: its name in tables; ``name`` unless given.
        formula: what it computes, in one line of plain text.
        reference: the paper it is from.
        cost: arithmetic of one evaluation of the right-hand side, or of one layer.
        use: when to take it.
        fused: what the fused CPU kernels do for it.
        defaults: values of settings for which the constructor has no default, where they are not the usual ones.
    """

    name: str
    make: Callable[..., nn.Module]
    fixed: Mapping[str, Any] = field(default_factory=dict)
    equation: type[Equation] | None = None
    title: str = ""
    formula: str = ""
    reference: str = ""
    cost: str = ""
    use: str = ""
    fused: str = ""
    defaults: Mapping[str, Any] = field(default_factory=dict)


def _entry(name: str, facts: dict[str, Any]) -> ModelInfo:
    makers = {each.__name__: each for each in (KuramotoGNN, GRAND, GraphCON, GCN, GAT, GraphSAGE, GCNII)}
    equation = getattr(fields, facts["equation"]) if "equation" in facts else None
    return ModelInfo(name, **facts | {"make": makers[facts["make"]], "equation": equation})


_TABLES = tomllib.loads(files("kuramotognn.models").joinpath("models.toml").read_text(encoding="utf-8"))
#: The models, in the order in which they are listed.
MODELS: Mapping[str, ModelInfo] = MappingProxyType({name: _entry(name, facts) for name, facts in _TABLES.items()})
