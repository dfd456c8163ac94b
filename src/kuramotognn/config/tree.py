"""The tree of settings: everything that decides a run's numbers, as a file, a flag and Python spell it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import tomli_w
import torch
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializeAsAny,
    field_validator,
    model_validator,
)

from kuramotognn.config.model_settings import ModelSettings, default_solver, model_settings
from kuramotognn.data import (
    DATASETS,
    DRAWN,
    OWN_GRAPH,
    PROTOCOLS,
    DataError,
    GraphFiles,
    GraphSummary,
    NodeDataset,
    Protocol,
    Split,
    dataset_name,
    fraction,
    given_split,
    given_splits,
    k_fold,
    load_dataset,
    random_per_class,
    read_graph,
)
from kuramotognn.features import Normalisation
from kuramotognn.kernels import Backend
from kuramotognn.models.lookup import find_model, model_name
from kuramotognn.models.registry import DEFAULT_MODEL
from kuramotognn.solver import ADAPTIVE, Solver
from kuramotognn.training_config import TrainingConfig
from kuramotognn.typing import PositiveFloat


class Strict(BaseModel):
    """Unknown keys are errors, values are not changed after validation."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class DataConfig(Strict):
    """What is read, and which nodes train, select and test. Defaults depend on the data set."""

    protocol: Protocol = Field("random-per-class", description="How nodes are split (default: the data set's own).")
    per_class: int = Field(20, ge=1, description="Training nodes a class (random-per-class).")
    development: int = Field(
        1500,
        ge=1,
        description="Nodes drawn for training and validation together (random-per-class; coauthor-cs: 5000).",
    )
    train_share: float = Field(0.6, gt=0, lt=1, description="Share of each class to train on (fraction).")
    validation_share: float = Field(0.2, gt=0, lt=1, description="Share of each class to select on (fraction).")
    folds: int = Field(5, ge=3, description="Parts, each of which tests once (k-fold).")
    largest_component: bool = Field(True, description="Keep the largest connected component only.")
    directed: bool = Field(False, description="Keep edges one-way where the source has directions.")
    normalisation: Normalisation | Literal["standardise"] = Field(
        "row-sum", description="Scaling of each node's features, or of numeric columns by their training nodes."
    )
    scale: float = Field(1.0, gt=0, description="Factor on the features after normalisation.")
    reverse_edges: bool = Field(False, description="Turn one-way edges round: messages go from target to source.")
    self_loops: bool = Field(False, description="Add an edge from every node to itself.")
    files: GraphFiles | None = Field(None, description="A graph of one's own.")

    def load(self, name: str, on_read: Callable[[GraphSummary], None] | None = None) -> NodeDataset:
        """Read the data set, or the user's files; ``on_read`` is called with a summary of the latter."""
        if self.files is None:
            return load_dataset(name, protocol=self.protocol, directed=self.directed)
        dataset, summary = read_graph(self.files, directed=self.directed)
        if not dataset.class_names:
            raise DataError("a graph of your own needs the column of its classes; name it with --label")
        if self.protocol == "own-split" and not dataset.given_splits:
            raise DataError(
                f"your graph has no protocol 'own-split'; it has {', '.join(DRAWN)}; name the column of parts with "
                "--split-column"
            )
        if on_read:
            on_read(summary)
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


class Config(Strict):
    """Everything that decides a run's numbers."""

    dataset: str = Field("cora", description="Name of the data set; see `kuramotognn datasets`.")
    splits: int = Field(5, ge=1, le=10_000, description="How many splits to train on (1 where a protocol has no more).")
    first_split: int = Field(0, ge=0, lt=2**31, description="Number of the first split; tuning uses 1000 and up.")
    seed: int = Field(0, ge=0, lt=2**63, description="Seed of initialisation and dropout.")
    device: str = Field("cpu", description="Where to compute: cpu, cuda, cuda:1, …")
    backend: Backend = Field("auto", description="Kernels: fused on CPUs, torch anywhere, auto the faster available.")
    preset: str | None = Field(
        None, description="Start from this preset, such as as-coded, instead of recommended settings."
    )
    try_times: tuple[PositiveFloat, ...] = Field(
        (), description="Choose model.time among these, by validation on the first split; for graphs of your own."
    )
    data: DataConfig = Field(description="What is read and how it is split.")
    model: Annotated[SerializeAsAny[ModelSettings], BeforeValidator(lambda values: _model(values))] = Field(
        description="The model."
    )
    solver: Solver = Field(description="How the flow is integrated.")
    training: TrainingConfig = Field(TrainingConfig(), description="How the model is trained.")

    @model_validator(mode="before")
    @classmethod
    def _with_defaults(cls, values: Any) -> Any:
        return with_defaults(values) if isinstance(values, Mapping) else values

    @field_validator("device")
    @classmethod
    def _usable_device(cls, name: str) -> str:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # Of names that torch is about to drop.
                made = torch.empty(0, device=name)
            if made.is_meta:
                raise ValueError(f"device {name!r} holds no numbers; take cpu or cuda")
        except (RuntimeError, AssertionError, ImportError) as error:
            reason = str(error).splitlines()[0].split(", ipu")[0].split(". ")[0]
            raise ValueError(f"device {name!r} cannot be used here: {reason}") from error
        return name

    @model_validator(mode="after")
    def _consistent(self) -> Config:
        files, protocol = self.data.files, self.data.protocol
        if files is None:
            allowed = DATASETS[self.dataset].protocols
            if protocol not in allowed:
                raise ValueError(f"{self.dataset} has no protocol {protocol!r}; it has {', '.join(allowed)}")
            return self
        if protocol not in ("own-split", *DRAWN):
            raise ValueError(f"your graph has no protocol {protocol!r}; it has {', '.join(('own-split', *DRAWN))}")
        return self

    def to_toml(self) -> str:
        """These settings as a TOML file."""
        return tomli_w.dumps(self.model_dump(mode="json", exclude_none=True))


