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

    def renumbered(self, position: Index) -> Split:
        """The same split of a part of the graph: ``position[i]`` is the new number of node ``i``, −1 if left out."""
        moved = (position[part] for part in (self.train, self.validation, self.test))
        train, validation, test = (part[part >= 0] for part in moved)
        return Split(train, validation, test, self.protocol, self.number)


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
        labels: ``[N]`` class of each node, 0 to C − 1; −1 where it is not known, such a node takes no part.
        seed: the split's number.
        per_class: training nodes a class.
        development: nodes drawn for training and validation together.
        class_names: for error messages.
    """
    classes = labels.cpu().numpy()
    if per_class < 1:
        raise ValueError(f"per_class must be at least 1, got {per_class}")
    labelled = np.flatnonzero(classes >= 0)
    if not 1 <= development < labelled.size:
        raise ValueError(
            f"development must be between 1 and {labelled.size - 1} ({labelled.size} nodes), got {development}"
        )
    # RandomState, not Generator: its streams are frozen for good, so that a split is the same in every NumPy.
    random = np.random.RandomState(seed)
    order = labelled[random.permutation(labelled.size)]
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


def fraction(
    labels: Labels,
    seed: int,
    *,
    train: float = 0.6,
    validation: float = 0.2,
    class_names: Sequence[str] | None = None,
) -> Split:
    """The ``fraction`` protocol: shares of each class train and validate, the rest of it tests.

    Args:
        labels: ``[N]`` class of each node; −1 where it is not known, such a node takes no part.
        seed: the split's number.
        train: share of each class to train on; at least one node.
        validation: share of each class to validate on; at least one node.
        class_names: for error messages.
    """
    if not (train > 0 and validation > 0 and train + validation < 1):
        raise ValueError(
            f"train ({train}) and validation ({validation}) must be positive shares with a sum under 1: the rest tests"
        )
    random = np.random.RandomState(seed)
    parts: list[list[Index]] = [[], [], []]
    for members in _shuffled_classes(labels, random, 3, "the fraction protocol", class_names):
        count = members.numel()
        first = min(max(round(train * count), 1), count - 2)
        second = min(max(round(validation * count), 1), count - 1 - first)
        for part, nodes in zip(parts, members.tensor_split((first, first + second)), strict=True):
            part.append(nodes)
    train_nodes, validation_nodes, test_nodes = (torch.cat(part).sort().values for part in parts)
    return Split(train_nodes, validation_nodes, test_nodes, "fraction", seed)


def k_fold(labels: Labels, number: int, *, folds: int = 5, class_names: Sequence[str] | None = None) -> Split:
    """The ``k-fold`` protocol: nodes dealt into ``folds`` parts class by class; one tests, the next validates.

    Splits ``k·folds`` to ``k·folds + folds − 1`` are the folds of the ``k``-th shuffle.

    Args:
        labels: ``[N]`` class of each node; −1 where it is not known, such a node takes no part.
        number: the split's number.
        folds: how many parts; at least 3, so that some train.
        class_names: for error messages.
    """
    if folds < 3:
        raise ValueError(f"folds must be at least 3 (train, validation, test), got {folds}")
    random = np.random.RandomState(number // folds)
    classes = _shuffled_classes(labels, random, folds, f"{folds} folds", class_names)
    # Dealing goes on from class to class: folds differ by one node at most.
    order = torch.cat(classes)
    fold = torch.arange(order.numel()) % folds
    test, validation = number % folds, (number + 1) % folds
    return Split(
        order[(fold != test) & (fold != validation)].sort().values,
        order[fold == validation].sort().values,
        order[fold == test].sort().values,
        "k-fold",
        number,
    )


def given_split(splits: Sequence[Split], number: int) -> Split:
    """Split ``number`` of those that come with the data."""
    if number >= len(splits):
        last = len(splits) - 1
        raise ValueError(
            f"split {number} does not exist: {splits[0].protocol} has {_count(len(splits), 'split')}, "
            f"{f'numbered 0 to {last}' if last else 'number 0'}; lower splits or first_split"
        )
    return splits[number]


def _shuffled_classes(
    labels: Labels, random: np.random.RandomState, least: int, what: str, class_names: Sequence[str] | None
) -> list[Index]:
    classes = labels.cpu().numpy()
    shuffled = []
    for label in range(int(classes.max(initial=-1)) + 1):
        members = np.flatnonzero(classes == label)
        if members.size < least:
            name = class_names[label] if class_names else str(label)
            raise ValueError(
                f"class {name!r} has {_count(members.size, 'labelled node')}, but {what} needs {least} of each class; "
                "label more, or merge or drop the class"
            )
        shuffled.append(torch.from_numpy(random.permutation(members)))
    if not shuffled:
        raise ValueError("no node has a label, so there is nothing to train on")
    return shuffled


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
