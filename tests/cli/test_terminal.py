"""What is printed when names and sizes are not what one expects, and how commands end."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kuramotognn.cli import main
from kuramotognn.printable import csv_cell, printable
from tests.runs.test_own_graph import two_communities, write_csv

ROOT = Path(__file__).parent.parent.parent
HOSTILE = "[/red] \x1b]8;;http://x\x1b\\ [bold]"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("café [/red]", "café [/red]"),
        ("a\nb\tc", "a\\nb\\tc"),
        ("\x1b[31mred\x1b]8;;x\x07", "\\x1b[31mred\\x1b]8;;x\\x07"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("x" * 10_000_000, "x" * 300 + "… (10000000 characters)"),
    ],
)
def test_text_is_escaped_and_cut(text: str, shown: str) -> None:
    assert printable(text) == shown


@given(st.text(alphabet="=+-@'\t\r1e. a"))
def test_a_cell_of_csv_is_a_number_or_text(text: str) -> None:
    """Never a formula of a spreadsheet; removing one apostrophe gives the text back."""
    cell = csv_cell(text)
    if cell.startswith(("=", "+", "-", "@", "\t", "\r")):
        float(cell)
    assert cell.removeprefix("'") == text


def test_names_from_files_are_never_read_as_markup(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Classes, categories and folders that look like markup, codes or formulas pass through every command."""
    data = two_communities()
    write_csv(data, tmp_path)
    classes = [f"{HOSTILE} 0", f"{HOSTILE} 1", "=1+1"]
    nodes = (tmp_path / "nodes.csv").read_text().splitlines()
    rows = [
        f"{line.rsplit(',', 1)[0]},{HOSTILE if i % 2 else 'odd'},{classes[i % 3]}" for i, line in enumerate(nodes[1:])
    ]
    (tmp_path / "nodes.csv").write_text("\n".join([nodes[0].replace(",y", ",[red]kind,y"), *rows]) + "\n")
    files = ["--nodes", str(tmp_path / "nodes.csv"), "--edges", str(tmp_path / "edges.csv"), "--label", "y"]
    run = tmp_path / "[/red] run"
    assert main(["check", *files]) == 0
    assert main(["train", *files, "--splits", "1", "--training.epochs", "3", "--out", str(run)]) == 0
    assert main(["evaluate", str(run)]) == 0
    assert main(["predict", str(run), "--out", str(tmp_path / "p.csv")]) == 0
    assert main(["diagnose", str(run)]) == 0
    told = capsys.readouterr()
    assert "\x1b" not in told.out + told.err
    assert "[/red] run" in told.out
    labels = [row["label"] for row in csv.DictReader((tmp_path / "p.csv").read_text().splitlines())]
    assert (len(labels), set(labels)) == (90, {*classes[:2], "'=1+1"})


def test_predict_names_the_model_and_keeps_what_is_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], uneven_run: Path
) -> None:
    out = tmp_path / "p.csv"
    assert main(["predict", str(uneven_run), "--out", str(out)]) == 0
    assert "gcn" in (told := capsys.readouterr().out)
    assert "split 0" in told
    before = out.read_bytes()
    assert main(["predict", str(uneven_run), "--out", str(out)]) == 2
    assert "exists; pass --overwrite" in capsys.readouterr().err
    assert main(["predict", str(uneven_run), "--out", str(tmp_path / "[red]/p.csv")]) == 2
    assert "[red]' for 'p.csv'; make it" in capsys.readouterr().err
    assert main(["predict", str(uneven_run), "--out", str(out), "--overwrite"]) == 0
    assert out.read_bytes() == before


