"""Settings of the data: what is read, how features are scaled, and which nodes train, select and test."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter
from pydantic import BaseModel, ConfigDict, Field, field_validator

from kuramotognn.data import (
    DATASETS,
    OWN_GRAPH,
    GraphFiles,
    NodeDataset,
    Protocol,
    Split,
    Understood,
    fraction,
    given_split,
    k_fold,
    load_dataset,
    random_per_class,
    read_graph,
)
from kuramotognn.data.datasets import DRAWN
from kuramotognn.features import Normalisation

ONE_SPLIT: tuple[Protocol, ...] = ("planetoid-public", "ogb-time", "own-split")
"""Protocols with a single split."""


class FilesConfig(BaseModel):
    """A graph of one's own: where it is and what its columns mean. See :class:`kuramotognn.data.GraphFiles`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    nodes: Annotated[str | None, Parameter(name="--nodes")] = Field(
        None, description="Your own nodes instead of a data set: CSV, Parquet or npz, a row a node."
    )
    edges: Annotated[str | None, Parameter(name="--edges")] = Field(
        None, description="Your own edges: CSV or Parquet, a row an edge between two ids."
    )
    label: Annotated[str | None, Parameter(name="--label")] = Field(
        None, description="Column of classes; empty cells are nodes to predict."
    )
    id: Annotated[str, Parameter(name="--id")] = Field("id", description="Column of node ids.")
    split_column: Annotated[str | None, Parameter(name="--split-column")] = Field(
        None, description="Column that says train, validation or test."
    )
    features: Annotated[str | None, Parameter(name="--features")] = Field(
        None, description="npz file with a feature matrix, sparse or dense, a row a node."
    )
    source: Annotated[str | None, Parameter(name="--source")] = Field(
        None, description="Column with an edge's first end (default: the first column)."
    )
    target: Annotated[str | None, Parameter(name="--target")] = Field(
        None, description="Column with an edge's second end (default: the second column)."
    )
    weight: Annotated[str | None, Parameter(name="--weight")] = Field(None, description="Column of edge weights.")
    categorical: Annotated[tuple[str, ...], Parameter(name="--categorical")] = Field(
        (), description="Columns to take as categories, whatever they look like."
    )
    ignore: Annotated[tuple[str, ...], Parameter(name="--ignore")] = Field((), description="Columns to leave out.")
    separator: Annotated[str, Parameter(name="--separator")] = Field(
        ",", description="What stands between cells of a CSV file; tab for tabulators."
    )
    allow_missing: Annotated[bool, Parameter(name="--allow-missing", negative="")] = Field(
        False, description="Drop edges whose ends are not among the nodes."
    )

    @field_validator("categorical", "ignore", mode="before")
    @classmethod
    def _tuples(cls, value: object) -> object:
        return tuple(value) if isinstance(value, list) else value  # TOML has lists only

    @field_validator("nodes", "edges", "features")
    @classmethod
    def _absolute(cls, path: str | None) -> str | None:
        # A run folder is used from other places than it was made in.
        return None if path is None else str(Path(path).expanduser().absolute())

    @field_validator("separator")
    @classmethod
    def _one_character(cls, separator: str) -> str:
        character = {"tab": "\t", "\\t": "\t"}.get(separator, separator)
        if len(character.encode()) != 1:
            raise ValueError(f"separator must be one character, or tab, got {separator!r}")
        return character

    def to_read(self, *, directed: bool) -> GraphFiles:
        """What the reader needs to know."""
        if self.nodes is None or self.edges is None:
            missing = "--nodes" if self.nodes is None else "--edges"
            raise ValueError(f"a graph of your own needs both --nodes and --edges; {missing} is missing")
        return GraphFiles(
            nodes=Path(self.nodes),
            edges=Path(self.edges),
            label=self.label,
            id=self.id,
            split=self.split_column,
            source=self.source,
            target=self.target,
            weight=self.weight,
            features=None if self.features is None else Path(self.features),
            directed=directed,
            categorical=self.categorical,
            ignore=self.ignore,
            separator=self.separator,
            allow_missing=self.allow_missing,
        )