def with_defaults(values: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with the defaults that depend on others: on data set, protocol and model."""
    data, model, solver = (_table(values.get(name)) for name in ("data", "model", "solver"))
    dataset = _dataset(values.get("dataset"), data)
    if data is not None:
        if isinstance(data.get("files"), Mapping):
            data["files"] = _table(data["files"])
        splits, defaults = data_defaults(dataset, data, complete="splits" in values and "protocol" in data)
        data = defaults | data
        values = {"splits": min(5, splits)} | dict(values)
    if model is not None:
        model = {"name": DEFAULT_MODEL} | model
        model["name"] = model_name(str(model["name"]))
        if solver is not None:
            solver = solver_defaults(model["name"], solver) | solver
    replaced = {"dataset": dataset, "data": data, "model": model, "solver": solver}
    # What is no table is left for validation to refuse.
    return _tuples(values) | {name: value for name, value in replaced.items() if value is not None}


def data_defaults(dataset: str, given: Mapping[str, Any], *, complete: bool = False) -> tuple[int, dict[str, Any]]:
    """The number of splits, and settings of the data that follow from the data set and its protocol.

    Files are opened only if they decide either: settings of a run folder are ``complete``.
    """
    if dataset == OWN_GRAPH:
        protocol, splits = (given.get("protocol"), 1) if complete else _own_protocol(given)
        return splits, {"protocol": protocol, "largest_component": False, "normalisation": "standardise"}
    info = DATASETS[dataset]
    protocol = given.get("protocol", info.default)
    return _splits_of(protocol), {
        "protocol": protocol,
        "development": info.development,
        "largest_component": protocol == info.default == "random-per-class",
        "normalisation": info.normalisation,
    }


def _own_protocol(given: Mapping[str, Any]) -> tuple[Any, int]:
    """The protocol of a user's graph and its number of splits: those in its files, if there are any."""
    protocol, files = given.get("protocol"), _table(given.get("files")) or {}
    if protocol in (None, "own-split") and isinstance(files.get("nodes"), str | Path):
        own = given_splits(GraphFiles(Path(files["nodes"]), split_column=files.get("split_column")))
        if own or protocol is not None:
            return "own-split", max(own, 1)
    return (protocol, _splits_of(protocol)) if protocol is not None else ("fraction", _splits_of("fraction"))


def _splits_of(protocol: Any) -> int:
    return PROTOCOLS[protocol].splits if protocol in PROTOCOLS else 1


def solver_defaults(model: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of the model's own solver, as far as they go with those given."""
    own = default_solver(find_model(model))
    if given.get("method", own.method) in ADAPTIVE:
        return {"method": own.method}
    return {"method": own.method} | ({} if "steps" in given or own.step_size is None else {"step_size": own.step_size})


def _dataset(name: Any, data: Mapping[str, Any] | None) -> Any:
    own = data is not None and data.get("files") is not None
    if name is None:
        return OWN_GRAPH if own else "cora"
    known = dataset_name(str(name))
    if own != (known == OWN_GRAPH):
        if own:
            raise ValueError(f"--nodes and --edges read a graph of your own; leave out the data set {known!r}")
        raise ValueError(f"{OWN_GRAPH} needs files: pass --nodes, and --edges unless they are in the same file")
    return known


def _table(value: Any) -> dict[str, Any] | None:
    """A table of settings as a dict: what is missing is empty, an object gives what was set; None for anything else."""
    if value is None:
        return {}
    if isinstance(value, BaseModel):
        return value.model_dump(exclude_unset=not isinstance(value, ModelSettings))
    if isinstance(value, Solver | GraphFiles):
        return {name: each for name, each in vars(value).items() if each is not None}
    if not isinstance(value, Mapping):
        return None
    return _tuples(value)


def _tuples(settings: Mapping[str, Any]) -> dict[str, Any]:
    """TOML and JSON have lists where settings are tuples."""
    return {name: tuple(each) if isinstance(each, list) else each for name, each in settings.items()}


def _model(values: Any) -> Any:
    return model_settings(values) if isinstance(values, Mapping) else values
