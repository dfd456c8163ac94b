"""What is measured of a configuration on one split with one seed."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from statistics import median
from types import MappingProxyType, SimpleNamespace
from typing import Any, Literal, TypeAlias

import torch

from kuramotognn.config.tree import Config
from kuramotognn.kernels import use_backend
from kuramotognn.models.continuous import ContinuousGNN
from kuramotognn.runs.task import Task
from kuramotognn.train_result import TrainResult

Outcome: TypeAlias = Literal["accuracy", "validation", "timing", "trajectory", "oversmoothing", "statistics"]
#: Splits from here on are for choosing settings; what their test nodes say is not recorded.
FIRST_TUNING_SPLIT = 1000
#: What is followed along a flow, and at how many times.
FOLLOWED, TIMES = ("order", "phase-energy", "dirichlet", "pairwise-distance"), 64
#: What is measured of the last hidden state, and at how many times the law of decay looks at a flow.
CARD, CARD_TIMES = ("pairwise-distance", "dirichlet", "rayleigh", "mad", "effective-rank"), 16


def accuracy(config: Config) -> dict[str, Any]:
    """Train on the configuration's first split; the test accuracy of a tuning split is left out."""
    task = _task(config)
    split = task.split(config.first_split)
    return _recorded(task.fit(task.model(), split))


def validation(config: Config) -> dict[str, Any]:
    """The same without test accuracy: for choosing settings."""
    return {name: value for name, value in accuracy(config).items() if name != "test_accuracy"}


def timing(config: Config, *, epochs: int = 30, passes: int = 20) -> dict[str, Any]:
    """Median milliseconds of an epoch, and of an evaluation (or layer) in a forward pass without gradients."""
    task = _task(config)
    split, model = task.split(config.first_split), task.model()
    ends = [time.perf_counter()]
    training = config.training.model_copy(update={"epochs": epochs, "patience": epochs})
    short = replace(task, config=config.model_copy(update={"training": training}))
    short.fit(model, split, on_epoch=lambda _: ends.append(time.perf_counter()))
    forward = []
    for _ in range(passes):
        start = time.perf_counter()
        task.predict(model)
        forward.append(time.perf_counter() - start)
    evaluations = _evaluations(model)
    return {
        "protocol": split.protocol,
        # The first epochs compile and warm caches.
        "epoch_ms": 1000 * median(after - before for before, after in itertools.pairwise(ends[3:])),
        "evaluation_ms": 1000 * median(forward[2:]) / evaluations,
        "evaluations": evaluations,
    }


def trajectory(config: Config) -> dict[str, Any]:
    """Train, then follow order parameter and energies of the node states along the flow."""
    from kuramotognn.diagnostics import trajectory_profile

    task = _task(config)
    split, model = task.split(config.first_split), task.model()
    trained = task.fit(model, split)
    if not isinstance(model, ContinuousGNN):
        raise ValueError(f"{config.model.name} has no flow to follow")
    model.eval()
    with torch.no_grad(), use_backend(config.backend):
        times = [model.time * k / TIMES for k in range(TIMES + 1)]
        profile = trajectory_profile(model.flow(task.x, task.graph, save_at=times), task.graph, measures=FOLLOWED)
    return _recorded(trained) | {
        "times": list(profile.depth),
        "curves": {name: list(profile.measures[name]) for name in FOLLOWED},
    }


def oversmoothing(config: Config) -> dict[str, Any]:
    """Train, then measure how different nodes are in the last hidden state, and by which law this falls with depth."""
    from kuramotognn.diagnostics import is_oversmoothing, oversmoothing_profile

    task = _task(config)
    split, model = task.split(config.first_split), task.model()
    trained = task.fit(model, split)
    times = [model.time * k / CARD_TIMES for k in range(CARD_TIMES + 1)] if isinstance(model, ContinuousGNN) else None
    data = SimpleNamespace(x=task.x, edge_index=task.graph, y=task.y)
    with use_backend(config.backend):
        profile = oversmoothing_profile(model, data, measures=CARD, times=times)
    # The last state of a stack of layers may be its logits, whose width is another one.
    last = max(k for k, width in enumerate(profile.width) if width == profile.usual_width)
    measured = {name.replace("-", "_"): values[last] for name, values in profile.measures.items()}
    return _recorded(trained) | measured | {"law": is_oversmoothing(profile).law}


def statistics(config: Config) -> dict[str, Any]:
    """Sizes of the data set as the protocol uses it; an edge is counted once for both directions."""
    dataset = _task(config).dataset
    return {
        "protocol": config.data.protocol,
        "nodes": dataset.num_nodes,
        "edges": dataset.edge_index.size(1) // 2,
        "features": dataset.num_features,
        "classes": dataset.num_classes,
    }


OUTCOMES: Mapping[Outcome, Callable[[Config], dict[str, Any]]] = MappingProxyType(
    {
        "accuracy": accuracy,
        "validation": validation,
        "timing": timing,
        "trajectory": trajectory,
        "oversmoothing": oversmoothing,
        "statistics": statistics,
    }
)


def _recorded(trained: TrainResult) -> dict[str, Any]:
    result = trained.record()
    del result["test_measures"]
    if (score := trained.best.validation_score) is not None:
        result["validation_score"] = score  # By another metric than accuracy.
    if trained.split >= FIRST_TUNING_SPLIT:
        del result["test_accuracy"]
    return result


def _task(config: Config) -> Task:
    """The data of a configuration's split; those of the last case are kept, for most cells follow one of the same."""
    whole = _cached_task(config.model_copy(update={"splits": 1, "first_split": 0, "seed": 0}))
    return replace(whole, config=config).for_split(config.first_split)


_cached_task = lru_cache(maxsize=1)(Task.from_config)


def _evaluations(model: torch.nn.Module) -> int:
    """Evaluations of the right-hand side in a forward pass, or layers that pass messages."""
    from torch_geometric.nn import MessagePassing

    if isinstance(model, ContinuousGNN):
        return model.evaluations
    return sum(isinstance(module, MessagePassing) for module in model.modules()) or 1
