"""Numbers in the README are numbers of committed result files."""

import json
import re
from pathlib import Path

from kuramotognn import Profile, is_oversmoothing

ROOT = Path(__file__).parent.parent


def test_the_accuracy_in_the_readme_is_that_of_the_result_file() -> None:
    record = json.loads((ROOT / "results" / "cora-kuramotognn.json").read_text(encoding="utf-8"))
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    test = record["summary"]["test_accuracy"]
    (row,) = re.findall(r"^\| KuramotoGNN \| cora \|.*$", readme, flags=re.MULTILINE)
    assert f"{100 * test['mean']:.2f} ± {100 * test['std']:.2f}" in row
    assert f"{record['summary']['splits']} splits" in row
    assert record["protocol"] in row


def test_the_committed_run_was_selected_on_validation_on_reporting_splits() -> None:
    record = json.loads((ROOT / "results" / "cora-kuramotognn.json").read_text(encoding="utf-8"))
    numbers = [split["split"] for split in record["splits"]]
    assert numbers == list(range(30))
    assert "validation" in record["selection"]
    assert not str(record["provenance"]["commit"]).endswith("+changes")
    assert record["summary"]["test_accuracy"]["mean"] >= 0.83


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
