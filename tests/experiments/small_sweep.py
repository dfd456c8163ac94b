"""A sweep of small jobs as a program of its own, so that tests can kill it: ``python -m … FOLDER JOBS SPLITS``."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from kuramotognn.experiments.config import resolve
from kuramotognn.experiments.jobs import Cell, Job
from kuramotognn.experiments.workers import SweepObserver, run_jobs


def small_jobs(splits: int = 10, epochs: int = 3) -> list[Job]:
    """Real trainings of a fraction of a second, of two cells."""
    cells = []
    for model in ("kuramotognn", "gcn"):
        settings = {"model": {"name": model, "hidden_channels": 4}, "training": {"epochs": epochs}}
        cells.append(Cell(resolve(settings).config))
    return [Job(cell, split) for split in range(splits) for cell in cells]


class Log(SweepObserver):
    """Writes down what this runner has done."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"{os.getpid()}.log"

    def finished(self, job: Job, record: dict[str, Any]) -> None:
        with self.path.open("a") as file:
            file.write(f"{job.name}\n")


if __name__ == "__main__":
    target = Path(sys.argv[1])
    run_jobs(small_jobs(int(sys.argv[3])), target, processes=int(sys.argv[2]), observer=Log(target))
