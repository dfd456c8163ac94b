"""What a simulation found, and files of it."""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from kuramotognn.files import write_atomically
from kuramotognn.simulate.arrays import Array

SUFFIXES = (".npz", ".parquet")


@dataclass(frozen=True, eq=False)
class Simulation:
    """A finished run; r e^{iψ} = (1/N) Σ_j e^{iθ_j}.

    Attributes:
        times: ``[S + 1]``.
        order: ``[S + 1]`` r at these times.
        angle: ``[S + 1]`` ψ at these times.
        phases: ``[N]`` at the end, in [−π, π].
        frequencies: ``[N]`` natural ones.
        mean_frequencies: ``[N]`` (θ(T) − θ(t)) / (T − t) with t = ``times[first]``, the end of the transient.
        velocities: ``[N]`` at the end, for a model with inertia.
        trajectory: ``[S + 1, N]`` phases at these times where they were kept.
        first: the first sample behind the transient.
        settings: the model and how it was integrated.
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
        """r averaged over the samples behind the transient."""
        return float(self.order[self.first :].mean())

    def save(self, path: str | Path) -> None:
        """Write ``.npz``, or ``.parquet`` by time and, beside it, ``.oscillators.parquet`` by oscillator."""
        path = Path(path)
        check_suffix(path, SUFFIXES)
        if path.suffix == ".parquet":
            self._save_parquet(path)
            return
        buffer = io.BytesIO()
        arrays: Any = {name: value for name, value in self._parts().items() if isinstance(value, np.ndarray)}
        np.savez_compressed(buffer, settings=np.array(json.dumps(self.settings)), first=self.first, **arrays)
        write_atomically(path, buffer.getvalue())

    def _parts(self) -> dict[str, Any]:
        return {part.name: getattr(self, part.name) for part in fields(self)}

    def _save_parquet(self, path: Path) -> None:
        table = pl.DataFrame({"time": self.times, "order": self.order, "angle": self.angle})
        if self.trajectory is not None:
            table = table.with_columns(phases=pl.Series(self.trajectory, dtype=_row_type(self.trajectory)))
        columns = {
            "frequency": self.frequencies,
            "mean_frequency": self.mean_frequencies,
            "phase": self.phases,
        }
        if self.velocities is not None:
            columns["velocity"] = self.velocities
        facts = {"settings": json.dumps(self.settings), "first": str(self.first)}
        for target, frame in ((path, table), (beside(path), pl.DataFrame(columns))):
            buffer = io.BytesIO()
            frame.write_parquet(buffer, metadata=facts)
            write_atomically(target, buffer.getvalue())

    @staticmethod
    def load(path: str | Path) -> Simulation:
        """Read what :meth:`save` wrote."""
        path = Path(path)
        check_suffix(path, SUFFIXES)
        if not path.is_file():
            raise ValueError(f"simulation {str(path)!r} does not exist")
        try:
            return _load_npz(path) if path.suffix == ".npz" else _load_parquet(path)
        except (KeyError, ValueError, EOFError, zipfile.BadZipFile, pl.exceptions.PolarsError) as error:
            raise ValueError(f"{path} is not a saved simulation: {error}") from None


def check_suffix(path: Path, suffixes: tuple[str, ...]) -> None:
    """Refuse a file name that says nothing about its format."""
    if path.suffix not in suffixes:
        raise ValueError(f"{str(path)!r} must end in {' or '.join(suffixes)}")


def beside(path: Path) -> Path:
    """Where a Parquet file's table by oscillator is."""
    return path.with_suffix(".oscillators.parquet")


def _row_type(trajectory: Array) -> pl.DataType:
    return pl.Array(pl.Float32 if trajectory.dtype == np.float32 else pl.Float64, trajectory.shape[1])


def _load_npz(path: Path) -> Simulation:
    with np.load(path, allow_pickle=False) as file:
        parts: dict[str, Any] = {part.name: file.get(part.name) for part in fields(Simulation)}
    parts["settings"], parts["first"] = json.loads(str(parts["settings"])), int(parts["first"])
    return Simulation(**parts)


def _load_parquet(path: Path) -> Simulation:
    facts = pl.read_parquet_metadata(path)
    table, by_oscillator = pl.read_parquet(path), pl.read_parquet(beside(path))

    def column(frame: pl.DataFrame, name: str) -> Array | None:
        return frame[name].to_numpy() if name in frame.columns else None

    return Simulation(
        times=table["time"].to_numpy(),
        order=table["order"].to_numpy(),
        angle=table["angle"].to_numpy(),
        phases=by_oscillator["phase"].to_numpy(),
        frequencies=by_oscillator["frequency"].to_numpy(),
        mean_frequencies=by_oscillator["mean_frequency"].to_numpy(),
        velocities=column(by_oscillator, "velocity"),
        trajectory=column(table, "phases"),
        first=int(facts["first"]),
        settings=json.loads(facts["settings"]),
    )
