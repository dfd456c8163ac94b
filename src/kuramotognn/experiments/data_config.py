"""Settings of the data: what is read, how features are scaled, and which nodes train, select and test."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from kuramotognn.data import DATASETS, NodeDataset, Protocol, Split, fraction, given_split, k_fold, random_per_class
from kuramotognn.features import Normalisation

ONE_SPLIT: tuple[Protocol, ...] = ("planetoid-public", "ogb-time", "own-split")
"""Protocols with a single split."""


class DataConfig(BaseModel):
    """What is read, and which nodes train, select and test. What is not set follows from the data set."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    protocol: Protocol = Field("random-per-class", description="How nodes are split; each data set has its own.")
    per_class: int = Field(20, ge=1, description="Training nodes a class (random-per-class).")
    development: int = Field(
        1500, ge=1, description="Nodes drawn for training and validation together (random-per-class; coauthor-cs: 5000)."
    )
    train_share: float = Field(0.6, gt=0, lt=1, description="Share of each class to train on (fraction).")
    validation_share: float = Field(0.2, gt=0, lt=1, description="Share of each class to select on (fraction).")
    folds: int = Field(5, ge=3, description="Parts that take turns at testing (k-fold).")
    largest_component: bool = Field(True, description="Keep the largest connected component only.")
    directed: bool = Field(False, description="Keep edges one-way where the source has directions.")
    normalisation: Normalisation = Field("row-sum", description="Scaling of each node's features.")
    scale: float = Field(1.0, gt=0, description="Factor on the features after normalisation.")
    self_loops: bool = Field(False, description="Add an edge from every node to itself.")

    def for_dataset(self, name: str) -> DataConfig:
        """These settings with what follows from the data set in place of what was not set."""
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
