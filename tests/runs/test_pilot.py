"""The integration time of a graph that nothing is known of."""

import json
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest

from kuramotognn.cli import main
from kuramotognn.config.resolve import ConfigError, resolve
from kuramotognn.runs.pilot import choose_time
from kuramotognn.runs.run import resume_run, start_run
from kuramotognn.runs.stored_run import RunObserver
from kuramotognn.runs.task import Task
from kuramotognn.train_result import EpochMetrics
from tests.runs.test_own_graph import two_communities, write_csv

QUICK = ["--splits", "1", "--model.hidden-channels", "8", "--training.epochs", "6", "--quiet"]
CORA = {"splits": 1, "model.hidden_channels": 8, "training.epochs": 4, "solver.step_size": 1.0}


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    return [*write_csv(two_communities(), tmp_path), "--label", "y"]


def test_the_time_that_validates_best_is_kept(files: list[str], tmp_path: Path) -> None:
    assert main(["train", *files, *QUICK, "--out", str(tmp_path / "pilot")]) == 0
    settings = tomllib.loads((tmp_path / "pilot" / "config.toml").read_text())
    results, losses = {}, {}
    for time in (0.1, 1.0, 4.0):  # those of config/recommended/own-graph
        folder = tmp_path / f"given {time}"
        assert main(["train", *files, *QUICK, "--model.time", str(time), "--out", str(folder)]) == 0
        results[time] = json.loads((folder / "result.json").read_text())["splits"][0]
        epochs = map(json.loads, (folder / "split-0" / "metrics.jsonl").read_text().splitlines())
        losses[time] = {epoch["epoch"]: epoch["validation_loss"] for epoch in epochs}[results[time]["best_epoch"]]
    best = max(results, key=lambda time: (results[time]["validation_accuracy"], -losses[time]))
    assert settings["model"]["time"] == best
    assert settings["try_times"] == []
    found = json.loads((tmp_path / "pilot" / "result.json").read_text())["splits"][0]
    assert found | {"seconds": 0} == results[best] | {"seconds": 0}


def test_equal_accuracies_are_decided_by_the_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    def fit(task: Task, *_: object) -> object:
        loss = {0.5: 0.9, 1.0: 0.4, 2.0: 0.7}[task.config.model.time]  # type: ignore[attr-defined]
        return SimpleNamespace(best=EpochMetrics(1, 1.0, 0.8, loss, 0.8, None, 1))

    monkeypatch.setattr(Task, "fit", fit)
    config = resolve(CORA | {"try_times": [0.5, 1.0, 2.0]}, {"recommended": False}).config
    task, tried = choose_time(Task.from_config(config))
    assert task.config.model.time == 1.0  # type: ignore[attr-defined]
    assert tried == {0.5: 0.8, 1.0: 0.8, 2.0: 0.8}


def test_a_time_that_is_given_is_not_chosen() -> None:
    unknown = {"try_times": [0.1, 4.0], "recommended": False}
    assert resolve({}, unknown).config.try_times == (0.1, 4.0)
    assert resolve({"model.time": 2.0}, unknown).config.try_times == ()


def test_an_interrupted_choice_is_made_again(tmp_path: Path) -> None:
    class Stopped(RunObserver):
        def prepared(self, folder: Path) -> None:
            raise KeyboardInterrupt

    config = resolve(CORA | {"try_times": [0.5, 2.0]}, {"recommended": False}).config
    with pytest.raises(KeyboardInterrupt):
        start_run(config, tmp_path / "stopped", Stopped())
    start_run(config, tmp_path / "whole")
    resume_run(tmp_path / "stopped")
    texts = [(tmp_path / name / "config.toml").read_text() for name in ("stopped", "whole")]
    assert texts[0] == texts[1]


def test_a_model_without_time_is_refused(tmp_path: Path) -> None:
    config = resolve({"model.name": "gcn", "splits": 1, "try_times": [1.0]}, {"recommended": False}).config
    with pytest.raises(ConfigError, match="try_times needs a model with an integration time; gcn has none"):
        start_run(config, tmp_path / "run")
