"""Search settings for the models of the tables, with the same effort for each: `make tune-all`.

Every study is one `kuramotognn tune`, printed before it starts. There are three kinds:

- for the recommended settings, kept as results/tuning/recommended/DATASET/MODEL.json and MODEL.toml. A study begins
  with the defaults, with usual settings of the model's family (tools/tuning/starts) and, where the public code has
  settings, with those; settings recommended so far take no part. A normalisation layer is searched where a model has
  one; other options that the paper's equations do not have are left out for all (tools/tuning). On the four large
  graphs all models have 64 channels and GCNII 16 layers; elsewhere too GCNII has 64 channels, for the time of a run;
- with the recipe, a consistency term for every model, kept under results/tuning/recipe: the recommended settings (which
  must be there) with that term, and a search over what it changes most;
- at a given depth, for the figures against depth: the recommended settings at that depth, with a search over what
  training at depth depends on, kept under results/tuning/depth-T. The figures have Euler steps of 0.1; the search has
  steps of 0.5, for every model, which takes a fifth of the time.

`python tools/recommend.py results/tuning/KIND/DATASET/MODEL.toml` makes what was found the recommended settings, or a
preset named after the kind. What is there is not searched again; a study that was interrupted goes on. A part of it:
`python tools/tune_all.py --kinds recommended --datasets cora,texas --models gcn`.
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

import tomli_w

from kuramotognn.atomic_write import write_atomically
from kuramotognn.config.resolve import flatten, nest, resolve

ROOT = Path(__file__).parent.parent
STUDIES, RESULTS = ROOT / "studies", ROOT / "results" / "tuning"
TABLE = ROOT / "results" / "tuning.csv"
CONFIG = ROOT / "src" / "kuramotognn" / "config"
FIXED = ROOT / "tools" / "tuning"
RECOMMENDED, RECIPE = "recommended", "recipe"
MAIN = ("kuramotognn", "gcn", "graphsage", "grand-l", "grand++", "gat", "graphcon", "gcnii")
WEBKB = ("kuramotognn", "grand-l", "graphcon", "gcnii")
DEEP = ("kuramotognn", "grand-l", "grand-l-no-x0", "grand++", "graphcon", "gcnii")
DEPTHS = (1, 4, 8, 16, 32, 64, 80, 100)
#: Which file of tools/tuning says what is not searched.
FIXED_BY = dict.fromkeys(("kuramotognn", "grand-l", "grand-l-no-x0", "grand++"), "attention-flow")
FIXED_BY |= {"graphcon": "second-order"}
#: Which folder of tools/tuning/starts has settings to try first.
FAMILY = dict.fromkeys(("grand-l", "grand-l-no-x0", "grand++"), "grand") | dict.fromkeys(
    ("gcn", "gat", "graphsage"), "layers"
)
#: What is searched with the recipe and at a given depth; all else is as recommended.
WITH_RECIPE = (
    "training.consistency_temperature",
    "training.learning_rate",
    "training.weight_decay",
    "model.input_dropout",
    "model.dropout",
)
AT_DEPTH = ("training.learning_rate", "training.weight_decay", "model.coupling", "model.dropout")


def effort(trials: int, splits: int, candidates: int, confirmation: int, epochs: int, patience: int) -> list[str]:
    """Flags of `tune` that say how much is tried."""
    words = f"--trials {trials} --tuning-splits {splits} --candidates {candidates} --confirmation-splits {confirmation}"
    return f"{words} --training.epochs {epochs} --training.patience {patience}".split()


SMALL, GIVEN = effort(40, 5, 3, 10, 300, 50), effort(40, 10, 3, 10, 1000, 100)
LARGE = effort(20, 2, 2, 4, 150, 30)
#: Validation accuracy differs more between splits of pubmed; an epoch takes twice as long on computers, whose public
#: settings have 100.
PUBMED, COMPUTERS = effort(20, 3, 2, 4, 150, 30), effort(20, 2, 2, 4, 100, 25)
WIDTH, LAYERS = ["--model.hidden_channels", "64"], ["--model.num_layers", "16"]
RECIPE_SMALL, RECIPE_LARGE, DEPTH = (
    effort(12, 4, 2, 8, 300, 60),
    effort(8, 2, 2, 4, 300, 50),
    effort(12, 2, 2, 4, 200, 40),
)
#: Small graphs first, so that tables grow evenly.
PLAN = {
    "cora": ((*MAIN, "grand-l-no-x0"), SMALL),
    "texas": (WEBKB, GIVEN),
    "wisconsin": (WEBKB, GIVEN),
    "cornell": (WEBKB, GIVEN),
    "citeseer": ((*MAIN, "grand-l-no-x0"), SMALL),
    "photo": (MAIN, LARGE),
    "pubmed": (MAIN, PUBMED),
    "coauthor-cs": (MAIN, LARGE),
    "computers": (MAIN, COMPUTERS),
}


@dataclass(frozen=True)
class Study:
    """The search for one model on one data set."""

    kind: str
    dataset: str
    model: str
    effort: Sequence[str]

    @property
    def result(self) -> Path:
        """Where a finished study is kept."""
        return RESULTS / self.kind / self.dataset / f"{self.model}.json"

    @property
    def in_use(self) -> bool:
        """Whether the settings that are recommended, or the preset, are those that the study found."""
        folder = CONFIG / RECOMMENDED if self.kind == RECOMMENDED else CONFIG / "presets" / self.kind
        target = folder / self.dataset / f"{self.model}.toml"
        return target.is_file() and _story(target) == _story(self.result.with_suffix(".toml"))

    @property
    def folder(self) -> Path:
        """Where the search is while it goes on."""
        return STUDIES / f"{self.kind}-{self.dataset}-{self.model}"

    @property
    def depth(self) -> int | None:
        """The depth that is searched at, where one is given."""
        return int(self.kind.removeprefix("depth-")) if self.kind.startswith("depth-") else None

    @property
    def command(self) -> list[str]:
        """What to type, from the root of the checkout."""
        words = ["kuramotognn", "tune", "--dataset", self.dataset, "--model", self.model, *self.effort, *self.size]
        if self.kind == RECOMMENDED:
            words += ["--config", _relative(FIXED / f"{FIXED_BY.get(self.model, 'discrete')}.toml")]
            words += [word for start in self.starts for word in ("--start", _relative(start))]
        else:
            words += ["--config", _relative(self.folder.with_suffix(".toml"))]
        return [*words, "--out", _relative(self.folder)]

    @property
    def size(self) -> list[str]:
        """What is not searched because it would take minutes a run: 64 layers of 256 channels take ten on Cora."""
        deep, large = self.model == "gcnii", self.effort in (LARGE, PUBMED, COMPUTERS)
        if self.kind != RECOMMENDED:
            return []
        return (WIDTH if deep or large else []) + (LAYERS if deep and large else [])

    @property
    def starts(self) -> list[Path]:
        """Files of settings to try first."""
        family = FAMILY.get(self.model, self.model) + ("-webkb" if self.effort == GIVEN else "")
        preset = CONFIG / "presets" / "as-coded" / self.dataset / f"{self.model}.toml"
        return [*sorted((FIXED / "starts" / family).iterdir()), *([preset] if preset.is_file() else [])]

    def run(self) -> None:
        """Search, and keep the result."""
        going_on = (self.folder / "study.json").is_file()
        if self.kind != RECOMMENDED and not going_on:
            self._write_base()
        words = ["kuramotognn", "tune", "--resume", _relative(self.folder)] if going_on else self.command
        print(shlex.join(words), flush=True)
        done = subprocess.run([sys.executable, "-m", *words, "--quiet"], cwd=ROOT, capture_output=True, text=True)
        if done.returncode:
            print(f"{self.kind} {self.dataset} {self.model} stopped: {done.stderr.strip()}", flush=True)
            return
        found = json.loads((self.folder / "tuning.json").read_text(encoding="utf-8"))
        self.result.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(self.result, json.dumps({"command": shlex.join(self.command), **found}) + "\n")
        best = (self.folder / "best.toml").read_text(encoding="utf-8")
        write_atomically(self.result.with_suffix(".toml"), best)
        write_table()

    def _write_base(self) -> None:
        """The recommended settings with the recipe or at the depth, without what is searched."""
        changed: dict[str, Any] = {"training.consistency": 2.0}
        if self.depth is not None and self.model == "gcnii":
            changed = {"model.num_layers": self.depth}
        elif self.depth is not None:
            changed = {"model.time": float(self.depth), "solver.method": "euler", "solver.step_size": 0.5}
        flags = {"dataset": self.dataset, "model.name": self.model} | changed
        base = resolve(flags).config.model_dump(mode="json", exclude_none=True, exclude={"splits", "first_split"})
        searched = WITH_RECIPE if self.depth is None else AT_DEPTH
        left_out = (*searched, "training.epochs", "training.patience")
        given = {name: value for name, value in flatten(base) if name not in left_out}
        STUDIES.mkdir(exist_ok=True)
        content = tomli_w.dumps({"recommended": False} | nest(given))
        write_atomically(self.folder.with_suffix(".toml"), content)


def studies(kinds: Sequence[str] = (), datasets: Sequence[str] = (), models: Sequence[str] = ()) -> list[Study]:
    """What is to be searched, in order; some of it where names are given."""
    all_of_them = [Study(RECOMMENDED, name, model, effort) for name, (own, effort) in PLAN.items() for model in own]
    all_of_them += [
        Study(RECIPE, dataset, model, RECIPE_SMALL if effort == SMALL else RECIPE_LARGE)
        for dataset, (names, effort) in PLAN.items()
        for model in MAIN
        if names != WEBKB
    ]
    all_of_them += [
        Study(f"depth-{depth}", dataset, model, DEPTH)
        for dataset in ("cora", "citeseer")
        for model in DEEP
        for depth in DEPTHS
    ]
    return [
        study
        for study in all_of_them
        if (not kinds or study.kind in kinds or study.kind.partition("-")[0] in kinds)
        and (not datasets or study.dataset in datasets)
        and (not models or study.model in models)
    ]


def write_table() -> None:
    """results/tuning.csv: the effort and the best validation accuracy of every finished study."""
    rows: list[dict[str, Any]] = []
    for study in studies():
        if study.result.is_file():
            found = json.loads(study.result.read_text(encoding="utf-8"))
            best = found["candidates"][0]
            rows.append(
                {
                    "kind": study.kind,
                    "dataset": study.dataset,
                    "model": study.model,
                    "trials": found["trials"],
                    "searched on": found["searched_on"],
                    "compared on": found["compared_on"],
                    "hours": f"{found['seconds'] / 3600:.2f}",
                    "validation accuracy, %": f"{100 * best['confirmed']:.2f}",
                    "standard error": f"{100 * best['standard_error']:.2f}",
                    "in use": "yes" if study.in_use else "not yet",
                    "commit": str(found["provenance"]["commit"])[:12],
                }
            )
    if rows:
        with TABLE.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, rows[0], lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


def _story(path: Path) -> list[str]:
    """How settings were found, from the head of their file."""
    return [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("#")]


def _relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def main() -> None:
    """Search what is missing, several studies at a time."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=2, help="studies at a time, each one process with one thread")
    parser.add_argument("--kinds", default="", help="some of recommended, recipe and depth, with commas between")
    parser.add_argument("--datasets", default="", help="some of the data sets, with commas between")
    parser.add_argument("--models", default="", help="some of the models, with commas between")
    chosen = parser.parse_args()
    names = [[name for name in text.split(",") if name] for text in (chosen.kinds, chosen.datasets, chosen.models)]
    missing = [study for study in studies(*names) if not study.result.is_file()]
    with ThreadPoolExecutor(chosen.jobs) as pool:
        for finished in [pool.submit(study.run) for study in missing]:
            finished.result()
    write_table()  # What is in use may have changed.


if __name__ == "__main__":
    main()
