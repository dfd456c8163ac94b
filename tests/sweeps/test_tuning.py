import json
import os
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import numpy as np
import optuna
import pytest

from kuramotognn.config.resolve import ConfigError, resolve
from kuramotognn.config.search_spaces import Choice, LogUniform, Uniform
from kuramotognn.sweeps.tuning import resume_study, start_study, suggest
from kuramotognn.sweeps.tuning_journal import open_study
from kuramotognn.sweeps.tuning_plan import TuningPlan, load_plan, plan_study
from tests.conftest import Refused

QUICK = {
    "model": {"hidden_channels": 8, "heads": 1, "time": 1.0},
    "training": {"epochs": 3, "optimiser": "adam"},
    "solver": {"step_size": 1.0},
}


def quick_plan(**settings: int) -> TuningPlan:
    plan = {"trials": 4, "splits": 2, "candidates": 2, "confirmation_splits": 2}
    return plan_study(QUICK, **(plan | settings))


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("studies") / "quick"
    start_study(quick_plan(), folder, processes=2)
    return folder


def test_the_winner_is_written_as_a_file_that_train_takes(study: Path) -> None:
    text = (study / "best.toml").read_text()
    assert "4 settings tried on splits 1000-1001" in text
    assert "compared again on splits 1100-1101" in text
    resolved = resolve({}, tomllib.loads(text))
    assert "recommended" not in resolved.sources.values(), "the file is whole"
    best = json.loads((study / "tuning.json").read_text())["candidates"][0]
    theirs = {key: best["settings"][key] for key in ("dataset", "data", "model", "solver", "training")}
    assert resolved.config.model_dump(mode="json", include=set(theirs)) == theirs
    assert resolved.config.model.hidden_channels == 8, "what was given stays"


def test_no_test_accuracy_is_recorded_anywhere(study: Path) -> None:
    records = list((study / "confirm").rglob("*.json"))
    assert records
    for path in [*records, study / "tuning.json", study / "journal.log", study / "best.toml"]:
        assert "test_accuracy" not in path.read_text()


