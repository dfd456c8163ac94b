"""The synchronisation transition: the order parameter as a function of the coupling strength."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from kuramotognn.atomic_write import write_atomically
from kuramotognn.simulate.arrays import Array
from kuramotognn.simulate.model import Oscillators
from kuramotognn.simulate.natural_frequencies import Frequencies, critical_coupling, stationary_order
from kuramotognn.simulate.result import check_suffix, write_parquet
from kuramotognn.simulate.simulation import simulate


@dataclass(frozen=True, eq=False)
class Transition:
    """r(K).

    Attributes:
        couplings: ``[M]`` coupling strengths K, in the order of the runs.
        order: ``[M]`` mean of r after the transient.
        spread: ``[M]`` standard deviation of r over the same samples.
        theory: ``[M]`` r of infinitely many oscillators, if it is known for the model.
        critical: K_c, if it is known for the model.
        settings: the settings of the model and of the integration.
    """

    couplings: Array
    order: Array
    spread: Array
    theory: Array | None
    critical: float | None
    settings: dict[str, Any]

    def save(self, path: str | Path) -> None:
        """Write the table as ``.csv`` or ``.parquet``, or everything as ``.json``."""
        path = Path(path)
        check_suffix(path, (".csv", ".parquet", ".json"))
        if path.suffix == ".json":
            write_atomically(path, json.dumps(self.as_dict(), indent=2) + "\n")
        elif path.suffix == ".csv":
            write_atomically(path, self.table.write_csv())
        else:
            write_parquet(path, self.table, {"settings": json.dumps(self.settings)})

    @property
    def table(self) -> pl.DataFrame:
        """One row per coupling strength."""
        columns = {"coupling": self.couplings, "order": self.order, "spread": self.spread}
        return pl.DataFrame(columns if self.theory is None else columns | {"theory": self.theory})

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {"settings": self.settings, "critical": self.critical, "rows": self.table.to_dicts()}


def transition(
    model: Oscillators,
    couplings: Sequence[float] | Array,
    time: float = 50.0,
    *,
    follow: bool = False,
    on_coupling: Callable[[int, int], None] | None = None,
    **options: Any,
) -> Transition:
    """Simulate the model for each coupling strength, with the same seed.

    Args:
        model: the model; its own coupling strength is not used.
        couplings: the coupling strengths K.
        time: length of each run; r is averaged over its second half unless ``transient`` is given.
        follow: start each run from the final state of the one before; K up and then down shows hysteresis.
        on_coupling: called with the number of finished runs and of all runs.
        **options: further arguments of :func:`simulate`.
    """
    strengths = np.asarray(couplings, dtype=np.float64)
    if strengths.ndim != 1 or not strengths.size:
        raise ValueError(f"couplings must be a list of numbers, got shape {list(strengths.shape)}")
    order, spread = np.zeros(strengths.size), np.zeros(strengths.size)
    settings: dict[str, Any] = {}
    for number, strength in enumerate(strengths):
        run = simulate(replace(model, graph=model.network, coupling=float(strength)), time, **options)
        after = run.order[run.first :]
        order[number], spread[number] = after.mean(), after.std()
        settings = {**run.settings, "time": time, "follow": follow}
        settings.pop("coupling")
        if follow:
            options |= {"initial_phases": run.phases, "initial_velocities": run.velocities}
        if on_coupling is not None:
            on_coupling(number + 1, strengths.size)
    theory, critical = None, None
    if model.is_classical and isinstance(model.frequencies, Frequencies):
        critical = critical_coupling(model.frequencies)
        theory = np.array([stationary_order(model.frequencies, strength) for strength in strengths])
    return Transition(strengths, order, spread, theory, critical, settings)
