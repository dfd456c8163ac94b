"""The synchronisation transition: how order grows with the coupling."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from kuramotognn.files import write_atomically
from kuramotognn.simulate.arrays import Array
from kuramotognn.simulate.frequencies import Frequencies, critical_coupling, stationary_order
from kuramotognn.simulate.model import Oscillators
from kuramotognn.simulate.result import check_suffix
from kuramotognn.simulate.run import simulate


@dataclass(frozen=True, eq=False)
class Transition:
    """r(K).

    Attributes:
        couplings: ``[M]`` in the order in which they were run.
        order: ``[M]`` r averaged over time behind the transient.
        spread: ``[M]`` standard deviation of r over the same samples.
        theory: ``[M]`` r of infinitely many oscillators, where the model has such a curve.
        critical: K_c, likewise.
        settings: the model and how it was integrated.
    """

    couplings: Array
    order: Array
    spread: Array
    theory: Array | None
    critical: float | None
    settings: dict[str, Any]

    def save(self, path: str | Path) -> None:
        """Write a table as ``.csv`` or ``.parquet``, or everything as ``.json``."""
        path = Path(path)
        check_suffix(path, (".csv", ".parquet", ".json"))
        if path.suffix == ".json":
            write_atomically(path, json.dumps(self.as_dict(), indent=2) + "\n")
        elif path.suffix == ".csv":
            text = StringIO()
            self.table.write_csv(text)
            write_atomically(path, text.getvalue())
        else:
            buffer = BytesIO()
            self.table.write_parquet(buffer, metadata={"settings": json.dumps(self.settings)})
            write_atomically(path, buffer.getvalue())

    @property
    def table(self) -> pl.DataFrame:
        """A row a coupling."""
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
    **how: Any,
) -> Transition:
    """r for each coupling, each run started afresh with the same seed.

    Args:
        model: its own coupling is not used.
        couplings: the K to try.
        time: length of each run; r is averaged over its second half unless ``transient`` says otherwise.
        follow: start each run where the one before ended; up and then down shows hysteresis.
        on_coupling: called with the number of finished couplings and of all.
        **how: passed on to :func:`simulate`.
    """
    wanted = np.asarray(couplings, dtype=np.float64)
    if wanted.ndim != 1 or not wanted.size:
        raise ValueError(f"couplings must be a list of numbers, got shape {list(wanted.shape)}")
    order, spread = np.zeros(wanted.size), np.zeros(wanted.size)
    settings: dict[str, Any] = {}
    for number, coupling in enumerate(wanted):
        run = simulate(replace(model, graph=model.network, coupling=float(coupling)), time, **how)
        after = run.order[run.first :]
        order[number], spread[number] = after.mean(), after.std()
        settings = {**run.settings, "time": time, "follow": follow}
        settings.pop("coupling")
        if follow:
            how |= {"initial_phases": run.phases, "initial_velocities": run.velocities}
        if on_coupling is not None:
            on_coupling(number + 1, wanted.size)
    theory, critical = None, None
    if model.is_classical and isinstance(model.frequencies, Frequencies):
        critical = critical_coupling(model.frequencies)
        theory = np.array([stationary_order(model.frequencies, coupling) for coupling in wanted])
    return Transition(wanted, order, spread, theory, critical, settings)
