import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kuramotognn.cli import main
from kuramotognn.config.resolve import ConfigError, resolve
from kuramotognn.config.tree import Config
from kuramotognn.runs.run import resume_run, start_run
from kuramotognn.runs.stored_run import CONFIG, RUN_FORMAT, RunObserver, evaluate_run, predict_run
from kuramotognn.train_result import EpochMetrics


def small_config(**settings: object) -> Config:
    """Seconds instead of a minute, through the same code."""
    base = {
        "splits": 2,
        "model": {"hidden_channels": 8, "time": 1.0},
        "training": {"epochs": 6, "checkpoint_every": 2, "learning_rate": 0.05},
    }
    return resolve(base | settings).config


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "small"
    start_run(small_config(), folder)
    return folder


def test_the_folder_holds_everything(run_folder: Path) -> None:
    assert {path.name for path in run_folder.iterdir()} == {
        ".lock",
        "config.toml",
        "result.json",
        "split-0",
        "split-1",
    }
    for split in ("split-0", "split-1"):
        assert {path.name for path in (run_folder / split).iterdir()} == {
            "metrics.jsonl",
            "model.safetensors",
            "result.json",
            "predictions.csv",
            "confusion.svg",
            "curves.svg",
        }


def test_the_result_names_protocol_split_seed_versions_and_commit(run_folder: Path) -> None:
    record = json.loads((run_folder / "result.json").read_text())
    assert record["protocol"] == "random-per-class"
    assert [split["split"] for split in record["splits"]] == [0, 1]
    assert all(split["seed"] == 0 for split in record["splits"])
    assert {"kuramotognn", "commit", "python", "packages", "machine"} <= record["provenance"].keys()
    tests = [split["test_accuracy"] for split in record["splits"]]
    assert record["summary"]["test_accuracy"]["mean"] == pytest.approx(sum(tests) / 2)
    assert record["summary"]["test_accuracy"]["std"] == pytest.approx(abs(tests[0] - tests[1]) / 2**0.5)
    assert Config.model_validate(record["config"]) == small_config()


def test_metrics_have_a_line_an_epoch(run_folder: Path) -> None:
    lines = [json.loads(line) for line in (run_folder / "split-0" / "metrics.jsonl").read_text().splitlines()]
    assert [line["epoch"] for line in lines] == [1, 2, 3, 4, 5, 6]
    result = json.loads((run_folder / "split-0" / "result.json").read_text())
    best = lines[result["best_epoch"] - 1]
    assert best["validation_accuracy"] == result["validation_accuracy"] == max(m["validation_accuracy"] for m in lines)


def test_evaluation_gives_the_recorded_numbers(run_folder: Path) -> None:
    for evaluation in evaluate_run(run_folder):
        assert evaluation.test_accuracy == evaluation.recorded.test_accuracy
        assert evaluation.validation_accuracy == evaluation.recorded.validation_accuracy


def test_predictions_agree_with_the_result(run_folder: Path) -> None:
    found = predict_run(run_folder, split=1)
    assert found.csv == (run_folder / "split-1" / "predictions.csv").read_text()
    assert (found.model, found.split, found.nodes) == ("kuramotognn", 1, 2485)
    rows = list(csv.DictReader(found.csv.splitlines()))
    assert len(rows) == 2485
    tested = [row for row in rows if row["part"] == "test"]
    correct = sum(row["label"] == row["prediction"] for row in tested)
    result = json.loads((run_folder / "split-1" / "result.json").read_text())
    assert len(tested) == result["test_nodes"]
    assert correct / len(tested) == pytest.approx(result["test_accuracy"])
    probabilities = [float(value) for key, value in rows[0].items() if key.startswith("p(")]
    assert len(probabilities) == 7
    assert sum(probabilities) == pytest.approx(1.0, abs=1e-5)


class StopAt(RunObserver):
    def __init__(self, split: int, epoch: int) -> None:
        self.at = (split, epoch)

    def epoch(self, split: int, metrics: EpochMetrics) -> None:
        if (split, metrics.epoch) == self.at:
            raise KeyboardInterrupt


def metrics_of(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted(folder.glob("split-*/metrics.jsonl"))]


