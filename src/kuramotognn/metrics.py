"""Classification measures other than accuracy."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from kuramotognn.typing import Index, Labels, Logits


def confusion_matrix(predicted: Labels, y: Labels, num_classes: int) -> Tensor:
    """``[C, C]`` counts: rows are true classes, columns are predictions."""
    return torch.bincount(y * num_classes + predicted, minlength=num_classes**2).reshape(num_classes, num_classes)


def macro_f1(confusion: Tensor) -> float:
    """Mean of 2·TP / (2·TP + FP + FN) over the classes that occur or are predicted."""
    true, both = confusion.diagonal().double(), (confusion.sum(0) + confusion.sum(1)).double()
    return float((2 * true[both > 0] / both[both > 0]).mean())


def balanced_accuracy(confusion: Tensor) -> float:
    """Mean recall over the classes that occur."""
    members = confusion.sum(1).double()
    return float((confusion.diagonal().double()[members > 0] / members[members > 0]).mean())


def roc_auc(scores: Tensor, positive: Tensor) -> float | None:
    """Probability that a positive node has a higher score than a negative one; ties count one half.

    Computed from ranks as the Mann–Whitney statistic divided by its maximum. None if there are no positive or no
    negative nodes.
    """
    positives, negatives = int(positive.sum()), int((~positive).sum())
    if not positives or not negatives:
        return None
    _, place, counts = torch.unique(scores.double(), return_inverse=True, return_counts=True)
    ranks = (counts.cumsum(0) - (counts - 1) / 2)[place].double()
    return float((ranks[positive].sum() - positives * (positives + 1) / 2) / (positives * negatives))


def measure(logits: Logits, y: Labels, nodes: Index) -> dict[str, Any]:
    """All measures on labelled ``nodes``; ``roc_auc`` (of the second class) for two classes only."""
    chosen, truth = logits[nodes].cpu(), y[nodes].cpu()
    confusion = confusion_matrix(chosen.argmax(dim=-1), truth, logits.size(-1))
    scores = {"macro_f1": macro_f1(confusion), "balanced_accuracy": balanced_accuracy(confusion)}
    if logits.size(-1) == 2:
        scores["roc_auc"] = roc_auc(chosen[:, 1] - chosen[:, 0], truth == 1)  # type: ignore[assignment]
    return scores | {"confusion": confusion.tolist()}
