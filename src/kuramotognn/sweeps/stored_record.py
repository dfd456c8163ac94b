"""Types by which stored records are validated: files may have been edited or come from another machine."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator

from kuramotognn.train_result import Count

Number = Annotated[float, Field(allow_inf_nan=False)]


class _Stored(BaseModel):
    model_config = ConfigDict(strict=True, extra="allow")


class _Machine(_Stored):
    system: str
    architecture: str
    processors: int | None
    threads: int


class _Provenance(_Stored):
    kuramotognn: str
    commit: str | None
    packages: dict[str, str]
    machine: _Machine


class _Model(_Stored):
    name: str


class _Config(_Stored):
    dataset: str
    model: _Model


class _Result(_Stored):
    """What tables and charts read; each is there for some outcomes only."""

    protocol: str
    test_accuracy: Number = 0.0
    validation_accuracy: Number = 0.0
    validation_score: Number = 0.0
    evaluations: Number = 0.0
    mean_evaluations: Number = 0.0
    epoch_evaluations: Number = 0.0
    epoch_ms: Number = 0.0
    evaluation_ms: Number = 0.0
    seconds: Annotated[Number, Field(ge=0)] = 0.0
    nodes: Count = 0
    edges: Count = 0
    features: Count = 0
    classes: Count = 0
    times: list[Number] = Field(default_factory=list)
    curves: dict[str, list[Number]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _curves_over_times(self) -> _Result:
        if any(len(curve) != len(self.times) for curve in self.curves.values()):
            raise ValueError("curves must have a value at each of the times")
        return self


class StoredRecord(_Stored):
    """A result or the reason of a failure, with what it must be read with."""

    format: int
    case: str
    outcome: str
    split: Count
    seed: Count
    config: _Config
    backend: str
    provenance: _Provenance
    fingerprint: list[Number] = Field(default_factory=list)
    finished: str
    result: _Result | None = None
    failed: str | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> StoredRecord:
        if (self.result is None) == (self.failed is None):
            raise ValueError("a record has a result or says why it failed")
        return self
