"""Splits into training, validation and test nodes: pure functions of the labels and a seed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from kuramotognn.typing import Index, Labels


@dataclass(frozen=True, eq=False)
class Split:
    """Disjoint sets of nodes; ``protocol`` and ``number`` identify the split."""

    train: Index
    validation: Index
    test: Index
    protocol: str
    number: int

    @staticmethod
    def of(parts: Iterable[Index], protocol: str, number: int) -> Split:
        """A split from its training, validation and test nodes."""
        train, validation, test = parts
        return Split(train, validation, test, protocol, number)

    def renumbered(self, position: Index) -> Split:
        """The split on a subgraph: ``position[i]`` is the new number of node ``i``, or −1 if it is left out."""
        moved = (position[part] for part in (self.train, self.validation, self.test))
        return Split.of((part[part >= 0] for part in moved), self.protocol, self.number)


def random_per_class(
    labels: Labels, seed: int, *, per_class: int = 20, development: int = 1500, class_names: Sequence[str] | None = None
) -> Split:
    """The ``random-per-class`` protocol.

    ``development`` nodes are drawn by ``seed``. The first ``per_class`` of each class are training nodes, the rest of
    them validation nodes, and all other nodes test nodes.

    Args:
        labels: ``[N]`` class of each node, 0 to C − 1; −1 for unlabelled nodes, which are left out.
        seed: number of the split.
        per_class: training nodes per class.
        development: number of training and validation nodes together.
        class_names: names for error messages.
    """
    classes = labels.cpu().numpy()
    if per_class < 1:
        raise ValueError(f"per_class must be at least 1, got {per_class}")
    labelled = np.flatnonzero(classes >= 0)
    if not 1 <= development < labelled.size:
        raise ValueError(
            f"development must be between 1 and {labelled.size - 1} ({labelled.size} nodes), got {development}"
        )
    # NumPy guarantees the stream of RandomState, not that of Generator: a split is the same in every version.
    order = labelled[np.random.RandomState(seed).permutation(labelled.size)]
    drawn, test = order[:development], order[development:]
    members = [drawn[classes[drawn] == label] for label in range(int(classes.max()) + 1)]
    for label, nodes in enumerate(members):
        if nodes.size < per_class:
            raise ValueError(
                f"class {_name(label, class_names)!r} has {nodes.size} of the {development} development nodes of split "
                f"{seed}, fewer than the {per_class} asked for; lower per_class or raise development"
            )
    train = np.concatenate([nodes[:per_class] for nodes in members])
    parts = (torch.from_numpy(np.sort(part)) for part in (train, np.setdiff1d(drawn, train), test))
    return Split.of(parts, "random-per-class", seed)


def fraction(
    labels: Labels, seed: int, *, train: float = 0.6, validation: float = 0.2, class_names: Sequence[str] | None = None
) -> Split:
    """The ``fraction`` protocol: given shares of each class for training and validation, the rest for testing.

    Args:
        labels: ``[N]`` class of each node; −1 for unlabelled nodes, which are left out.
        seed: number of the split.
        train: share of training nodes in each class; at least one node.
        validation: share of validation nodes in each class; at least one node.
        class_names: names for error messages.
    """
    if not (train > 0 and validation > 0 and train + validation < 1):
        raise ValueError(
            f"train ({train}) and validation ({validation}) must be positive shares with a sum below 1; the remaining "
            "nodes are test nodes"
        )
    parts = []
    for nodes in _shuffled_classes(labels, seed, 3, "the fraction protocol", class_names):
        count = nodes.numel()
        first = min(max(round(train * count), 1), count - 2)
        second = min(max(round(validation * count), 1), count - 1 - first)
        parts.append(nodes.tensor_split((first, first + second)))
    return Split.of((torch.cat(part).sort().values for part in zip(*parts, strict=True)), "fraction", seed)


def k_fold(labels: Labels, number: int, *, folds: int = 5, class_names: Sequence[str] | None = None) -> Split:
    """The ``k-fold`` protocol: stratified folds, one for testing, the next for validation, the others for training.

    Splits ``k·folds`` to ``k·folds + folds − 1`` are the folds of the ``k``-th shuffle.

    Args:
        labels: ``[N]`` class of each node; −1 for unlabelled nodes, which are left out.
        number: number of the split.
        folds: number of folds, at least 3.
        class_names: names for error messages.
    """
    if folds < 3:
        raise ValueError(f"folds must be at least 3 (train, validation, test), got {folds}")
    # Counting on from class to class makes the sizes of folds differ by at most one.
    order = torch.cat(_shuffled_classes(labels, number // folds, folds, f"{folds} folds", class_names))
    role = (torch.arange(order.numel()) - number) % folds
    parts = (order[chosen].sort().values for chosen in (role > 1, role == 1, role == 0))
    return Split.of(parts, "k-fold", number)


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
    labels: Labels, seed: int, least: int, what: str, class_names: Sequence[str] | None
) -> list[Index]:
    """The nodes of each class in random order; ``what`` needs ``least`` of them."""
    classes, random = labels.cpu().numpy(), np.random.RandomState(seed)
    shuffled = []
    for label in range(int(classes.max(initial=-1)) + 1):
        members = np.flatnonzero(classes == label)
        if members.size < least:
            raise ValueError(
                f"class {_name(label, class_names)!r} has {_count(members.size, 'labelled node')}, but {what} needs "
                f"{least} of each class; label more, or merge or drop the class"
            )
        shuffled.append(torch.from_numpy(random.permutation(members)))
    if not shuffled:
        raise ValueError("no node has a label, so there is nothing to train on; label some nodes")
    return shuffled


def _name(label: int, class_names: Sequence[str] | None) -> str:
    return class_names[label] if class_names else str(label)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
