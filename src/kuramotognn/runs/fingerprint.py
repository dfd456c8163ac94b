"""A fingerprint of arithmetic and random streams, by which results of code that computes other numbers are found."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import torch

from kuramotognn.config.tree import Config
from kuramotognn.data import NodeDataset
from kuramotognn.runs.task import Task

EPOCHS = 3
#: Other processors round differently; another random stream changes the first digits.
TOLERANCE = 1e-3
#: Deeper flows amplify rounding beyond that.
DEEPEST = 8.0
NODES, FEATURES, CLASSES = 36, 12, 3


def fingerprint(config: Config) -> tuple[float, ...]:
    """Losses of the first epochs with these settings on a small graph that never changes; empty where training fails.

    Model, solver, training and preparation of features are those of ``config``. The data set, the split and the seed
    are not: one fingerprint stands for all of them.
    """
    return _fingerprint(config.model_copy(update={"splits": 1, "first_split": 0, "seed": 0}))


def same_numbers(first: Sequence[float], second: Sequence[float]) -> bool:
    """Whether two fingerprints are of code that computes the same."""
    close = (math.isclose(a, b, rel_tol=TOLERANCE, abs_tol=TOLERANCE) for a, b in zip(first, second, strict=False))
    return len(first) == len(second) and all(close)


@lru_cache(maxsize=256)
def _fingerprint(config: Config) -> tuple[float, ...]:
    few = {"parts": min(config.training.parts, CLASSES), "parts_per_batch": 1}
    training = config.training.model_copy(update={"epochs": EPOCHS, "patience": EPOCHS, **few})
    data = config.data.model_copy(update={"protocol": "random-per-class", "per_class": 3, "development": NODES // 2})
    time = min(getattr(config.model, "time", DEEPEST), DEEPEST)
    model = config.model.model_copy(update={"time": time}) if hasattr(config.model, "time") else config.model
    shallow = config.model_copy(update={"training": training, "data": data, "model": model})
    try:
        task = Task.of(shallow, _small_graph()).for_split(0)
        history = task.fit(task.model(), task.split(0)).history
    except Exception:  # The run itself records why its settings cannot be trained; models may raise anything.
        return ()
    numbers = [number for epoch in history for number in (epoch.train_loss, epoch.validation_loss)]
    return tuple(float(f"{number:.6g}") for number in numbers) if np.isfinite(numbers).all() else ()


def _small_graph() -> NodeDataset:
    """A ring with chords and a bag of words that says something of the class."""
    random = np.random.RandomState(0)
    node = np.arange(NODES)
    y = node % CLASSES
    words = random.rand(NODES, FEATURES) < np.where(np.arange(FEATURES) % CLASSES == y[:, None], 0.6, 0.2)
    pairs = np.concatenate([np.stack([node, (node + step) % NODES]) for step in (1, CLASSES, 7)], axis=1)
    edges = torch.from_numpy(np.concatenate([pairs, pairs[::-1]], axis=1))
    x = torch.from_numpy(words.astype(np.float32))
    names = tuple(str(each) for each in range(CLASSES))
    return NodeDataset("fingerprint", x, edges, torch.from_numpy(y), names, [str(each) for each in node])