class DataConfig(BaseModel):
    """What is read, and which nodes train, select and test. What is not set follows from the data set."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    protocol: Protocol = Field("random-per-class", description="How nodes are split; each data set has its own.")
    per_class: int = Field(20, ge=1, description="Training nodes a class (random-per-class).")
    development: int = Field(
        1500,
        ge=1,
        description="Nodes drawn for training and validation together (random-per-class; coauthor-cs: 5000).",
    )
    train_share: float = Field(0.6, gt=0, lt=1, description="Share of each class to train on (fraction).")
    validation_share: float = Field(0.2, gt=0, lt=1, description="Share of each class to select on (fraction).")
    folds: int = Field(5, ge=3, description="Parts that take turns at testing (k-fold).")
    largest_component: bool = Field(True, description="Keep the largest connected component only.")
    directed: Annotated[bool, Parameter(alias="--directed", negative="")] = Field(
        False, description="Keep edges one-way where the source has directions."
    )
    normalisation: Normalisation | Literal["standardise"] = Field(
        "row-sum", description="Scaling of each node's features, or of numeric columns by their training nodes."
    )
    scale: float = Field(1.0, gt=0, description="Factor on the features after normalisation.")
    self_loops: bool = Field(False, description="Add an edge from every node to itself.")
    files: FilesConfig = Field(FilesConfig(), description="A graph of one's own.")

    def for_dataset(self, name: str) -> DataConfig:
        """These settings with what follows from the data set in place of what was not set."""
        own = self.files.nodes is not None or self.files.edges is not None
        if own != (name == OWN_GRAPH):
            if own:
                raise ValueError(f"--nodes and --edges read a graph of your own; leave out the data set {name!r}")
            raise ValueError(f"{OWN_GRAPH} needs files: pass --nodes and --edges")
        if own:
            return self._for_own_graph()
        info = DATASETS[name]
        protocol = self.protocol if "protocol" in self.model_fields_set else info.default
        if protocol not in info.protocols:
            raise ValueError(f"{name} has no protocol {protocol!r}; it has {', '.join(info.protocols)}")
        return self._with_defaults(
            protocol=protocol,
            development=info.development,
            largest_component=protocol == info.default == "random-per-class",
            normalisation=info.normalisation,
        )

    def _for_own_graph(self) -> DataConfig:
        self.files.to_read(directed=self.directed)
        if self.files.label is None:
            raise ValueError("a graph of your own needs the column of its classes; name it with --label")
        own_split = self.files.split_column is not None
        default: Protocol = "own-split" if own_split else "fraction"
        allowed = (*(("own-split",) if own_split else ()), *DRAWN)
        if "protocol" in self.model_fields_set and self.protocol not in allowed:
            hint = "; name the column of parts with --split-column" if self.protocol == "own-split" else ""
            raise ValueError(f"your graph has no protocol {self.protocol!r}; it has {', '.join(allowed)}{hint}")
        return self._with_defaults(protocol=default, largest_component=False, normalisation="standardise")

    def load(self, name: str, tell: Callable[[Understood], None] | None = None) -> NodeDataset:
        """Read the data set, or the user's files; ``tell`` hears what was made of the latter."""
        if name != OWN_GRAPH:
            return load_dataset(name, protocol=self.protocol, directed=self.directed)
        dataset, understood = read_graph(self.files.to_read(directed=self.directed))
        if tell:
            tell(understood)
        return dataset

    def split(self, dataset: NodeDataset, number: int) -> Split:
        """Split ``number`` of this protocol."""
        names = dataset.class_names
        if self.protocol == "random-per-class":
            sizes = {"per_class": self.per_class, "development": self.development}
            return random_per_class(dataset.y, number, **sizes, class_names=names)
        if self.protocol == "fraction":
            shares = {"train": self.train_share, "validation": self.validation_share}
            return fraction(dataset.y, number, **shares, class_names=names)
        if self.protocol == "k-fold":
            return k_fold(dataset.y, number, folds=self.folds, class_names=names)
        return given_split(dataset.given_splits, number)

    def _with_defaults(self, **defaults: Any) -> DataConfig:
        missing = {name: value for name, value in defaults.items() if name not in self.model_fields_set}
        # What was filled in does not count as set: a flag must not beat a file with a value nobody asked for.
        return DataConfig.model_construct(_fields_set=set(self.model_fields_set), **(self.__dict__ | missing))


def names_files(*layers: Mapping[str, Any]) -> bool:
    """Whether settings say where a graph of one's own is."""
    tables = [layer["data"].get("files") for layer in layers if isinstance(layer.get("data"), Mapping)]
    return any(isinstance(table, Mapping) and table.get("nodes") is not None for table in tables)
