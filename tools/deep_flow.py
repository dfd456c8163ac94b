"""How much accuracy KuramotoGNN loses at T = 100 on cora: `python tools/deep_flow.py STUDY`.

STUDY is a folder of `kuramotognn tune` at that depth (its study.json says with which settings). Its winner is compared,
on the study's confirmation splits and by validation accuracy, with the recommended settings at their own depth and
with GRAND-l without X(0) at T = 100; and itself without a clamp on X(0). Writes results/deep-flow.json.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from statistics import fmean
from typing import Any

from kuramotognn.atomic_write import write_atomically
from kuramotognn.config.resolve import read_toml, resolve
from kuramotognn.runs.provenance import provenance
from kuramotognn.sweeps.cells import Case, Cell
from kuramotognn.sweeps.tuning import BEST, CONFIRM
from kuramotognn.sweeps.tuning_plan import load_plan
from kuramotognn.sweeps.workers import run_cells

ROOT = Path(__file__).parent.parent
DEEP = {"model.time": 100.0, "solver.method": "euler", "solver.step_size": 0.1, "training.clip_norm": 5.0}
REFERENCES = {
    "KuramotoGNN, recommended settings": {"model.name": "kuramotognn"},
    "GRAND-l without X(0), T = 100": {"model.name": "grand-l-no-x0", **DEEP},
}
FREE = "KuramotoGNN, T = 100, X(0) not clamped"


def main() -> None:
    """Run what is missing, and write the result."""
    study = Path(sys.argv[1])
    splits = [split for split, _ in load_plan(study).confirm_on()]
    cases = {
        name: Case(resolve({"dataset": "cora"} | flags).config, "validation") for name, flags in REFERENCES.items()
    }
    scores = {name: _scores(case, splits, ROOT / "runs" / "deep-flow") for name, case in cases.items()}
    if (study / BEST).is_file():
        found = read_toml(study / BEST)
        winner = Case(resolve({}, found).config, "validation")
        cases["KuramotoGNN, T = 100"] = winner
        scores["KuramotoGNN, T = 100"] = _scores(winner, splits, study / CONFIRM)
        free = Case(resolve({"model.phase_range": None}, found).config, "validation")
        cases[FREE] = free
        scores[FREE] = _scores(free, splits, ROOT / "runs" / "deep-flow")
    rows: list[dict[str, Any]] = [
        {
            "model": name,
            "mean": fmean(each["validation_accuracy"] for each in found.values()),
            "splits": found,
            "config": cases[name].config.model_dump(mode="json"),
        }
        for name, found in scores.items()
    ]
    for row in rows:
        print(f"{row['model']:40s} {100 * row['mean']:.2f}")
    what = "validation accuracy on cora, random-per-class, tuning splits that the search did not use, seed 0"
    record = {"what": what, "rows": rows, "provenance": provenance()}
    write_atomically(ROOT / "results" / "deep-flow.json", json.dumps(record, indent=1, ensure_ascii=False) + "\n")


def _scores(case: Case, splits: list[int], folder: Path) -> dict[int, dict[str, Any]]:
    records = run_cells([Cell(case, split) for split in splits], folder)
    return {
        record["split"]: {
            "validation_accuracy": record["result"]["validation_accuracy"],
            "commit": record["provenance"]["commit"],
        }
        for record in records
    }


if __name__ == "__main__":
    main()
