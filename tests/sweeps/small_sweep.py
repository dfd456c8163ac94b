"""A sweep of small cells as a program of its own, so that tests can kill it: ``python -m … FOLDER JOBS SPLITS``."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from kuramotognn.config.resolve import resolve
from kuramotognn.sweeps.cells import Case, Cell
from kuramotognn.sweeps.workers import SweepObserver, run_cells


def small_jobs(splits: int = 10, epochs: int = 3) -> list[Cell]:
    """Real trainings of a fraction of a second, of two cases."""
    cases = []
    for model in ("kuramotognn", "gcn"):
        settings: dict[str, object] = {"model": {"name": model, "hidden_channels": 4}, "training": {"epochs": epochs}}
        cases.append(Case(resolve({}, {"recommended": False, **settings}).config))
    return [Cell(case, split) for split in range(splits) for case in cases]


class Log(SweepObserver):
    """Writes down what this runner has done."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"{os.getpid()}.log"

    def finished(self, cell: Cell, record: dict[str, Any]) -> None:
        with self.path.open("a") as file:
            file.write(f"{cell.name}\n")


if __name__ == "__main__":
    target = Path(sys.argv[1])
    run_cells(small_jobs(int(sys.argv[3])), target, processes=int(sys.argv[2]), observer=Log(target))
