"""Numbers in the README are those of committed results, and these are honest."""

from __future__ import annotations

import json
import random
import shlex
from pathlib import Path

import pytest
from tools import write_results
from tools.write_results import IMAGES, PAGE, drawings, results, results_page, shown, with_results

from kuramotognn import Profile, is_oversmoothing
from kuramotognn.cli import main
from kuramotognn.reports.commands import entry_command
from kuramotognn.runs.provenance import provenance
from kuramotognn.sweeps.cells import Case
from kuramotognn.sweeps.records import Record, Records, unpack

ROOT = Path(__file__).parent.parent
RUNS = ROOT / "results" / "runs"


def test_the_tables_of_the_readme_are_those_of_the_results() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    found = results()
    assert with_results(readme, found) == readme, "run `make results-table`"
    assert results_page(found) == PAGE.read_text(encoding="utf-8"), "run `make results-table`"
    for result in shown(found):
        for name, _ in drawings(result).values():
            assert (IMAGES / name).is_file(), "run `make results-table`"


def test_the_table_of_searches_names_unequal_effort(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tmp_path / "tuning.csv"
    monkeypatch.setattr(write_results, "TUNING", table)
    assert write_results.tuning() == []
    head = "dataset,model,trials,searched on,compared on,hours"
    equal = ["cora,gcn,40,1000-1007,1100-1111,0.5", "cora,gat,40,1000-1007,1100-1111,0.7"]
    table.write_text("\n".join([head, *equal, "texas,gcn,40,a,b,0.1", "texas,gcnii,20,a,b,0.1", ""]))
    (section,) = write_results.tuning()
    assert "the same number of trials and splits, except on texas." in section.text[0]
    assert list(section.head) == head.split(",")
    assert len(section.rows) == 4


def test_the_table_of_amazon_ratings_is_labelled_and_sorted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = tmp_path / "amazon.json"
    monkeypatch.setattr(write_results, "AMAZON", record)
    assert write_results.amazon_ratings() == []
    rows = [
        {"model": model, "trials": 12, "splits": {"0": mean - 0.01, "1": mean + 0.01}, "commits": ["abc"]}
        for model, mean in (("grand-l", 0.4), ("kuramotognn", 0.5))
    ]
    record.write_text(json.dumps({"rows": rows}))
    (section,) = write_results.amazon_ratings()
    assert "98.8 % of edges, own 50/25/25 splits" in section.title
    assert section.rows == [("KuramotoGNN", "50.00 ± 1.41"), ("GRAND-l", "40.00 ± 1.41")]


@pytest.mark.parametrize("path", sorted(RUNS.glob("*.jsonl")), ids=lambda path: path.stem)
def test_committed_runs_are_of_committed_code_on_reporting_splits(path: Path) -> None:
    records = list(unpack(path))
    assert records
    for record in records:
        assert record["split"] < 100
        assert record["provenance"]["commit"]
        assert not record["provenance"]["commit"].endswith("+changes")
    keys = [(record["case"], record["split"], record["seed"]) for record in records]
    assert len(set(keys)) == len(keys), "a run is there once"


def quick_cells(most_seconds: float = 60.0) -> dict[str, tuple[str, Case, list[Record]]]:
    """Cells of the tables that took so long in all and are not stale: command, case and the runs behind the number."""
    records, found = Records(RUNS), {}
    for result in shown(results()):
        trained = result.experiment.outcome == "accuracy" and not result.all_stale
        for entry in (entry for grid in result.grids for entry in grid.entries if trained and entry.runs):
            case = entry.place.case()
            current = (record for record in records.of(case) if "result" in record and case.is_current(record))
            own = [record for record in current if record["split"] in entry.samples]
            if sum(record["result"]["seconds"] for record in own) < most_seconds:
                found[case.digest] = (entry_command(entry), case, own)
    return found


@pytest.mark.slow
def test_five_random_cells_regenerate_by_the_command_beside_them(
    raw_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the last digit on the same kind of machine; elsewhere rounding may move some nodes across a boundary."""
    monkeypatch.setenv("KURAMOTOGNN_DATA", str(raw_root))
    here = provenance()
    cells = quick_cells()
    for command, case, committed in random.Random(0).sample(list(cells.values()), min(5, len(cells))):
        assert main([*shlex.split(command)[1:], "--out", str(tmp_path), "--quiet"]) == 0, command
        again = {(record["split"], record["seed"]): record for record in Records(tmp_path).of(case)}
        for record in committed:
            found, expected = (
                each["result"]["test_accuracy"] for each in (again[record["split"], record["seed"]], record)
            )
            made = record["provenance"]
            same = made["packages"]["torch"] == here["packages"]["torch"] and all(
                made["machine"][name] == here["machine"][name] for name in ("system", "architecture")
            )
            assert found == (expected if same else pytest.approx(expected, abs=0.005)), command


def test_there_are_results() -> None:
    assert len(Records(RUNS)) > 0


def test_oversmoothing_on_cora_is_the_known_picture() -> None:
    record = json.loads((ROOT / "results" / "oversmoothing-cora.json").read_text(encoding="utf-8"))
    for measure in ("pairwise-distance", "dirichlet-normalised"):
        for run in record["models"]["GCN"]:
            assert is_oversmoothing(Profile.from_dict(run), measure).exponential
        for run in record["models"]["KuramotoGNN"]:
            assert is_oversmoothing(Profile.from_dict(run), measure).law in ("constant", "growth")


def test_the_theory_page_shows_the_committed_numbers() -> None:
    record = json.loads((ROOT / "results" / "theory.json").read_text(encoding="utf-8"))
    page = (ROOT / "docs" / "theory.md").read_text(encoding="utf-8")
    for statement in record["statements"]:
        assert statement["expected"]
        for check in statement["checks"]:
            assert (
                f"{check['measured']:.3g} | {check['relation']} {check['tolerance']:.3g} | {check['verdict']}" in page
            )
        assert (ROOT / "docs" / "images" / f"theory-{statement['name']}.svg").is_file()
