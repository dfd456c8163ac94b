"""Columns of nodes as read from a file, and the encoder that turns them into features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from pydantic import BaseModel, ConfigDict
from torch import Tensor

from kuramotognn.data.data_error import DataError
from kuramotognn.features import Features, SparseFeatures, select_rows
from kuramotognn.mapped_features import MappedFeatures
from kuramotognn.typing import Index, Nodes

SPARSE_ABOVE = 64
"""Categories of a column from which on its one-hot encoding is sparse."""


@dataclass(frozen=True, eq=False)
class Category:
    """A categorical column: node ``i`` has the value ``names[codes[i]]``, or none if the code is −1."""

    codes: Index
    names: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Columns:
    """The columns that describe nodes, before any encoding.

    Attributes:
        numbers: ``[N, n]`` numeric columns in float64.
        number_names: names of the numeric columns.
        categories: categorical columns by name.
        matrix: ``[N, F]`` features that are not encoded, such as a bag of words.
    """

    numbers: Nodes
    number_names: tuple[str, ...] = ()
    categories: Mapping[str, Category] = field(default_factory=dict)
    matrix: Features | None = None

    @staticmethod
    def of_features(x: Features) -> Columns:
        """A feature matrix as columns: numeric columns if it is dense, a matrix if it is sparse or on disk."""
        if not isinstance(x, Tensor):
            return Columns(torch.zeros(x.shape[0], 0, dtype=torch.float64), matrix=x)
        return Columns(x.double(), tuple(str(column) for column in range(x.shape[1])))

    def rows(self, nodes: Index) -> Columns:
        """The columns of some nodes."""
        categories = {name: Category(column.codes[nodes], column.names) for name, column in self.categories.items()}
        matrix = None if self.matrix is None else select_rows(self.matrix, nodes)
        return Columns(self.numbers[nodes], self.number_names, categories, matrix)


class ColumnEncoder(BaseModel):
    """Turns columns into features: numbers are shifted and scaled, categories are one-hot encoded.

    Attributes:
        means: the shift of each numeric column.
        scales: the divisor of each numeric column.
        categories: the known values of each categorical column, in the order of their features.
        matrix_width: number of features from a matrix, None without one.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    means: dict[str, float]
    scales: dict[str, float]
    categories: dict[str, tuple[str, ...]]
    matrix_width: int | None

    @staticmethod
    def fit(columns: Columns, nodes: Index, *, standardise: bool) -> ColumnEncoder:
        """Fit means, standard deviations and categories to ``nodes``."""
        numbers = columns.numbers[nodes]
        means, scales = torch.zeros(numbers.size(1)).double(), torch.ones(numbers.size(1)).double()
        if standardise and numbers.numel():
            means, spread = numbers.mean(dim=0), numbers.std(dim=0, correction=0)
            # Rounding errors give a constant column a tiny standard deviation; do not divide by it.
            scales = torch.where(spread > 1e-12 * (1 + means.abs()), spread, torch.ones_like(spread))
        categories = {
            name: tuple(column.names[code] for code in torch.unique(column.codes[nodes]).tolist() if code >= 0)
            for name, column in columns.categories.items()
        }
        return ColumnEncoder(
            means=dict(zip(columns.number_names, means.tolist(), strict=True)),
            scales=dict(zip(columns.number_names, scales.tolist(), strict=True)),
            categories=categories,
            matrix_width=None if columns.matrix is None else columns.matrix.shape[1],
        )

    def apply(self, columns: Columns) -> Features:
        """Features of all nodes: numbers, categories, matrix, in this order."""
        self._check(columns)
        number = {name: place for place, name in enumerate(columns.number_names)}
        order = [number[name] for name in self.means]
        means, scales = (torch.tensor(list(row.values()), dtype=torch.float64) for row in (self.means, self.scales))
        parts: list[Features] = [((columns.numbers[:, order] - means) / scales).float()]
        for name, known in self.categories.items():
            column = columns.categories[name]
            place = {value: number for number, value in enumerate(known)}
            # Unknown and missing values have the code −1.
            codes = torch.tensor([*(place.get(value, -1) for value in column.names), -1])[column.codes]
            parts.append(_one_hot(codes, len(known)))
        return _stack_columns(parts if columns.matrix is None else [*parts, columns.matrix])

    def unseen(self, columns: Columns) -> list[str]:
        """A sentence for each column with values that no training node has."""
        sentences = []
        for name, known in self.categories.items():
            column = columns.categories[name]
            new = [code for code, value in enumerate(column.names) if value not in known]
            count = int(torch.isin(column.codes, torch.tensor(new, dtype=torch.long)).sum())
            if count:
                shown = ", ".join(repr(column.names[code]) for code in new[:3]) + (", …" if len(new) > 3 else "")
                sentences.append(
                    f"column {name!r}: {count} node{'s have' if count > 1 else ' has'} a value that no training node "
                    f"has ({shown}); it is encoded as no category"
                )
        return sentences

    def _check(self, columns: Columns) -> None:
        numbers = set(columns.number_names)
        missing = [name for name in self.means if name not in numbers]
        missing += [name for name in self.categories if name not in columns.categories]
        if missing:
            raise DataError(f"the column {missing[0]!r}, which the model was trained with, is missing; add it")
        width = None if columns.matrix is None else columns.matrix.shape[1]
        if width != self.matrix_width:
            trained, found = self.matrix_width or "no", width or "none"
            raise DataError(
                f"the model was trained with {trained} features from a matrix, got {found}; pass them with --features"
            )


def _one_hot(codes: Index, width: int) -> Features:
    """A column for each code; none for −1. Sparse if there are many columns."""
    rows = (codes >= 0).nonzero().flatten()
    if width > SPARSE_ABOVE:
        return SparseFeatures.from_coo(rows, codes[rows], torch.ones(rows.numel()), (codes.numel(), width))
    dense = torch.zeros(codes.numel(), width)
    dense[rows, codes[rows]] = 1
    return dense


def _stack_columns(parts: Sequence[Features]) -> Features:
    """Features side by side; sparse if one of them is, and on disk if the last is."""
    if isinstance(last := parts[-1], MappedFeatures):
        return _before(_stack_columns(parts[:-1]), last)
    dense = [part.float() for part in parts if isinstance(part, Tensor)]
    if len(dense) == len(parts):
        return torch.cat(dense, dim=1)
    rows, cols, values, width = [], [], [], 0
    for part in parts:
        assert not isinstance(part, MappedFeatures), "a matrix stands last"
        if isinstance(part, Tensor):
            row, col = part.nonzero().t()
            entries = part[row, col]
        else:
            row, col, entries = part.pattern.row, part.pattern.col, part.values
        rows.append(row)
        cols.append(col + width)
        values.append(entries.float())
        width += part.shape[1]
    return SparseFeatures.from_coo(torch.cat(rows), torch.cat(cols), torch.cat(values), (parts[0].shape[0], width))


def _before(columns: Features, matrix: MappedFeatures) -> MappedFeatures:
    if not columns.shape[1]:
        return matrix
    if isinstance(columns, Tensor):
        return matrix.with_columns(columns)
    raise DataError(
        f"a column with more than {SPARSE_ABOVE} categories cannot stand beside features on disk; leave it out with "
        "--ignore"
    )
