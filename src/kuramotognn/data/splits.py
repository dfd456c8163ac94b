"""Which nodes train, which select, which test: pure functions of the labels and a seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from kuramotognn.typing import Index, Labels


@dataclass(frozen=True, eq=False)
class Split:
    """Disjoint sets of nodes; ``protocol`` and ``number`` say which, so that no number is without its split."""

    train: Index
    validation: Index
    test: Index
    protocol: str
    number: int


def random_per_class(
    labels: Labels,
    seed: int,
    *,
    per_class: int = 20,
    development: int = 1500,
    class_names: Sequence[str] | None = None,
) -> Split:
    """The ``random-per-class`` protocol.

    ``development`` nodes are drawn by ``seed``. Of these, ``per_class`` nodes of each class train and the rest
    validates; all other nodes test.

    Args:
        labels: ``[N]`` class of each node, 0 to C − 1.
        seed: the split's number.
        per_class: training nodes a class.
        development: nodes drawn for training and validation together.
        class_names: for error messages.
    """
    classes = labels.cpu().numpy()
    if per_class < 1:
        raise ValueError(f"per_class must be at least 1, got {per_class}")
    if not 1 <= development < classes.size:
        raise ValueError(
            f"development must be between 1 and {classes.size - 1} ({classes.size} nodes), got {development}"
        )
    # RandomState, not Generator: its streams are frozen for good, so that a split is the same in every NumPy.
    random = np.random.RandomState(seed)
    order = random.permutation(classes.size)
    drawn, test = order[:development], order[development:]
    train = []
    for label in range(int(classes.max()) + 1):
        members = drawn[classes[drawn] == label]
        if members.size < per_class:
            name = class_names[label] if class_names else str(label)
            raise ValueError(
                f"class {name!r} has {members.size} of the {development} development nodes of split {seed}, fewer than "
                f"the {per_class} asked for; lower per_class or raise development"
            )
        train.append(members[:per_class])
    chosen = np.sort(np.concatenate(train))
    return Split(
        torch.from_numpy(chosen),
        torch.from_numpy(np.setdiff1d(drawn, chosen)),
        torch.from_numpy(np.sort(test)),
        "random-per-class",
        seed,
    )