def test_an_interrupted_run_resumes_to_the_same_bytes(run_folder: Path, tmp_path: Path) -> None:
    folder = tmp_path / "interrupted"
    with pytest.raises(KeyboardInterrupt):
        start_run(small_config(), folder, StopAt(1, 5))
    assert not (folder / "result.json").exists()
    resume_run(folder)
    assert metrics_of(folder) == metrics_of(run_folder)
    for split in ("split-0", "split-1"):
        ours, theirs = (path / split / "predictions.csv" for path in (folder, run_folder))
        assert ours.read_bytes() == theirs.read_bytes()


def test_a_corrupted_checkpoint_is_told_and_the_one_before_is_used(run_folder: Path, tmp_path: Path) -> None:
    folder = tmp_path / "corrupted"
    with pytest.raises(KeyboardInterrupt):
        start_run(small_config(), folder, StopAt(0, 5))
    newest = folder / "split-0" / "checkpoint-000004.safetensors"
    newest.write_bytes(newest.read_bytes()[:-100])
    told: list[str] = []

    class Listener(RunObserver):
        def warning(self, message: str) -> None:
            told.append(message)

    resume_run(folder, Listener())
    assert metrics_of(folder) == metrics_of(run_folder)
    assert len(told) == 1
    assert "checkpoint-000004.safetensors is corrupted" in told[0]


def test_killed_for_real_it_resumes_to_the_same_bytes(tmp_path: Path) -> None:
    """kill -9 in the middle of an epoch, then --resume."""
    settings = [
        *("--splits", "1", "--model.hidden-channels", "8", "--model.time", "1"),
        *("--training.epochs", "150", "--training.checkpoint-every", "5", "--training.patience", "150"),
    ]
    command = [sys.executable, "-m", "kuramotognn", "train", "--quiet", *settings, "--out"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    subprocess.run([*command, str(tmp_path / "whole")], check=True, env=environment, stdout=subprocess.DEVNULL)
    killed = tmp_path / "killed"
    process = subprocess.Popen([*command, str(killed)], env=environment, stdout=subprocess.DEVNULL)
    metrics = killed / "split-0" / "metrics.jsonl"
    deadline = time.monotonic() + 60
    while not metrics.exists() or metrics.read_bytes().count(b"\n") < 33:
        assert process.poll() is None, "the run ended before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (killed / "result.json").exists()
    resume = [sys.executable, "-m", "kuramotognn", "train", "--quiet", "--resume", str(killed)]
    subprocess.run(resume, check=True, env=environment, stdout=subprocess.DEVNULL)
    assert metrics_of(killed) == metrics_of(tmp_path / "whole")


@pytest.mark.parametrize("line", ["", "format = 1\n", "format = 99\n"])
def test_a_folder_of_another_version_is_refused_with_a_sentence(
    run_folder: Path, tmp_path: Path, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / CONFIG).write_text((run_folder / CONFIG).read_text().replace(f"format = {RUN_FORMAT}\n", line))
    out = str(tmp_path / "x.csv")
    for command in (["evaluate", str(tmp_path)], ["predict", str(tmp_path), "--out", out], ["diagnose", str(tmp_path)]):
        assert main(command) == 2
        told = capsys.readouterr().err
        assert "was made by another version of kuramotognn" in told
        assert told.endswith("; train again\n")
        assert told.count("\n") == 1


def test_a_full_folder_is_not_overwritten(run_folder: Path) -> None:
    with pytest.raises(ConfigError, match="exists and is not empty; resume it with --resume"):
        start_run(small_config(), run_folder)


def test_settings_that_cannot_work_leave_no_folder_behind(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    with pytest.raises(ValueError, match="heads must divide"):
        start_run(small_config(model={"hidden_channels": 10, "heads": 4}), folder)
    with pytest.raises(ValueError, match="fewer than the 400 asked for"):
        start_run(small_config(data={"per_class": 400}), folder)
    assert not folder.exists()


def test_splits_are_trained_apart(run_folder: Path, tmp_path: Path) -> None:
    """A split's numbers do not depend on which splits ran before it."""
    start_run(small_config(splits=1, first_split=1), tmp_path / "second")
    assert metrics_of(tmp_path / "second") == metrics_of(run_folder)[1:]


def test_selected_time_is_kept_for_evaluation(tmp_path: Path) -> None:
    training = {"epochs": 4, "select_time": True, "time_candidates": 5, "learning_rate": 0.05}
    result = start_run(small_config(splits=1, training=training), tmp_path / "timed").splits[0]
    assert result.time is not None
    (evaluation,) = evaluate_run(tmp_path / "timed")
    assert evaluation.test_accuracy == result.test_accuracy
