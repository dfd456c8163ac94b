"""The search space of each model, as plain data that the tuner reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from kuramotognn.models.discrete import DiscreteGNN
from kuramotognn.models.registry import ModelInfo


@dataclass(frozen=True)
class Uniform:
    """Any number from ``low`` to ``high``."""

    low: float
    high: float


@dataclass(frozen=True)
class LogUniform:
    """Any number from ``low`` to ``high``, uniform in its logarithm."""

    low: float
    high: float


@dataclass(frozen=True)
class Choice:
    """One of ``options``."""

    options: tuple[str | int | float | bool | tuple[float, ...] | None, ...]


Range: TypeAlias = Uniform | LogUniform | Choice
#: Dotted names of settings, as in a config file, and their ranges: ``{"model.time": Uniform(1.0, 16.0)}``.
SearchSpace: TypeAlias = Mapping[str, Range]
_Space: TypeAlias = dict[str, Range]

# Not searched, on evidence from results/ablation.json: learning-rate schedules, which did not help. Nor is select_time:
# a study with --model.time 64 must train at depth 64, not choose a shallower one.
_TRAINING: _Space = {
    "training.optimiser": Choice(("adam", "adamax", "rmsprop")),
    "training.learning_rate": LogUniform(0.0005, 0.1),
    "training.weight_decay": LogUniform(0.0001, 0.5),
    "training.clip_norm": Choice((None, 5.0)),
    "training.label_smoothing": Choice((0.0, 0.1)),
}
_CHANNELS = Choice((16, 32, 64, 128, 256))
_FLOW: _Space = _TRAINING | {
    "data.normalisation": Choice(("none", "row-sum")),
    "data.self_loops": Choice((False, True)),
    "model.hidden_channels": _CHANNELS,
    "model.time": LogUniform(0.5, 20.0),
    "model.encoder": Choice(("linear", "mlp")),
    "model.batch_norm": Choice((False, True)),
    "model.decoder_activation": Choice(("none", "relu")),
    "model.input_dropout": Uniform(0.1, 0.85),
    "model.dropout": Uniform(0.0, 0.85),
    "solver.step_size": Choice((0.25, 0.5, 1.0)),
}
_HEADS: _Space = {"model.heads": Choice((1, 2, 4, 8))}
#: Where the attention is taken once, at x(0): at every evaluation the unfused scores are too slow to search.
_ATTENTION: _Space = _HEADS | {
    "model.attention_score": Choice(("scaled-dot", "cosine", "pearson", "exp-kernel")),
    "model.attention_squash": Choice(("softmax", "squareplus")),
}
_OSCILLATORS: _Space = _FLOW | {
    "model.coupling": LogUniform(0.3, 4.0),
    "model.frequencies": Choice(("attached", "detached")),
    "model.phase_range": Choice((None, (0.0, 3.14159))),
}
_KURAMOTO: _Space = _OSCILLATORS | _ATTENTION
_SOURCE: _Space = {"model.source_gradient": Choice(("attached", "detached"))}
_GRAND: _Space = _FLOW | _ATTENTION | _SOURCE
_GRAPHCON: _Space = (
    _FLOW
    | _SOURCE
    | {
        "model.time": Choice((1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 20.0)),
        "model.adjacency": Choice(("symmetric", "attention")),
        "model.activation": Choice(("relu", "tanh", "identity")),
        "model.encoder_activation": Choice(("none", "relu")),
        "model.transform": Choice((False, True)),
        "model.source": Choice(("none", "added", "mixed")),
        "model.stiffness": Uniform(0.0, 1.5),
        "model.damping": Uniform(0.0, 1.5),
        "model.step_dropout": Choice((0.0, 0.2, 0.5)),
        "solver.method": Choice(("imex",)),
        "solver.step_size": Choice((0.5, 1.0)),
    }
)
_LAYERS: _Space = _TRAINING | {
    "data.normalisation": Choice(("none", "row-sum")),
    "model.hidden_channels": _CHANNELS,
    "model.num_layers": Choice((2, 3)),
    "model.input_dropout": Uniform(0.1, 0.9),
    "model.dropout": Uniform(0.0, 0.9),
    "model.residual": Choice((False, True)),
    "model.norm": Choice(("none", "batch", "layer")),
}
#: On heterophilic graphs neighbours help little: the authors search short times and weak couplings there, and train for
#: up to 1500 epochs.
_HETEROPHILIC: _Space = {"model.time": LogUniform(0.001, 4.0), "model.coupling": LogUniform(0.001, 1.0)}
_LONG_TRAINING: _Space = {"training.epochs": Choice((1500,)), "training.patience": Choice((100,))}
#: Couplings that sum to one over columns make long flows stiff; at short times they do no harm.
_COLUMNS: _Space = {"model.attention_normalise": Choice(("row", "column"))}
_HETEROPHILIC_PROTOCOLS = ("geom-gcn", "heterophilous")
RECIPE: SearchSpace = {
    "training.consistency": Choice((1.0, 2.0)),
    "training.consistency_temperature": Choice((0.3, 0.5, 0.7)),
}
"""What the recipe adds to the space of any model."""

_SPACES: Mapping[str, SearchSpace] = {
    "kuramotognn": _KURAMOTO,
    "kuramotognn-res": _KURAMOTO,
    "kuramotognn-second-order": _KURAMOTO
    | {"model.damping": Uniform(0.2, 4.0), "solver.method": Choice(("imex", "heun"))},
    "kuramotognn-tv": _OSCILLATORS | _HEADS,
    "kuramotognn-lag": _KURAMOTO | {"model.lag": Uniform(-1.0, 1.0)},
    "kuramotognn-delay": _KURAMOTO
    | {"model.delay": Choice((0.5, 1.0, 1.5, 2.0)), "solver.step_size": Choice((0.25, 0.5))},
    "kuramotognn-adaptive": _KURAMOTO | {"model.rate": Uniform(0.0, 1.0)},
    "kuramotognn-signed": _OSCILLATORS | _HEADS,
    "graphcon": _GRAPHCON,
    "graphcon-res": _GRAPHCON,
    "grand-l": _GRAND,
    "grand-l-no-x0": _FLOW | _ATTENTION,
    "grand-nl": _FLOW | _HEADS | _SOURCE,
    "grand++": _GRAND | {"model.source_dropout": Uniform(0.0, 0.8)},
    "gcn": _LAYERS,
    "gat": _LAYERS
    | {
        "model.heads": Choice((1, 2, 4, 8)),
        "model.attention_dropout": Uniform(0.2, 0.8),
    },
    "graphsage": _LAYERS,
    "gcnii": {name: where for name, where in _LAYERS.items() if name not in ("model.residual", "model.norm")}
    | {
        "training.affine_weight_decay": Choice((None, 0.0005, 0.005)),
        "model.num_layers": Choice((8, 16, 32, 64)),
        "model.alpha": Uniform(0.05, 0.5),
        "model.theta": Uniform(0.2, 1.5),
        "model.init": Choice(("glorot", "uniform")),
    },
}


def search_space(info: ModelInfo, settings: Mapping[str, object]) -> SearchSpace:
    """The search space of a model; for one of the user's own, the part of the usual space that it has settings for.

    Args:
        info: the model.
        settings: all settings by dotted names; the protocol decides on some ranges.
    """
    if info.name in _SPACES:
        space = dict(_SPACES[info.name])
    else:
        discrete = isinstance(info.make, type) and issubclass(info.make, DiscreteGNN)
        usual = _LAYERS if discrete or "model.time" not in settings else _KURAMOTO
        space = {name: where for name, where in usual.items() if name in settings}
    if settings.get("data.protocol") in _HETEROPHILIC_PROTOCOLS:
        # GraphCON counts layers, which stay whole numbers.
        lower = {name: where for name, where in _HETEROPHILIC.items() if isinstance(space.get(name), LogUniform)}
        space |= lower | _LONG_TRAINING | (_COLUMNS if "model.attention_score" in space else {})
    if settings.get("training.consistency"):
        space |= RECIPE
    return space
