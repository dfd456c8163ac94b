"""Put what results/runs holds into README.md (between two marks), docs/results.md and docs/images."""

from __future__ import annotations

import csv
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, stdev

from kuramotognn.atomic_write import write_atomically
from kuramotognn.reports.experiment_charts import charts
from kuramotognn.reports.opening import opening
from kuramotognn.reports.paper_claims import claims, main_sentences
from kuramotognn.reports.published import title
from kuramotognn.reports.report_files import front_page, to_markdown
from kuramotognn.reports.result_tables import ExperimentResult, experiment_result
from kuramotognn.reports.sections import Section
from kuramotognn.sweeps.catalogue import experiments
from kuramotognn.sweeps.records import Records

ROOT = Path(__file__).parent.parent
RUNS, PAGE, IMAGES = ROOT / "results" / "runs", ROOT / "docs" / "results.md", ROOT / "docs" / "images"
ABLATION = ROOT / "results" / "ablation.json"
AMAZON = ROOT / "results" / "amazon-ratings-98.json"
TUNING = ROOT / "results" / "tuning.csv"
BEGIN, END = "<!-- results: written by `make results-table` -->", "<!-- end of results -->"
FRONT = ("main-accuracy", "depth")
HEAD = """# Results

What our runs say of the paper, then all tables. Written by `make results-table` from [results](../results).
"""
TABLES = """## All tables

Every run in [results/runs](../results/runs), beside the paper's numbers. How runs are made and how to read the tables
is in [experiments](experiments.md). Epochs are selected on validation. How the settings of a model on a data set were
found stands at the head of their file in [recommended](../src/kuramotognn/config/recommended): never by a test node.
Where there is no file, the model's defaults were used. Seconds were taken beside other work and are upper bounds.
"""


def main() -> int:
    """Write everything."""
    found = results()
    for result in shown(found):
        for name, picture in drawings(result).values():
            write_atomically(IMAGES / name, picture)
    write_atomically(PAGE, results_page(found))
    readme = ROOT / "README.md"
    write_atomically(readme, with_results(readme.read_text(encoding="utf-8"), found))
    return 0


def results() -> list[ExperimentResult]:
    """What there is of every experiment, which may be nothing."""
    records = Records(RUNS)
    return [experiment_result(experiment, records) for experiment in experiments().values()]


def shown(found: list[ExperimentResult]) -> list[ExperimentResult]:
    """The experiments that were run; others may share a case with one of them."""
    run = [result for result in found if (RUNS / f"{result.experiment.name}.jsonl").is_file()]
    return [result for result in run if any(not grid.empty for grid in result.grids)]


def drawings(result: ExperimentResult) -> dict[str, tuple[str, str]]:
    """Captions, each with the name of a file and the SVG to be in it: dark ink on white, as other pictures of docs/."""
    drawn = {}
    for caption, svg in charts(result):
        name = re.sub(r"[^a-z0-9]+", "-", f"{result.experiment.name} {caption}".lower()).strip("-")
        paper = re.sub(r"(<svg[^>]*>)", r'\1<rect width="100%" height="100%" fill="#ffffff"/>', svg, count=1)
        drawn[caption] = (f"{name}.svg", paper.replace("currentColor", "#24292f"))
    return drawn


def results_page(found: list[ExperimentResult]) -> str:
    """docs/results.md."""
    first, last = (*opening(found), *tuning()), (*amazon_ratings(), *ablation())
    experiments_run = (to_markdown(result, _pictures(result, "images")) for result in shown(found))
    before, after = ([section.to_markdown() for section in part] for part in (first, last))
    return "\n".join([HEAD, *before, TABLES, *experiments_run, *after])


def tuning() -> list[Section]:
    """The effort of the search for each model on each data set, where results/tuning.csv is there."""
    if not TUNING.is_file():
        return []
    with TUNING.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    efforts: dict[str, set[tuple[str, ...]]] = {}
    for row in rows:
        effort = tuple(row[name] for name in ("trials", "searched on", "compared on"))
        efforts.setdefault(row["dataset"], set()).add(effort)
    unequal = [dataset for dataset, own in efforts.items() if len(own) > 1]
    words = "On each data set all models had the same number of trials and splits"
    words += f", except on {', '.join(unequal)}." if unequal else "."
    about = (
        f"{words} The best settings by validation accuracy on the splits they were searched on were compared again on "
        "others, and the best of these are shown; no test node was used. `make tune-all` searches what is missing. "
        "Tables use the settings of a study once all models of its data set are searched; until then those before."
    )
    return [Section("How settings were searched", (about,), tuple(rows[0]), [tuple(row.values()) for row in rows])]


