"""Every model by name: its constructor, the arguments that make it this model, and facts (``models.toml``)."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from torch import nn

from kuramotognn.fields import (
    AdaptiveKuramoto,
    DelayedKuramoto,
    Equation,
    Kuramoto,
    ResidualKuramoto,
    Sakaguchi,
    SecondOrderKuramoto,
)
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


def _grand(source: str, **fixed: Any) -> dict[str, Any]:
    dropout = {} if source == "labelled" else {"source_dropout": 0.0}
    return {"source": source, "time_varying": False, **dropout, **fixed}


_MODELS: dict[str, tuple[Callable[..., nn.Module], dict[str, Any], type[Equation] | None]] = {
    "kuramotognn": (KuramotoGNN, {}, Kuramoto),
    "kuramotognn-res": (KuramotoGNN, {}, ResidualKuramoto),
    "kuramotognn-second-order": (KuramotoGNN, {}, SecondOrderKuramoto),
    "kuramotognn-tv": (KuramotoGNN, {"adjacency": "attention", "time_varying": True}, None),
    "kuramotognn-lag": (KuramotoGNN, {}, Sakaguchi),
    "kuramotognn-delay": (KuramotoGNN, {}, DelayedKuramoto),
    "kuramotognn-adaptive": (KuramotoGNN, {"time_varying": False}, AdaptiveKuramoto),
    "kuramotognn-signed": (KuramotoGNN, {"adjacency": "signed-attention"}, None),
    "graphcon": (GraphCON, {}, None),
    "graphcon-res": (GraphCON, {"residual": "linear"}, None),
    "grand-l": (GRAND, _grand("initial"), None),
    "grand-l-no-x0": (GRAND, _grand("none"), None),
    "grand-nl": (GRAND, _grand("initial", time_varying=True, adjacency="attention"), None),
    "grand++": (GRAND, _grand("labelled"), None),
    "gcn": (GCN, {}, None),
    "gat": (GAT, {}, None),
    "graphsage": (GraphSAGE, {}, None),
    "gcnii": (GCNII, {}, None),
}
_FACTS = tomllib.loads(files("kuramotognn.models").joinpath("models.toml").read_text(encoding="utf-8"))

#: The models, in the order in which they are listed.
MODELS: Mapping[str, ModelInfo] = MappingProxyType(
    {name: ModelInfo(name, *entry, **_FACTS[name]) for name, entry in _MODELS.items()}
)
