"""Columns of nodes as they are in a file, and the encoder that makes features of them, fitted on training nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import torch
from pydantic import BaseModel, ConfigDict
from torch import Tensor

from kuramotognn.data.errors import DataError
from kuramotognn.features import Features, SparseFeatures
from kuramotognn.typing import Index, Nodes


@dataclass(frozen=True, eq=False)
class Category:
    """A column of names: ``codes[i]`` is the place of node ``i``'s value among ``names``, −1 where it has none."""

    codes: Index
    names: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Columns:
    """What nodes are described by, before any encoding.

    Attributes:
        numbers: ``[N, n]`` numeric columns in float64.
        number_names: what they are called.
        categories: columns of names.
        matrix: ``[N, F]`` features that are used as they are, such as a bag of words.
    """

    numbers: Nodes
    number_names: tuple[str, ...] = ()
    categories: Mapping[str, Category] = field(default_factory=dict)
    matrix: Features | None = None

    @staticmethod
    def of_features(x: Features) -> Columns:
        """A feature matrix as columns: of numbers when it is dense; a sparse one stays a matrix."""
        if isinstance(x, SparseFeatures):
            return Columns(torch.zeros(x.shape[0], 0, dtype=torch.float64), matrix=x)
        return Columns(x.double(), tuple(str(column) for column in range(x.shape[1])))

    def rows(self, nodes: Index) -> Columns:
        """The columns of some nodes."""
        matrix = self.matrix.rows(nodes) if isinstance(self.matrix, SparseFeatures) else self.matrix
        return replace(
            self,
            numbers=self.numbers[nodes],
            categories={name: Category(column.codes[nodes], column.names) for name, column in self.categories.items()},
            matrix=matrix[nodes] if isinstance(matrix, Tensor) else matrix,
        )


class Encoder(BaseModel):
    """Makes features of columns: numbers shifted and scaled, a column of zeros and ones for each known category.

    Attributes:
        means: what is taken from each numeric column.
        scales: what each numeric column is divided by.
        categories: the known values of each column of names, in the order of their features.
        matrix_width: how many features come from a matrix, None without one.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    means: dict[str, float]
    scales: dict[str, float]
    categories: dict[str, tuple[str, ...]]
    matrix_width: int | None

    @staticmethod
    def fit(columns: Columns, nodes: Index, *, standardise: bool) -> Encoder:
        """Means, standard deviations and categories of ``nodes`` alone."""
        numbers = columns.numbers[nodes]
        means, scales = torch.zeros(numbers.size(1)).double(), torch.ones(numbers.size(1)).double()
        if standardise and nodes.numel():
            means, spread = numbers.mean(dim=0), numbers.std(dim=0, correction=0)
            # Rounding gives a constant column a tiny spread; dividing by it would blow up other nodes' values.
            scales = torch.where(spread > 1e-12 * (1 + means.abs()), spread, torch.ones_like(spread))
        categories = {
            name: tuple(column.names[code] for code in torch.unique(column.codes[nodes]).tolist() if code >= 0)
            for name, column in columns.categories.items()
        }
        return Encoder(
            means=dict(zip(columns.number_names, means.tolist(), strict=True)),
            scales=dict(zip(columns.number_names, scales.tolist(), strict=True)),
            categories=categories,
            matrix_width=None if columns.matrix is None else columns.matrix.shape[1],
        )

    def apply(self, columns: Columns) -> Features:
        """Features of all nodes: numbers, categories, matrix, in this order."""
        self._check(columns)
        order = [columns.number_names.index(name) for name in self.means]
        numbers = (columns.numbers[:, order] - _row(self.means)) / _row(self.scales)
        parts = [numbers.float()]
        for name, known in self.categories.items():
            column = columns.categories[name]
            place = {value: number for number, value in enumerate(known)}
            # The last column is for what is not known, and cut off.
            lookup = torch.tensor([*(place.get(value, len(known)) for value in column.names), len(known)])
            parts.append(torch.nn.functional.one_hot(lookup[column.codes], len(known) + 1)[:, :-1].float())
        return _beside(torch.cat(parts, dim=1), columns.matrix)

    def unseen(self, columns: Columns) -> list[str]:
        """A sentence for each column with values that no training node has."""
        sentences = []
        for name, known in self.categories.items():
            column = columns.categories[name]
            new = [code for code, value in enumerate(column.names) if value not in known]
            count = int(torch.isin(column.codes, torch.tensor(new, dtype=torch.long)).sum())
            if count:
                shown = ", ".join(repr(column.names[code]) for code in new[:3])
                sentences.append(
                    f"column {name!r}: {count} node{'s have' if count > 1 else ' has'} a value that no "
                    "training node has "
                    f"({shown}{', …' if len(new) > 3 else ''}); it counts as none of the known ones"
                )
        return sentences

    def _check(self, columns: Columns) -> None:
        for kind, wanted, found in (
            ("numeric column", self.means, columns.number_names),
            ("category column", self.categories, columns.categories),
        ):
            missing = [name for name in wanted if name not in found]
            if missing:
                raise DataError(f"the {kind} {missing[0]!r}, which the model was trained with, is missing; add it")
        width = None if columns.matrix is None else columns.matrix.shape[1]
        if width != self.matrix_width:
            raise DataError(
                f"the model was trained with {'no matrix' if self.matrix_width is None else self.matrix_width} "
                f"features from a matrix, got {'none' if width is None else width}; pass such a matrix "
                "with --features"
            )


def _row(values: Mapping[str, float]) -> Tensor:
    return torch.tensor(list(values.values()), dtype=torch.float64)


def _beside(left: Nodes, right: Features | None) -> Features:
    if right is None or isinstance(right, Tensor):
        return left if right is None else torch.cat([left, right.to(left.dtype)], dim=1)
    row, col = left.nonzero().t()
    pattern, width = right.pattern, left.size(1)
    return SparseFeatures.from_coo(
        torch.cat([row, pattern.row]),
        torch.cat([col, pattern.col + width]),
        torch.cat([left[row, col], right.values.to(left.dtype)]),
        (left.size(0), width + right.shape[1]),
    )