@pytest.fixture(scope="module")
def uneven_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on a graph with 9 nodes of one class in 10, whose features say nothing."""
    folder = tmp_path_factory.mktemp("uneven")
    data = two_communities()
    data.y = (data.y.new_tensor(range(90)) % 10 == 0).long()
    data.x = data.x.new_ones(90, 1)
    files = [*write_csv(data, folder), "--label", "y"]
    assert (
        main(
            ["train", *files, "--model", "gcn", "--splits", "1", "--training.epochs", "5", "--out", str(folder / "run")]
        )
        == 0
    )
    return folder / "run"


def test_a_model_that_predicts_one_class_is_named(uneven_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--resume", str(uneven_run)]) == 0
    told = capsys.readouterr().out
    assert "balanced" in told
    assert "AUC" in told
    assert "…" not in told, "no number is cut off in a terminal of 80 columns"
    assert "100 % of the test nodes are predicted to be of one class" in told


@pytest.mark.parametrize("metric", ["accuracy", "balanced-accuracy", "macro-f1", "roc-auc"])
def test_the_metric_decides_the_epoch(metric: str, tmp_path: Path) -> None:
    data = two_communities()
    data.y = (data.y == 0).long()
    files = [*write_csv(data, tmp_path), "--label", "y"]
    settings = [
        "--splits",
        "1",
        "--training.epochs",
        "6",
        "--metric",
        metric,
        "--quiet",
        "--out",
        str(tmp_path / "run"),
    ]
    assert main(["train", *files, *settings]) == 0
    lines = [json.loads(line) for line in (tmp_path / "run/split-0/metrics.jsonl").read_text().splitlines()]
    result = json.loads((tmp_path / "run/split-0/result.json").read_text())
    scores = [line["validation_accuracy" if metric == "accuracy" else "validation_score"] for line in lines]
    assert result["best_epoch"] == 1 + max(range(len(scores)), key=lambda k: (scores[k], -lines[k]["validation_loss"]))


START = ("-c", "import sys\nfrom kuramotognn.__main__ import run\nprint('started', flush=True)\nsys.exit(run())")
"""What the command `kuramotognn` runs; says when the interpreter is there, which takes long on a busy machine."""


def command(*arguments: str, start: Sequence[str] = ("-m", "kuramotognn"), **options: object) -> subprocess.Popen[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, *start, *arguments],
        env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options,  # type: ignore[call-overload]
    )  # fmt: skip


@pytest.mark.parametrize("seconds", [0.05, 0.2, 0.5, 1.0, 1.5, 2.5, 4.0])
def test_ctrl_c_at_any_moment(seconds: float, tmp_path: Path) -> None:
    """Also while modules are imported: exit code 130, one sentence, no traceback; a run names its folder."""
    process = command("train", "--out", str(tmp_path / "run"), start=START, cwd=tmp_path)
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    time.sleep(seconds)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert "Traceback" not in error
    assert "kuramotognn: interrupted" in error
    assert process.returncode == 130
    if (tmp_path / "run").exists():
        assert f"--resume {tmp_path / 'run'}" in error


def test_a_log_in_a_file_grows_while_training(tmp_path: Path) -> None:
    with (tmp_path / "log").open("w") as log:
        environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
        arguments = ["train", "--training.epochs", "5000", "--out", str(tmp_path / "run")]
        process = subprocess.Popen([sys.executable, "-m", "kuramotognn", *arguments], env=environment, stderr=log)
        try:
            deadline = time.monotonic() + 60
            while "split 0, epoch" not in (tmp_path / "log").read_text():
                assert process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.2)
        finally:
            process.kill()
            process.wait()


def test_one_process_trains_in_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    process = command("train", "--training.epochs", "5000", "--out", str(tmp_path / "run"))
    try:
        deadline = time.monotonic() + 60
        while not (tmp_path / "run/split-0/metrics.jsonl").exists():
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert main(["train", "--resume", str(tmp_path / "run")]) == 2
        assert f"is being trained by process {process.pid} on " in capsys.readouterr().err
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--splits", "1000000000"], "10000"),
        (["--device", "meta"], "meta"),
        (["--solver.steps", "2.5"], "must be a whole number, got 2.5"),
        (["--training.epochs", "2.7"], "must be a whole number, got 2.7"),
    ],
)
def test_absurd_settings(arguments: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str],
                         monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert main(["train", *arguments]) == 2
    assert words in capsys.readouterr().err


def test_deep_nesting_in_files(tmp_path: Path, capsys: pytest.CaptureFixture[str], uneven_run: Path) -> None:
    (tmp_path / "deep.toml").write_text("a = " + "[" * 100_000)
    assert main(["train", "--config", str(tmp_path / "deep.toml")]) == 2
    result = uneven_run / "result.json"
    whole = result.read_bytes()
    try:
        for content in ("[" * 100_000, '{"splits": 3}', '{"splits": [{"split": "a"}]}', "null"):
            result.write_text(content)
            assert main(["evaluate", str(uneven_run)]) in (0, 2)
    finally:
        result.write_bytes(whole)
    assert "Traceback" not in capsys.readouterr().err