def amazon_ratings() -> list[Section]:
    """The table of five models on most of amazon-ratings, where results/amazon-ratings-98.json is there."""
    if not AMAZON.is_file():
        return []
    rows = json.loads(AMAZON.read_text(encoding="utf-8"))["rows"]
    rows.sort(key=lambda row: -fmean(row["splits"].values()))
    scores = [[100 * accuracy for accuracy in row["splits"].values()] for row in rows]
    splits, trials = list(rows[0]["splits"]), max(row["trials"] for row in rows)
    about = (
        "Test accuracy in % with 98.8 % of the graph's edges, on splits of our own: models beside each other, not "
        f"beside published numbers. Splits {splits[0]} to {splits[-1]}, mean ± standard deviation; {trials} settings "
        "searched for each model by validation accuracy on splits from 1000."
    )
    return [
        Section(
            "amazon-ratings (98.8 % of edges, own 50/25/25 splits)",
            (about,),
            ("model", "test accuracy, %"),
            [(title(row["model"]), f"{fmean(s):.2f} ± {stdev(s):.2f}") for row, s in zip(rows, scores, strict=True)],
            (_made_by("python tools/amazon_ratings.py FILE", [commit for row in rows for commit in row["commits"]]),),
        )
    ]


def ablation() -> list[Section]:
    """The table of what each option adds, where results/ablation.json is there."""
    if not ABLATION.is_file():
        return []
    record = json.loads(ABLATION.read_text(encoding="utf-8"))
    base, *rows = record["rows"]
    about = (
        "Validation accuracy in % of KuramotoGNN on cora: each option alone on top of the settings recommended when it "
        "was run, on tuning splits 1000 to 1009, which no other table uses. The settings were searched without the "
        "options, so an option that needs other settings beside it shows less than it can. p: paired Wilcoxon test, "
        "not corrected for the number of options."
    )
    lines = [
        (row["option"], f"{100 * row['mean']:.2f}", f"{100 * row['difference']:+.2f}", f"{row['p']:.2g}")
        for row in sorted(rows, key=lambda row: -row["difference"])
    ]
    return [
        Section(
            "What each option adds",
            (about,),
            ("option", "validation accuracy, %", "difference", "p"),
            [("recommended settings", f"{100 * base['mean']:.2f}", "", ""), *lines],
            (_made_by("python tools/ablation.py", record["commits"]),),
        )
    ]


def _made_by(command: str, commits: Sequence[str]) -> str:
    return f"`{command}`, commit {', '.join(dict.fromkeys(commit[:12] for commit in commits))}."


def with_results(readme: str, found: list[ExperimentResult]) -> str:
    """README.md with new tables."""
    head, _, rest = readme.partition(BEGIN)
    _, mark, tail = rest.partition(END)
    if not mark:
        raise ValueError(f"README.md has no lines {BEGIN!r} and {END!r}")
    run = shown(found)
    front = [
        front_page(r, _pictures(r, "docs/images") if r.experiment.figure else ())
        for r in run
        if r.experiment.name in FRONT
    ]
    return "\n".join([f"{head}{BEGIN}", "", *front, *_in_mind(run), f"{END}{tail}"])


def _in_mind(run: list[ExperimentResult]) -> list[str]:
    """What the tables of the front page say, in sentences."""
    by_name = {result.experiment.name: result for result in run if result.experiment.name in FRONT}
    depth = claims({name: result for name, result in by_name.items() if name == "depth"})
    sentences = main_sentences(by_name)
    sentences += [f"“{claim.statement}” {claim.told}: {claim.evidence}" for claim in depth]
    return ["Read them with this in mind:", "", *(f"- {sentence}" for sentence in sentences), ""]


def _pictures(result: ExperimentResult, folder: str) -> list[tuple[str, str]]:
    return [(caption, f"{folder}/{name}") for caption, (name, _) in drawings(result).items()]


if __name__ == "__main__":
    sys.exit(main())
