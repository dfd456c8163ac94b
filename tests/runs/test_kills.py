"""kill -9 at random moments, then go on: the files are those of a run that was never killed."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

KILLS = 20
TRAIN = ["--splits", "6", "--model.hidden-channels", "8", "--model.time", "2", "--training.epochs", "150"]
TRAIN += ["--training.patience", "150", "--training.checkpoint-every", "5"]
TUNE = ["--model.hidden-channels", "8", "--model.heads", "1", "--training.epochs", "20", "--tuning-splits", "4"]
TUNE += ["--trials", "12", "--candidates", "2", "--confirmation-splits", "3"]
HIDDEN = {".", "journal.log"}
RECORDED_TIMES = ("seconds", "finished")


def command(name: str, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "kuramotognn", name, *arguments, "--quiet"])


def killed_and_resumed(name: str, flags: list[str], folder: Path, begins: str, chance: random.Random, most: int) -> int:
    """Run a command to its end, killed up to ``most`` times at random moments after it has begun; how often it was."""
    kills = 0
    while True:
        begun = (folder / begins).exists()
        process = command(name, *(["--resume", str(folder)] if begun else [*flags, "--out", str(folder)]))
        while not (folder / begins).exists() and process.poll() is None:
            time.sleep(0.02)
        try:
            code = process.wait(timeout=chance.uniform(1.5, 3.5) if kills < most else None)
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            kills += 1
            continue
        assert code == 0
        return kills


def content(folder: Path) -> dict[str, Any]:
    """The files of a run or study, without wall-clock times and the journal of when each trial ran."""
    found: dict[str, Any] = {}
    for path in sorted(each for each in folder.rglob("*") if each.is_file() and not HIDDEN & {each.name[0], each.name}):
        name = str(path.relative_to(folder))
        found[name] = untimed(json.loads(path.read_text())) if path.suffix == ".json" else path.read_bytes()
    return found


def untimed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: untimed(each) for key, each in value.items() if key not in RECORDED_TIMES}
    return [untimed(each) for each in value] if isinstance(value, list) else value


@pytest.mark.slow
@pytest.mark.parametrize(("name", "flags", "begins"), [("train", TRAIN, "config.toml"), ("tune", TUNE, "study.json")])
def test_killed_twenty_times(name: str, flags: list[str], begins: str, tmp_path: Path) -> None:
    assert command(name, *flags, "--out", str(tmp_path / "whole")).wait() == 0
    expected, chance, kills = content(tmp_path / "whole"), random.Random(name), 0
    while kills < KILLS:  # A fast machine ends before it was killed that often, so that it begins again.
        folder = tmp_path / f"after {kills} kills"
        kills += killed_and_resumed(name, flags, folder, begins, chance, KILLS - kills)
        found = content(folder)
        assert [path for path in expected.keys() | found.keys() if expected.get(path) != found.get(path)] == []
