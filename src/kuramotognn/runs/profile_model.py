"""Over-smoothing profile of any PyG model, given the name of its class."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from kuramotognn.config.resolve import resolve
from kuramotognn.diagnostics import Profile, oversmoothing_profile
from kuramotognn.diagnostics.profile import PAIRS
from kuramotognn.models.lookup import python_object, reason
from kuramotognn.runs.task import Task
from kuramotognn.train_result import TrainResult
from kuramotognn.training import fit
from kuramotognn.training_config import TrainingConfig

ALIASES: dict[str, tuple[str, ...]] = {
    "in_channels": ("in_channels", "num_features", "in_features", "num_node_features", "in_dim", "input_dim", "nfeat"),
    "hidden_channels": ("hidden_channels", "hidden_features", "hidden_dim", "hidden", "nhid"),
    "out_channels": ("out_channels", "num_classes", "out_features", "out_dim", "output_dim", "nclass"),
    "num_layers": ("num_layers", "n_layers", "layers", "depth", "nlayers"),
}
"""What constructors call the sizes of a model."""


@dataclass(frozen=True)
class Maker:
    """A model to be made and measured.

    Attributes:
        target: a dotted path, ``FILE.py:NAME`` or ``FILE.py``; a class, a function that returns a model, or a model.
        hidden_channels: width, where the constructor takes one.
        num_layers: depth, where the constructor takes one.
        arguments: further arguments of the constructor.
        seed: of the initial weights.
    """

    target: str
    hidden_channels: int = 64
    num_layers: int = 32
    arguments: Mapping[str, Any] | None = None
    seed: int = 0

    def make(self, in_channels: int, out_channels: int) -> tuple[str, nn.Module]:
        """The model and its name."""
        found = python_object(self.target)
        name = getattr(found, "__name__", type(found).__name__)
        if isinstance(found, nn.Module):
            return type(found).__name__, found
        if not callable(found):
            raise ValueError(f"{self.target} is no model: it is {type(found).__name__} and cannot be called")
        sizes = {
            "in_channels": in_channels,
            "hidden_channels": self.hidden_channels,
            "out_channels": out_channels,
            "num_layers": self.num_layers,
        }
        given = _call_arguments(found, name, sizes, dict(self.arguments or {}))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            try:
                model = found(**given)
            except Exception as error:  # The code is not ours.
                shown = ", ".join(f"{key}={value!r}" for key, value in given.items())
                raise ValueError(f"{name}({shown}) cannot be made: {reason(error)}") from error
        if not isinstance(model, nn.Module):
            raise ValueError(f"{name} gives {type(model).__name__}, which is no torch module")
        return name, model


class TakesData(nn.Module):
    """A model whose ``forward`` takes PyG's ``Data``, called with features and edges."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor, edge_index: Tensor) -> Any:
        """What the model returns."""
        from torch_geometric.data import Data  # Importing it takes seconds.

        return self.inner(Data(x=x, edge_index=edge_index))


def profile_model(
    maker: Maker,
    dataset: str = "cora",
    *,
    epochs: int = 0,
    measures: Sequence[str] | None = None,
    pairs: int | None = PAIRS,
) -> tuple[Profile, TrainResult | None]:
    """Make a model for a data set, train it on split 0 for some epochs if asked, and measure it over its depth.

    Args:
        maker: the model.
        dataset: name of a data set, with its default protocol.
        epochs: of training; with 0 the initial weights are measured.
        measures: as in :func:`~kuramotognn.oversmoothing_profile`.
        pairs: as there.

    Returns:
        The profile, and what training found.
    """
    if epochs < 0:
        raise ValueError(f"epochs must be at least 0, got {epochs}")
    settings = {"dataset": dataset, "splits": 1, "seed": maker.seed}
    task = Task.from_config(resolve(settings, {"recommended": False}).config).for_split(0)
    x = task.x if isinstance(task.x, Tensor) else task.x.to_dense()
    name, made = maker.make(x.shape[1], task.dataset.num_classes)
    model = TakesData(made) if _takes_data(made) else made
    data = SimpleNamespace(x=x, edge_index=task.graph.edge_index, y=task.y)
    trained = None
    try:
        if epochs:
            how = TrainingConfig(epochs=epochs, patience=epochs)
            trained = fit(model, x, data.edge_index, task.y, task.split(0), config=how, seed=maker.seed)
        return oversmoothing_profile(model, data, measures=measures, pairs=pairs, name=name), trained
    except ValueError:
        raise
    except Exception as error:  # The code is not ours.
        raise ValueError(
            f"{name} failed on {dataset}: {reason(error)}; it is called as model(x, edge_index), or as model(data) "
            "where forward has one argument"
        ) from error


def parse_arguments(words: Sequence[str]) -> dict[str, Any]:
    """Arguments written as ``NAME=VALUE``; a value that is no Python literal is text."""
    found = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name.isidentifier():
            raise ValueError(f"an argument is written NAME=VALUE, such as heads=4, got {word!r}")
        try:
            found[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            found[name] = value
    return found


def _call_arguments(make: Any, name: str, sizes: Mapping[str, int], given: dict[str, Any]) -> dict[str, Any]:
    """Arguments of a constructor: sizes by the names that it has for them, and what was given."""
    parameters = inspect.signature(make).parameters.values()
    takes_any = any(each.kind is each.VAR_KEYWORD for each in parameters)
    named = [each for each in parameters if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)]
    unknown = [key for key in given if key not in {each.name for each in named}]
    if unknown and not takes_any:
        raise ValueError(f"{name} has no argument {unknown[0]!r}; it has {', '.join(each.name for each in named)}")
    called = {alias: sizes[size] for size, aliases in ALIASES.items() for alias in aliases}
    chosen = {each.name: called[each.name] for each in named if each.name in called} | given
    missing = [each.name for each in named if each.default is each.empty and each.name not in chosen]
    if missing:
        raise ValueError(f"{name} needs an argument {missing[0]!r}; give it with --arguments {missing[0]}=VALUE")
    return chosen


def _takes_data(model: nn.Module) -> bool:
    """Whether ``forward`` has one argument without a default, which is then PyG's ``Data``."""
    parameters = inspect.signature(model.forward).parameters.values()
    places = [each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    required = [each for each in places if each.default is each.empty]
    return len(required) == 1 and required[0].name != "x"
