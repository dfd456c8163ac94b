"""The result of a simulation, and its files."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, fields
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from kuramotognn.atomic_write import write_atomically
from kuramotognn.simulate.arrays import Array

SUFFIXES = (".npz", ".parquet")
BY_TIME = {"times": "time", "order": "order", "angle": "angle", "trajectory": "phases"}
BY_OSCILLATOR = {
    "frequencies": "frequency",
    "mean_frequencies": "mean_frequency",
    "phases": "phase",
    "velocities": "velocity",
}
"""Columns of the two Parquet files, by attribute."""


@dataclass(frozen=True, eq=False)
class Simulation:
    """A finished simulation; r e^{iψ} = (1/N) Σ_j e^{iθ_j}.

    Attributes:
        times: ``[S + 1]`` times of the samples.
        order: ``[S + 1]`` r at these times.
        angle: ``[S + 1]`` ψ at these times.
        phases: ``[N]`` final phases in [−π, π].
        frequencies: ``[N]`` natural frequencies.
        mean_frequencies: ``[N]`` (θ(T) − θ(t)) / (T − t) with t = ``times[first]``, the end of the transient.
        velocities: ``[N]`` final velocities, for a model with inertia.
        trajectory: ``[S + 1, N]`` phases at all times, if they were kept.
        first: the first sample after the transient.
        settings: the settings of the model and of the integration.
    """

    times: Array
    order: Array
    angle: Array
    phases: Array
    frequencies: Array
    mean_frequencies: Array
    velocities: Array | None
    trajectory: Array | None
    first: int
    settings: dict[str, Any]

    @property
    def mean_order(self) -> float:
        """The mean of r after the transient."""
        return float(self.order[self.first :].mean())

    def save(self, path: str | Path) -> None:
        """Write ``.npz``, or ``.parquet`` (one row per time) and ``.oscillators.parquet`` (one row per oscillator)."""
        path = Path(path)
        check_suffix(path, SUFFIXES)
        parts = {part.name: getattr(self, part.name) for part in fields(self)}
        settings = json.dumps(self.settings)
        if path.suffix == ".parquet":
            for target, names in ((path, BY_TIME), (_oscillators_path(path), BY_OSCILLATOR)):
                columns = {column: parts[name] for name, column in names.items() if parts[name] is not None}
                write_parquet(target, pl.DataFrame(columns), {"settings": settings, "first": str(self.first)})
            return
        arrays: Any = {name: value for name, value in parts.items() if isinstance(value, np.ndarray)}
        buffer = BytesIO()
        np.savez_compressed(buffer, settings=np.array(settings), first=self.first, **arrays)
        write_atomically(path, buffer.getvalue())

    @staticmethod
    def load(path: str | Path) -> Simulation:
        """Read a file of :meth:`save`."""
        path = Path(path)
        check_suffix(path, SUFFIXES)
        if not path.is_file():
            raise ValueError(f"simulation {str(path)!r} does not exist")
        try:
            parts = _load_npz(path) if path.suffix == ".npz" else _load_parquet(path)
            settings, first = json.loads(str(parts.pop("settings"))), int(parts.pop("first"))
            return Simulation(**parts, first=first, settings=settings)
        except (KeyError, TypeError, ValueError, EOFError, zipfile.BadZipFile, pl.exceptions.PolarsError) as error:
            raise ValueError(f"{path} is not a saved simulation: {error}") from None


def check_suffix(path: Path, suffixes: tuple[str, ...]) -> None:
    """Raise ValueError unless the file name ends in one of the suffixes."""
    if path.suffix not in suffixes:
        raise ValueError(f"{str(path)!r} must end in {' or '.join(suffixes)}")


def write_parquet(path: Path, table: pl.DataFrame, metadata: Mapping[str, str]) -> None:
    """Write a Parquet file atomically."""
    buffer = BytesIO()
    table.write_parquet(buffer, metadata=dict(metadata))
    write_atomically(path, buffer.getvalue())


def _oscillators_path(path: Path) -> Path:
    return path.with_suffix(".oscillators.parquet")


def _load_npz(path: Path) -> dict[str, Any]:
    with np.load(path, allow_pickle=False) as file:
        return {part.name: file.get(part.name) for part in fields(Simulation)}


def _load_parquet(path: Path) -> dict[str, Any]:
    parts: dict[str, Any] = dict(pl.read_parquet_metadata(path))
    for table, names in ((pl.read_parquet(path), BY_TIME), (pl.read_parquet(_oscillators_path(path)), BY_OSCILLATOR)):
        parts |= {name: table[column].to_numpy() if column in table.columns else None for name, column in names.items()}
    return {part.name: parts[part.name] for part in fields(Simulation)}
