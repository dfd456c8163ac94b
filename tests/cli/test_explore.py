import json
import random
import webbrowser
from pathlib import Path

import pytest

from kuramotognn.cli import main
from kuramotognn.explore import graph_layout

SHORT = ["--splits", "1", "--training.epochs", "2", "--model.hidden-channels", "8", "--quiet"]
DEEP = ["--model.time", "24", "--solver.step-size", "0.5"]  # As many states as a page holds.


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs on cora, with a flow and without, and on a graph of 40 nodes."""
    folder = tmp_path_factory.mktemp("runs")
    assert main(["train", *SHORT, *DEEP, "--out", str(folder / "flow")]) == 0
    assert main(["train", *SHORT, *DEEP, "--model", "grand-l-no-x0", "--out", str(folder / "grand")]) == 0
    assert main(["train", *SHORT, "--model", "gcn", "--out", str(folder / "gcn")]) == 0
    draw = random.Random(0)
    rows = [f"p{k},{draw.random():.3f},{draw.random():.3f},{'even' if k % 2 else 'odd'}" for k in range(40)]
    edges = [f"p{k},p{(k + step) % 40}" for k in range(40) for step in (1, 2)]
    (folder / "nodes.csv").write_text("\n".join(["id,u,v,kind", *rows]))
    (folder / "edges.csv").write_text("\n".join(["source,target", *edges]))
    own = ["--nodes", str(folder / "nodes.csv"), "--edges", str(folder / "edges.csv"), "--label", "kind", "--id", "id"]
    assert main(["train", *SHORT, *own, "--out", str(folder / "own")]) == 0
    return folder


def test_runs_side_by_side(runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The page of cora with two models and as many states as there can be stays below 4 MB."""
    monkeypatch.setattr(graph_layout, "STEPS", 2)
    assert main(["explore", str(runs / "flow"), str(runs / "grand"), "--no-open", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    page = runs / "flow" / "explore.html"
    assert record["page"] == str(page)
    assert (record["nodes"], record["shown_nodes"], record["gif"]) == (2485, 2485, None)
    assert [model["model"] for model in record["models"]] == ["KuramotoGNN", "GRAND-l without X(0)"]
    recorded = json.loads((runs / "flow" / "split-0" / "result.json").read_text())
    assert record["models"][0]["end"]["accuracy"] == pytest.approx(recorded["test_accuracy"])
    assert 1e6 < page.stat().st_size < 4e6


def test_a_model_trained_beside_a_run_with_a_picture(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    page = tmp_path / "mine.html"
    beside = ["--models", "grand-l-no-x0", "--time", "2", "--gif", "--out", str(page), "--quiet"]
    assert main(["explore", str(runs / "own"), *beside]) == 0
    assert capsys.readouterr().out.startswith(f"saved {page} (0.")
    assert opened == [page.resolve().as_uri()]
    assert "GRAND-l without X(0)" in page.read_text()
    assert page.with_suffix(".gif").read_bytes().startswith(b"GIF89a")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["missing"], "'missing' is not a run folder: there is no such folder"),
        (["FLOW", "--dataset", "cora"], "explore takes run folders or --dataset cora, not both"),
        (["FLOW", "--out", "x.txt"], "--out must end in .html, got 'x.txt'"),
        (["FLOW", "--out", "no/x.html"], "the folder of --out 'no/x.html' does not exist"),
        (["FLOW", "--split", "7"], "split 7 is not among the finished splits"),
        (["FLOW", "--time", "3"], "--time is the depth of models that are trained"),
        (["FLOW", "--models", "grandl"], "unknown model 'grandl'"),
        (["FLOW", "OWN"], "have different nodes or classes (cora with 2485 nodes"),
        (["GCN"], "gcn has layers and no flow to play"),
        (["--dataset", "coro"], "did you mean 'cora'"),
        (["--models", "gcn"], "gcn has layers and no flow to play"),
        (["--time", "-1"], "model.time must be positive, got -1.0"),
        (["--split", "-1"], "first_split must be greater than or equal to 0, got -1"),
    ],
)
def test_mistakes_get_one_sentence_and_exit_code_two(
    arguments: list[str],
    sentence: str,
    runs: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    folders = {"FLOW": str(runs / "flow"), "GCN": str(runs / "gcn"), "OWN": str(runs / "own")}
    assert main(["explore", "--no-open", "--quiet", *(folders.get(word, word) for word in arguments)]) == 2
    told = capsys.readouterr().err
    assert sentence in told
    assert told.count("\n") == 1
    assert not list(tmp_path.iterdir())
