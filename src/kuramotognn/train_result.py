"""What training found: metrics of every epoch, and the result on a split."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, field_validator

from kuramotognn.typing import Logits

Count: TypeAlias = Annotated[int, Field(ge=0, lt=2**53)]
"""A whole number that a float holds exactly."""


@dataclass(frozen=True)
class EpochMetrics:
    """One line of ``metrics.jsonl``; holds no wall-clock time, so that a resumed run writes the same bytes."""

    epoch: int
    train_loss: float
    train_accuracy: float
    validation_loss: float
    validation_accuracy: float
    time: float | None
    evaluations: int
    train_evaluations: int = 0
    validation_score: float | None = None

    @property
    def score(self) -> float:
        """What epochs are selected by: the chosen metric on the validation nodes."""
        return self.validation_accuracy if self.validation_score is None else self.validation_score

    def better_than(self, other: EpochMetrics | None) -> bool:
        """Higher score on validation, ties broken by lower validation loss."""
        if other is None:
            return True
        mine, theirs = self.score, other.score
        return mine > theirs or (mine == theirs and self.validation_loss < other.validation_loss)


@dataclass(frozen=True)
class TrainResult:
    """What :func:`fit` found. The model is left with the parameters of the best epoch.

    Attributes:
        protocol: how the nodes were split.
        split: number of the split.
        seed: seed of dropout.
        train_nodes: number of training nodes.
        validation_nodes: number of validation nodes.
        test_nodes: number of test nodes.
        best_epoch: the epoch chosen on validation.
        epochs: how many epochs were run.
        time: the integration time chosen on validation, with ``select_time``.
        validation_accuracy: accuracy on the validation nodes at the best epoch.
        test_accuracy: accuracy on the test nodes, computed once, with the chosen parameters and time.
        evaluations: evaluations of the right-hand side in a forward pass at the best epoch.
        mean_evaluations: the same, mean over the epochs.
        epoch_evaluations: evaluations of an epoch, mean over the epochs: of the training pass, of its gradient with an
            adjoint solver, and of the validation pass, as the authors' code counts them.
        seconds: wall-clock time, before and after interruptions.
        test_measures: macro F1, balanced accuracy, confusion matrix and, for two classes, ROC-AUC of the test nodes.
        history: metrics of every epoch; not part of :meth:`record`.
        logits: ``[N, C]`` predictions for all nodes; not part of :meth:`record`.
    """

    protocol: str
    split: int
    seed: int
    train_nodes: int
    validation_nodes: int
    test_nodes: int
    best_epoch: int
    epochs: int
    time: float | None
    validation_accuracy: float
    test_accuracy: float
    evaluations: int
    mean_evaluations: float
    epoch_evaluations: float
    seconds: float
    test_measures: Mapping[str, Any] = field(default_factory=dict, repr=False)
    history: tuple[EpochMetrics, ...] = field(default=(), repr=False)
    logits: Logits | None = field(default=None, repr=False, compare=False)

    @property
    def best(self) -> EpochMetrics:
        """Metrics of the best epoch."""
        return self.history[self.best_epoch - 1]

    def record(self) -> dict[str, Any]:
        """Everything that is written to a file, as JSON can hold it."""
        return {each.name: getattr(self, each.name) for each in fields(self) if each.name not in ("history", "logits")}

    @staticmethod
    def from_record(record: Mapping[str, Any]) -> TrainResult:
        """The result that :meth:`record` gave; facts beside it are ignored.

        Raises:
            ValidationError: something is missing or has the wrong type.
        """
        StoredResult.model_validate(record, strict=True)
        return TrainResult(**{name: record[name] for name in StoredResult.model_fields})


class StoredMeasures(BaseModel):
    """The types of ``test_measures``."""

    model_config = ConfigDict(allow_inf_nan=False)

    macro_f1: float
    balanced_accuracy: float
    roc_auc: float | None = None
    confusion: list[list[Count]]

    @field_validator("confusion")
    @classmethod
    def _square(cls, rows: list[list[int]]) -> list[list[int]]:
        if any(len(row) != len(rows) for row in rows) or not any(map(any, rows)):
            raise ValueError("must be a square of counts")
        return rows


class StoredResult(BaseModel):
    """The types of what :meth:`TrainResult.record` gives: a file may have been changed."""

    model_config = ConfigDict(allow_inf_nan=False)

    protocol: str
    split: Count
    seed: Count
    train_nodes: Count
    validation_nodes: Count
    test_nodes: Count
    best_epoch: Count
    epochs: Count
    time: float | None
    validation_accuracy: float
    test_accuracy: float
    evaluations: Count
    mean_evaluations: float
    epoch_evaluations: float
    seconds: float
    test_measures: StoredMeasures
