"""Search settings for the models of the tables, with the same effort for each: `make tune-all`.

Every study is one `kuramotognn tune`, printed before it starts. It begins with the defaults and, where the public
code has settings, with those; settings recommended so far take no part. Options that the paper's equations do not have
are left out of the search for all models (tools/tuning). A finished study is kept as results/tuning/DATASET/MODEL.json
and MODEL.toml; the latter becomes the recommended settings by `python tools/recommend.py results/tuning/*/*.toml`. What
is there is not searched again; a study that was interrupted goes on. A part of it:
`python tools/tune_all.py --datasets cora,texas --models gcn`.
"""

from __future__ import annotations

import argparse
import csv
import json
import shlex
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kuramotognn.atomic_write import write_atomically

ROOT = Path(__file__).parent.parent
STUDIES, RESULTS = ROOT / "studies", ROOT / "results" / "tuning"
TABLE = ROOT / "results" / "tuning.csv"
PRESETS = ROOT / "src" / "kuramotognn" / "config" / "presets" / "as-coded"
FIXED = ROOT / "tools" / "tuning"
MAIN = ("kuramotognn", "gcn", "graphsage", "grand-l", "grand++", "gat", "graphcon", "gcnii")
WEBKB = ("kuramotognn", "grand-l", "graphcon", "gcnii")
#: Which file of tools/tuning says what is not searched.
FAMILY = dict.fromkeys(("kuramotognn", "grand-l", "grand++"), "attention-flow") | {"graphcon": "second-order"}
LARGE = ("--trials", "24", "--tuning-splits", "4", "--candidates", "3", "--confirmation-splits", "6")
LARGE = (*LARGE, "--training.epochs", "200", "--training.patience", "40")
SMALL = ("--trials", "40", "--tuning-splits", "8", "--candidates", "4", "--confirmation-splits", "12")
SMALL = (*SMALL, "--training.epochs", "300", "--training.patience", "60")
GIVEN = ("--trials", "40", "--tuning-splits", "10", "--candidates", "4", "--confirmation-splits", "20")
#: Small graphs first, so that tables grow evenly.
PLAN = {
    "cora": (MAIN, SMALL),
    "texas": (WEBKB, GIVEN),
    "wisconsin": (WEBKB, GIVEN),
    "cornell": (WEBKB, GIVEN),
    "citeseer": (MAIN, SMALL),
    "photo": (MAIN, LARGE),
    "pubmed": (MAIN, LARGE),
    "coauthor-cs": (MAIN, LARGE),
    "computers": (MAIN, LARGE),
}


@dataclass(frozen=True)
class Study:
    """The search for one model on one data set."""

    dataset: str
    model: str
    effort: Sequence[str]

    @property
    def result(self) -> Path:
        """Where a finished study is kept."""
        return RESULTS / self.dataset / f"{self.model}.json"

    @property
    def folder(self) -> Path:
        """Where the search is while it goes on."""
        return STUDIES / f"{self.dataset}-{self.model}"

    @property
    def command(self) -> list[str]:
        """What to type, from the root of the checkout."""
        words = ["kuramotognn", "tune", "--dataset", self.dataset, "--model", self.model, *self.effort]
        words += ["--config", str((FIXED / f"{FAMILY.get(self.model, 'discrete')}.toml").relative_to(ROOT))]
        preset = PRESETS / self.dataset / f"{self.model}.toml"
        if preset.is_file():
            words += ["--start", str(preset.relative_to(ROOT))]
        return [*words, "--out", str(self.folder.relative_to(ROOT))]

    def run(self) -> None:
        """Search, and keep the result."""
        going_on = (self.folder / "study.json").is_file()
        words = ["kuramotognn", "tune", "--resume", str(self.folder.relative_to(ROOT))] if going_on else self.command
        print(shlex.join(words), flush=True)
        done = subprocess.run([sys.executable, "-m", *words, "--quiet"], cwd=ROOT, capture_output=True, text=True)
        if done.returncode:
            print(f"{self.dataset} {self.model} stopped: {done.stderr.strip()}", flush=True)
            return
        found = json.loads((self.folder / "tuning.json").read_text(encoding="utf-8"))
        self.result.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(self.result, json.dumps({"command": shlex.join(self.command), **found}) + "\n")
        best = (self.folder / "best.toml").read_text(encoding="utf-8")
        write_atomically(self.result.with_suffix(".toml"), best)
        write_table()


def studies(datasets: Sequence[str], models: Sequence[str]) -> list[Study]:
    """What is to be searched, in order."""
    return [
        Study(dataset, model, effort)
        for dataset, (names, effort) in PLAN.items()
        for model in names
        if (not datasets or dataset in datasets) and (not models or model in models)
    ]


def write_table() -> None:
    """results/tuning.csv: the effort and the best validation accuracy of every finished study."""
    rows: list[dict[str, Any]] = []
    for study in studies((), ()):
        if study.result.is_file():
            found = json.loads(study.result.read_text(encoding="utf-8"))
            best = found["candidates"][0]
            rows.append(
                {
                    "dataset": study.dataset,
                    "model": study.model,
                    "trials": found["trials"],
                    "searched on": found["searched_on"],
                    "compared on": found["compared_on"],
                    "hours": f"{found['seconds'] / 3600:.2f}",
                    "validation accuracy, %": f"{100 * best['confirmed']:.2f}",
                    "standard error": f"{100 * best['standard_error']:.2f}",
                    "commit": str(found["provenance"]["commit"])[:12],
                }
            )
    if rows:
        with TABLE.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, rows[0], lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


def main() -> None:
    """Search what is missing, several studies at a time."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=2, help="studies at a time, each one process with one thread")
    parser.add_argument("--datasets", default="", help="some of the data sets, with commas between")
    parser.add_argument("--models", default="", help="some of the models, with commas between")
    chosen = parser.parse_args()
    names = [[name for name in text.split(",") if name] for text in (chosen.datasets, chosen.models)]
    missing = [study for study in studies(*names) if not study.result.is_file()]
    with ThreadPoolExecutor(chosen.jobs) as pool:
        for finished in [pool.submit(study.run) for study in missing]:
            finished.result()


if __name__ == "__main__":
    main()
