"""The file beside a model that says how its features are made of columns and what its classes are called."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch
from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from kuramotognn.atomic_write import write_atomically
from kuramotognn.data import UNLABELLED, ColumnEncoder, DataError, NodeDataset
from kuramotognn.documents import first_problem, read_document

SMALLEST_SCALE = 1e-300
"""Dividing by less may overflow."""


class SavedEncoder(BaseModel):
    """Everything that applying a trained model to other nodes needs beside its parameters."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    classes: tuple[str, ...]
    encoder: ColumnEncoder

    @field_validator("encoder")
    @classmethod
    def _scales(cls, encoder: ColumnEncoder) -> ColumnEncoder:
        if list(encoder.means) != list(encoder.scales):
            raise ValueError("means and scales must be of the same columns")
        if min(encoder.scales.values(), default=1.0) < SMALLEST_SCALE:
            raise ValueError("scales must be positive")
        return encoder

    def store(self, path: Path) -> None:
        """Write it as JSON."""
        write_atomically(path, self.model_dump_json(indent=1) + "\n")

    @staticmethod
    def load(path: Path) -> SavedEncoder | None:
        """Read it; None for a run whose features are not encoded."""
        try:
            return SavedEncoder.model_validate_json(read_document(path))
        except FileNotFoundError:
            return None
        except ValidationError as error:
            raise DataError(f"{path} is not an encoder file: {first_problem(error)}; train again") from error

    def with_known_classes(self, dataset: NodeDataset) -> NodeDataset:
        """The data set with its labels numbered as the model numbers them; unknown labels count as missing."""
        place = {name: number for number, name in enumerate(self.classes)}
        known = torch.tensor([*(place.get(name, UNLABELLED) for name in dataset.class_names), UNLABELLED])
        return replace(dataset, class_names=self.classes, y=known[dataset.y])
