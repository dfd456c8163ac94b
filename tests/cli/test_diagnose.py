import json
from pathlib import Path

import pytest

from kuramotognn.cli import main

SHORT = ["--splits", "1", "--first-split", "1000", "--training.epochs", "2", "--quiet"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    flow = ["--model.hidden-channels", "8", "--model.time", "4", "--solver.step-size", "0.5"]
    assert main(["train", *flow, *SHORT, "--out", str(folder / "flow")]) == 0
    layers = ["--model", "gcn", "--model.hidden-channels", "8", "--model.num-layers", "24", "--model.no-residual"]
    layers += ["--training.learning-rate", "1e-6"]  # Initial weights, whose decay is known.
    assert main(["train", *layers, *SHORT, "--out", str(folder / "gcn")]) == 0
    return folder


def test_a_run(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", str(runs / "gcn")]) == 0
    told = capsys.readouterr().out
    for word in ("layer", "pairwise-distance", "effective-rank", "exponential", "saved", "oversmoothing.svg"):
        assert word in told
    record = json.loads((runs / "gcn" / "split-1000" / "oversmoothing.json").read_text())
    assert record["decay"]["pairwise-distance"]["law"] == "exponential"
    assert (runs / "gcn" / "split-1000" / "oversmoothing.svg").read_text().startswith("<?xml")


def test_a_run_as_json_or_in_one_line(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", str(runs / "flow"), "--json", "--split", "1000"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["unit"] == "time"
    assert record["decay"]["pairwise-distance"]["oversmoothing"] is False
    assert {"order", "frequency-spread", "class-separation"} <= set(record["measures"])
    assert main(["diagnose", str(runs / "flow"), "--quiet", "--measures", "mad", "--exact"]) == 0
    assert capsys.readouterr().out.startswith("kuramotognn: MAD over neighbours: ")


def test_comparison(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "both.png"
    folders = [str(runs / "flow"), str(runs / "gcn")]
    assert main(["diagnose", "--compare", *folders, "--out", str(picture)]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "kuramotognn" in told
    assert "gcn" in told
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert main(["diagnose", "--compare", folders[0], folders[0], "--json"]) == 0
    assert list(json.loads(capsys.readouterr().out)) == ["kuramotognn (flow) 1", "kuramotognn (flow) 2"]
    assert (runs / "flow" / "comparison.svg").is_file()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "name a run folder: kuramotognn diagnose RUN"),
        (["missing"], "'missing' is not a run folder: there is no such folder"),
        (["FLOW", "GCN"], "diagnose takes one run, got 2; overlay several with --compare"),
        (["FLOW", "--split", "7"], "split 7 is not among the finished splits"),
        (["FLOW", "--measures", "madd"], "did you mean 'mad'"),
        (["FLOW", "--pairs", "0"], "number of sampled pairs must be positive"),
        (["FLOW", "--out", "x.txt"], "--out must end in .svg, .png or .pdf, got 'x.txt'"),
        (["GCN", "--measures", "frequency-spread"], "frequency-spread is for models that flow"),
        (["FLOW", "--compare", "--measures", "order"], "the runs share no measure that is compared"),
    ],
)
def test_mistakes_get_one_sentence_and_exit_code_two(
    arguments: list[str], sentence: str, runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = {"FLOW": str(runs / "flow"), "GCN": str(runs / "gcn")}
    assert main(["diagnose", *(folders.get(word, word) for word in arguments)]) == 2
    told = capsys.readouterr().err
    assert sentence in told
    assert told.count("\n") == 1
