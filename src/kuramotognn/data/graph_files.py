"""The files of a user's graph and the meaning of their columns. Importing this does not import torch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeAlias

from pydantic import Strict

from kuramotognn.data.file_bytes import home_expanded

FilePath: TypeAlias = Annotated[Path, Strict(False)]


@dataclass(frozen=True)
class GraphFiles:
    """The files of a user's graph and the meaning of their columns.

    Attributes:
        nodes: file of your own nodes: CSV or Parquet with one row per node, or a whole graph as npz, mat, safetensors,
            pt or a folder of `kuramotognn convert`.
        edges: file of your own edges: CSV, Parquet or an edge list, one row per edge with the ids of its two ends
            (default: those in the file of nodes).
        label: column of classes; nodes with an empty cell are to be predicted (default: that of the format).
        unknown: labels that mean unknown: any texts, none, or auto for nan, ?, unknown, and -1 beside 0, 1, …
            (default: auto).
        id: column of node ids.
        split_column: column with the values train, validation or test.
        features: feature matrix, one row per node in the order of the nodes: npz, sparse or dense, or npy, safetensors
            or Parquet, which stay on disk.
        source: column with an edge's first end (default: the first column).
        target: column with an edge's second end (default: the second column).
        weight: column of edge weights.
        categorical: columns that are categories even if they look like numbers.
        ignore: columns to leave out.
        separator: separator between the cells of a CSV file; tab for tabulators.
        allow_missing: drop edges whose ends are not among the nodes.
    """

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012 -- read by pydantic where settings are validated

    nodes: FilePath
    edges: FilePath | None = None
    label: str | None = None
    unknown: tuple[str, ...] = ("auto",)
    id: str = "id"
    split_column: str | None = None
    features: FilePath | None = None
    source: str | None = None
    target: str | None = None
    weight: str | None = None
    categorical: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    separator: str = ","
    allow_missing: bool = False

    def __post_init__(self) -> None:
        for name in ("nodes", "edges", "features"):
            if (path := getattr(self, name)) is not None:
                # A run folder may be used from another working directory.
                object.__setattr__(self, name, home_expanded(path).absolute())
        character = {"tab": "\t", "\\t": "\t"}.get(self.separator, self.separator)
        if len(character.encode()) != 1:
            raise ValueError(f"separator must be one character, or tab, got {self.separator!r}")
        object.__setattr__(self, "separator", character)