def test_test_labels_do_not_change_what_is_found(tmp_path: Path) -> None:
    """Own graphs that differ in the labels of test nodes alone, every option of training on."""
    options = {"clip_norm": 1.0, "select_time": True, "time_reach": 2.0, "label_smoothing": 0.1, "schedule": "cosine"}
    options |= {"consistency": 1.0, "affine_weight_decay": 0.01}
    found = []
    for shift in (0, 1):
        rng, folder = np.random.default_rng(0), tmp_path / str(shift)
        folder.mkdir()
        part = ["train", "validation", "test"] * 12
        label = [(k // 3 + (shift if part[k] == "test" else 0)) % 2 for k in range(36)]
        rows = [f"{k},{rng.normal():.3f},{rng.normal():.3f},c{label[k]},{part[k]}" for k in range(36)]
        (folder / "nodes.csv").write_text("\n".join(["id,a,b,y,part", *rows]))
        (folder / "edges.csv").write_text("\n".join(["from,to", *(f"{k},{(k * 7 + 1) % 36}" for k in range(36))]))
        files = {"nodes": folder / "nodes.csv", "edges": folder / "edges.csv", "label": "y", "split_column": "part"}
        settings = QUICK | {"training": QUICK["training"] | options, "data": {"files": files}}
        plan = plan_study(settings, trials=3, splits=1, candidates=2, confirmation_splits=1)
        start_study(plan, folder / "study", processes=1)
        trials = open_study(plan, folder / "study").trials
        best = tomllib.loads((folder / "study" / "best.toml").read_text())
        found.append(([(trial.params, trial.value) for trial in trials], best["model"], best["training"]))
    assert found[0] == found[1]


def test_settings_are_compared_by_the_chosen_metric(tmp_path: Path) -> None:
    """Balanced accuracy of three classes, where one of them is predicted for all nodes, is a third; accuracy is not."""
    never = {"epochs": 1, "optimiser": "adam", "learning_rate": 1e-9}
    rows = [f"{k},1,{k % 3 if k < 30 else 0}" for k in range(90)]
    (tmp_path / "nodes.csv").write_text("\n".join(["id,a,y", *rows]))
    (tmp_path / "edges.csv").write_text("\n".join(["from,to", *(f"{k},{(k + 1) % 90}" for k in range(90))]))
    files = {"nodes": tmp_path / "nodes.csv", "edges": tmp_path / "edges.csv", "label": "y"}
    own = {"data": {"files": files, "protocol": "fraction"}, "training": never | {"metric": "balanced-accuracy"}}
    plan = plan_study(QUICK | own, trials=1, splits=1, candidates=1, confirmation_splits=1)
    found = start_study(plan, tmp_path / "study", processes=1)
    assert (found.best.searched, found.best.mean) == (pytest.approx(1 / 3), pytest.approx(1 / 3))
    assert "validation\n# balanced-accuracy 33.33" in (tmp_path / "study" / "best.toml").read_text()
    assert json.loads((tmp_path / "study" / "tuning.json").read_text())["metric"] == "balanced-accuracy"


def test_the_first_trials_are_the_recommended_settings_and_the_defaults(study: Path) -> None:
    recommended, defaults = (plan_study({}, trials=3).config({}), plan_study({}, {"recommended": False}).config({}))
    trials = open_study(quick_plan(), study).trials
    tried = sorted(trial.params["model.coupling"] for trial in trials[:2])
    assert tried == sorted([recommended.model.coupling, defaults.model.coupling])


def test_the_winner_has_the_highest_mean_on_fresh_splits(study: Path) -> None:
    record = json.loads((study / "tuning.json").read_text())
    confirmed = [candidate["confirmed"] for candidate in record["candidates"]]
    assert confirmed == sorted(confirmed, reverse=True)
    scores: dict[float, list[float]] = {}
    for path in (study / "confirm").rglob("*.json"):
        one = json.loads(path.read_text())
        assert one["split"] in (1100, 1101)
        scores.setdefault(one["config"]["model"]["coupling"], []).append(one["result"]["validation_accuracy"])
    assert max(sum(pair) / 2 for pair in scores.values()) == pytest.approx(confirmed[0])


def test_the_search_goes_uphill(study: Path) -> None:
    trials = open_study(load_plan(study), study)
    assert trials.best_value == max(trial.value for trial in trials.trials if trial.value is not None)
    assert trials.best_value > min(trial.value for trial in trials.trials if trial.value is not None)


def test_a_study_goes_on_to_more_trials_and_does_nothing_twice(study: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in (study / "confirm").rglob("*.json")}
    assert resume_study(study).trials == 4
    assert resume_study(study, trials=5).trials == 5
    assert before == {path: path.stat().st_mtime_ns for path in before}


@pytest.mark.slow
def test_a_killed_study_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "killed"
    flags = ["--model.hidden-channels", "8", "--model.heads", "1", "--training.epochs", "20", "--tuning-splits", "4"]
    command = [sys.executable, "-m", "kuramotognn", "tune", *flags, "--trials", "6", "--quiet", "--out", str(folder)]
    process = subprocess.Popen([*command, "--candidates", "1", "--confirmation-splits", "1"])
    deadline = time.monotonic() + 90
    journal = folder / "journal.log"
    while not journal.exists() or journal.read_text().count('"intermediate_value"') < 3:
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    time.sleep(0.5)  # Its children notice.
    with journal.open("a") as file:
        file.write('{"op_code":5,"half')  # As a process leaves it that is killed while it writes.
    result = resume_study(folder)
    assert result.trials == 6
    states = [trial.state.name for trial in open_study(load_plan(folder), folder).trials]
    assert "RUNNING" not in states
    assert (folder / "best.toml").exists()


def test_suggestions_stay_in_their_range_and_choices_keep_their_type() -> None:
    trial = optuna.trial.FixedTrial({"a": 0.123456, "b": 0.00123456, "c": "[0.0, 3.14159]", "d": "null", "e": "true"})
    assert suggest(trial, "a", Uniform(0, 1)) == 0.123  # type: ignore[arg-type]
    assert suggest(trial, "b", LogUniform(1e-4, 1)) == 0.00123  # type: ignore[arg-type]
    assert suggest(trial, "c", Choice((None, (0.0, 3.14159)))) == [0.0, 3.14159]  # type: ignore[arg-type]
    assert suggest(trial, "d", Choice((None, (0.0, 3.14159)))) is None  # type: ignore[arg-type]
    assert suggest(trial, "e", Choice((False, True))) is True  # type: ignore[arg-type]


def test_what_is_given_or_ruled_out_is_not_searched() -> None:
    space = plan_study({"solver": {"method": "dopri5"}, "model": {"time": 3.0}}).space
    assert not {"solver.step_size", "model.time", "solver.method"} & space.keys()
    assert "model.coupling" in space


def test_given_splits_are_tuned_on_by_their_validation_nodes_and_confirmed_with_other_seeds() -> None:
    webkb = plan_study({"dataset": "texas"}, splits=12, confirmation_splits=11)
    assert webkb.search_on() == [*((split, 0) for split in range(10)), (0, 1), (1, 1)]
    assert webkb.confirm_on() == [*((split, 100) for split in range(10)), (0, 101)]
    public = plan_study({"dataset": "citeseer", "data": {"protocol": "planetoid-public"}}, splits=2)
    assert public.search_on() == [(0, 0), (0, 1)]
    drawn = plan_study({"dataset": "citeseer"}, splits=2, confirmation_splits=2)
    assert (drawn.search_on(), drawn.confirm_on()) == ([(1000, 0), (1001, 0)], [(1100, 0), (1101, 0)])


def test_starts_are_moved_into_the_space() -> None:
    plan = plan_study({}, starts=[{"recommended": False, "model": {"time": 99.0, "hidden_channels": 7, "heads": 1}}])
    assert plan.starts[1]["model.time"] == 20.0
    assert "model.hidden_channels" not in plan.starts[1]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--trials", "0"], "trials must be at least 1, got 0"),
        (["--tuning-splits", "101"], "a trial has 100 tuning splits, got 101"),
        (["--splits", "3"], "tune chooses its own splits: leave out --splits"),
        (["--resume", "missing"], "'missing' is not a study: it has no study.json"),
        (["--resume", "missing", "--seed", "1"], "--resume goes on with the study's own settings"),
        (["--dataset", "coora"], "did you mean 'cora'?"),
        (["--model.heads", "5"], "heads must divide the attention width"),
        (["--jobs", "0"], "jobs must be at least 1, got 0"),
    ],
)
def test_mistakes_get_one_sentence(assert_refused: Refused, arguments: list[str], sentence: str) -> None:
    assert_refused(["tune", *arguments, "--quiet"], sentence)


def test_a_full_disk_stops_the_search_with_a_sentence(small_disk: Path) -> None:
    with pytest.raises(OSError, match=r"^the search stopped: .*No space left.*; go on with --resume .*study$"):
        start_study(quick_plan(trials=100), small_disk / "study")


def test_a_full_folder_is_not_overwritten(study: Path) -> None:
    with pytest.raises(ConfigError, match="resume it with --resume"):
        start_study(quick_plan(), study)


def test_the_switch_recommended_is_checked() -> None:
    with pytest.raises(ConfigError, match="recommended must be true or false, got 'no'"):
        resolve({}, {"recommended": "no"})
