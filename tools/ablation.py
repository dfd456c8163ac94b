"""What each option adds to KuramotoGNN on cora: `python tools/ablation.py [--jobs N]`.

Every option alone on top of the recommended settings, on tuning splits 1000 to 1009: validation accuracy, compared
split by split. Goes on where it stopped. Writes results/ablation.json, from which docs/results.md has its table.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from kuramotognn.atomic_write import write_atomically
from kuramotognn.config.resolve import resolve
from kuramotognn.reports.statistics import compare
from kuramotognn.sweeps.cells import Case, Cell
from kuramotognn.sweeps.outcomes import FIRST_TUNING_SPLIT
from kuramotognn.sweeps.workers import SweepObserver, run_cells

ROOT = Path(__file__).parent.parent
RESULT, RUNS = ROOT / "results" / "ablation.json", ROOT / "runs" / "ablation"
SPLITS = range(FIRST_TUNING_SPLIT, FIRST_TUNING_SPLIT + 10)
BASE = "recommended settings"
OPTIONS: dict[str, dict[str, Any]] = {
    BASE: {},
    "Ω detached": {"model.frequencies": "detached"},
    "phases not clamped": {"model.phase_range": None},
    "local-order interaction": {"model.interaction": "local-order"},
    "attention score cosine": {"model.attention_score": "cosine"},
    "attention score pearson": {"model.attention_score": "pearson"},
    "attention score exp-kernel": {"model.attention_score": "exp-kernel"},
    "squareplus": {"model.attention_squash": "squareplus"},
    "couplings normalised over columns": {"model.attention_normalise": "column"},
    "attention weights start constant": {"model.attention_init": "constant"},
    "ReLU before the decoder": {"model.decoder_activation": "relu"},
    "MLP encoder": {"model.encoder": "mlp"},
    "batch norm before the flow": {"model.batch_norm": True},
    "no self-loops": {"data.self_loops": False},
    "gradients clipped to norm 5": {"training.clip_norm": 5.0},
    "time selected up to T": {"training.select_time": True},
    "time selected up to 3 T": {"training.select_time": True, "training.time_reach": 3.0},
    "label smoothing 0.1": {"training.label_smoothing": 0.1},
    "cosine schedule": {"training.schedule": "cosine"},
    "plateau schedule": {"training.schedule": "plateau"},
    "weight decay 5e-4 of encoder and decoder": {"training.affine_weight_decay": 5e-4},
    "300 epochs, patience 100": {"training.epochs": 300, "training.patience": 100},
    "consistency, weight 1": {"training.consistency": 1.0},
    "consistency, weight 2": {"training.consistency": 2.0},
}


class Progress(SweepObserver):
    """Prints how far it is."""

    def counted(self, done: int, total: int) -> None:
        """Once for each split."""
        if done % len(OPTIONS) == 0:
            print(f"{done} of {total} runs", flush=True)


def cases() -> dict[str, Case]:
    """The settings of every option."""
    base = {"dataset": "cora", "model.name": "kuramotognn"}
    return {name: Case(resolve(base | flags).config, "validation") for name, flags in OPTIONS.items()}


def measure(jobs: int) -> tuple[dict[str, dict[int, float]], list[str]]:
    """Validation accuracy of every option on every split, and the commits; failures are left out."""
    found = cases()
    cells = [Cell(case, split) for split in SPLITS for case in found.values()]
    names = [name for _ in SPLITS for name in found]
    records = run_cells(cells, RUNS, processes=jobs, observer=Progress())
    if len(records) < len(cells):
        raise SystemExit("some runs have no result; give the same command again")
    scores: dict[str, dict[int, float]] = {name: {} for name in found}
    for name, record in zip(names, records, strict=True):
        if "result" in record:
            scores[name][record["split"]] = record["result"]["validation_accuracy"]
    return scores, sorted({record["provenance"]["commit"] for record in records})


def summary(scores: dict[str, dict[int, float]]) -> list[dict[str, Any]]:
    """A row for each option, with its paired difference to the base."""
    base, rows = scores[BASE], []
    for name, values in scores.items():
        row: dict[str, Any] = {"option": name, "settings": OPTIONS[name], "splits": values}
        common = sorted(values.keys() & base.keys())
        if common:
            differences = [values[split] - base[split] for split in common]
            row |= {
                "mean": float(np.mean([values[split] for split in common])),
                "difference": float(np.mean(differences)),
            }
            if name != BASE:
                row["p"] = compare({name: values, BASE: base})[0].p
        rows.append(row)
    return rows


def main() -> None:
    """Run what is missing, and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=2)
    scores, commits = measure(parser.parse_args().jobs)
    rows = summary(scores)
    record = {
        "what": "validation accuracy of kuramotognn on cora, random-per-class, tuning splits 1000-1009, seed 0",
        "rows": rows,
        "commits": commits,
    }
    write_atomically(RESULT, json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    for row in rows:
        mean, difference = 100 * row.get("mean", 0), 100 * row.get("difference", 0)
        print(f"{row['option']:45s} {mean:.2f} {difference:+.2f} {row.get('p', '')}")


if __name__ == "__main__":
    main()
