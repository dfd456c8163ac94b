"""Five models on most of amazon-ratings: `python tools/amazon_ratings.py amazon_ratings_98.npz [--jobs N]`.

The file has all nodes, features and labels of amazon-ratings, but 98.8 % of its edges and none of its masks. So models
are compared with each other alone, on splits of our own: 50 % of each class for training, 25 % for validation. Settings
are searched with the same effort for each model, by validation accuracy on a tuning split. Goes on where it stopped.
Writes results/amazon-ratings-98.json, from which docs/results.md has its table.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

from kuramotognn.atomic_write import write_atomically
from kuramotognn.config.resolve import read_toml, resolve
from kuramotognn.sweeps.cells import Case, Cell
from kuramotognn.sweeps.workers import run_cells

ROOT = Path(__file__).parent.parent
STUDIES, RUNS = ROOT / "studies", ROOT / "runs" / "amazon-ratings-98"
RESULT, FIXED = ROOT / "results" / "amazon-ratings-98.json", Path("tools", "tuning", "amazon-ratings.toml")
MODELS = ("kuramotognn", "kuramotognn-res", "graphcon", "graphcon-res", "grand-l")
EFFORT = ["--trials", "12", "--tuning-splits", "1", "--candidates", "2", "--confirmation-splits", "2"]
SPLITS = range(5)


def command(model: str, file: Path) -> list[str]:
    """The search for a model's settings, from the root of the checkout."""
    solver = ["--solver.method", "imex"] if model.startswith("graphcon") else []
    words = ["kuramotognn", "tune", "--nodes", str(file), "--config", str(FIXED), "--model", model, *solver, *EFFORT]
    return [*words, "--out", str(Path("studies", f"amazon-ratings-98-{model}"))]


def search(model: str, file: Path) -> Path:
    """The folder of a finished search."""
    folder = STUDIES / f"amazon-ratings-98-{model}"
    if not (folder / "tuning.json").is_file():
        going_on = (folder / "study.json").is_file()
        words = ["kuramotognn", "tune", "--resume", str(folder)] if going_on else command(model, file)
        print(shlex.join(words), flush=True)
        subprocess.run([sys.executable, "-m", *words, "--quiet"], cwd=ROOT, check=True)
    return folder


def measured(model: str, file: Path, jobs: int) -> dict[str, Any]:
    """Settings and accuracies of a model."""
    folder = search(model, file)
    config = resolve({}, read_toml(folder / "best.toml")).config
    records = run_cells([Cell(Case(config), split) for split in SPLITS], RUNS, processes=jobs)
    if len(records) < len(SPLITS) or any("result" not in record for record in records):
        raise SystemExit(f"{model}: some runs have no result; give the same command again")
    found = json.loads((folder / "tuning.json").read_text(encoding="utf-8"))
    settings = config.model_dump(mode="json", include={"model", "solver", "training"})
    settings["data"] = config.data.model_dump(mode="json", exclude={"files"})
    return {
        "model": model,
        "search": shlex.join(command(model, Path(file.name))),
        "trials": found["trials"],
        "settings": settings,
        "splits": {record["split"]: record["result"]["test_accuracy"] for record in records},
        "validation": {record["split"]: record["result"]["validation_accuracy"] for record in records},
        "commits": sorted({record["provenance"]["commit"] for record in records}),
    }


def main() -> None:
    """Search, train, and write the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="amazon_ratings_98.npz")
    parser.add_argument("--jobs", type=int, default=2, help="processes, each with one thread")
    chosen = parser.parse_args()
    rows = [measured(model, chosen.file.absolute(), chosen.jobs) for model in MODELS]
    write_atomically(RESULT, json.dumps({"rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
