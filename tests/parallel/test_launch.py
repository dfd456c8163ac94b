"""The command line over ranks: the numbers of one process, and failures that end all ranks with one sentence."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Refused
from tests.parallel.launching import end_all, free_port, one_process, rank_by_hand, torchrun, wait_for

MODEL = "--dataset cora --splits 1 --model.hidden_channels 128"
SETTINGS = f"{MODEL} --training.optimiser sgd --training.learning-rate 0.001 --training.clip-norm 1"
SHORT = f"train {SETTINGS} --training.epochs 12 --out".split()
LONG = f"train {SETTINGS} --training.epochs 40 --training.checkpoint-every 4 --out".split()
ENDLESS = f"train {SETTINGS} --training.epochs 9999 --training.patience 9999 --training.checkpoint-every 2 --out"
LIMIT = 60
"""Seconds within which a broken job must have ended."""


@pytest.fixture(autouse=True)
def _nothing_is_left_running() -> Iterator[None]:
    yield
    end_all()


def history(run: Path) -> list[dict[str, float]]:
    lines = map(json.loads, (run / "split-0" / "metrics.jsonl").read_text().splitlines())
    return [{key: value for key, value in line.items() if value is not None} for line in lines]


def assert_same_run(found: Path, expected: Path) -> None:
    for mine, theirs in zip(history(found), history(expected), strict=True):
        assert mine == pytest.approx(theirs, rel=1e-5)


def ended(process: subprocess.Popen[str], since: float, limit: float = LIMIT) -> tuple[int, str]:
    _, error = process.communicate(timeout=max(limit - (time.monotonic() - since), 1))
    return process.returncode, error


def test_torchrun_trains_as_one_process(tmp_path: Path) -> None:
    process = torchrun(2, [*SHORT, "two"], tmp_path)
    one_process([*SHORT, "one"], tmp_path)
    output, error = process.communicate(timeout=200)
    assert process.returncode == 0, error
    assert output.count("saved in two") == 1
    assert "channels over 2 ranks (64, 64)" in error
    assert_same_run(tmp_path / "two", tmp_path / "one")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "two"]


@pytest.mark.parametrize(
    ("variable", "value", "sentence"),
    [
        ("RANK", "one", "RANK must be a whole number, got 'one'"),
        ("RANK", "2", "RANK must be below WORLD_SIZE=2, got 2"),
        ("WORLD_SIZE", "two", "WORLD_SIZE must be a whole number, got 'two'"),
        ("MASTER_PORT", "", "MASTER_PORT is not set"),
        ("MASTER_ADDR", "", "MASTER_ADDR is not set"),
    ],
)
def test_what_a_launcher_must_set_is_checked_before_waiting(
    variable: str, value: str, sentence: str, assert_refused: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}
    for name, each in (right | {variable: value}).items():
        monkeypatch.setenv(name, each)
    assert_refused(["train"], sentence)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["kuramotognn", "grand-nl", "gcn"])
def test_four_ranks_train_evaluate_and_predict_as_one(tmp_path: Path, model: str) -> None:
    one_process([*SHORT, "one", "--model", model], tmp_path)
    for arguments in (
        [*SHORT, "four", "--model", model],
        ["evaluate", "four", "--json"],
        ["predict", "four", "--out", "predictions.csv"],
    ):
        process = torchrun(4, arguments, tmp_path)
        code, error = ended(process, time.monotonic(), 400)
        assert code == 0, error
    assert_same_run(tmp_path / "four", tmp_path / "one")
    assert (tmp_path / "predictions.csv").read_text() == (tmp_path / "four/split-0/predictions.csv").read_text()


@pytest.mark.slow
def test_a_killed_rank_ends_the_job_and_another_number_of_ranks_goes_on(tmp_path: Path) -> None:
    one_process([*LONG, "one"], tmp_path)
    for size in (1, 3):
        run = tmp_path / f"killed-{size}"
        process = torchrun(2, [*LONG, str(run)], tmp_path)
        wait_for(run, "split-0/checkpoint-*")
        os.kill(rank_of(process, 1), signal.SIGKILL)
        code, error = ended(process, time.monotonic())
        assert code != 0
        assert "rank      : 1" in error, "torchrun names the rank that was killed"
        resumed = torchrun(size, ["train", "--resume", str(run)], tmp_path)
        code, error = ended(resumed, time.monotonic(), 400)
        assert code == 0, error
        assert_same_run(run, tmp_path / "one")


def rank_of(process: subprocess.Popen[str], rank: int) -> int:
    """The process that torchrun started as this rank."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return next(
        int(child) for child in children if f"\0RANK={rank}\0" in "\0" + Path(f"/proc/{child}/environ").read_text()
    )


@pytest.mark.slow
@pytest.mark.parametrize("victim", [0, 1])
def test_survivors_name_a_killed_rank_where_no_launcher_does(tmp_path: Path, victim: int) -> None:
    master = f"127.0.0.1:{free_port()}"
    ranks = [rank_by_hand(rank, 2, [*ENDLESS.split(), "run"], tmp_path, master=master) for rank in range(2)]
    wait_for(tmp_path, "run/split-0/checkpoint-*")
    ranks[victim].kill()
    code, error = ended(ranks[1 - victim], time.monotonic())
    assert code == 1
    sentence = {0: f"rank 1 has lost the master {master}", 1: "rank 1 has given no sign of life"}[victim]
    assert sentence in error.splitlines()[-1]
    assert "Traceback" not in error


@pytest.mark.slow
def test_a_master_that_is_not_there_is_named(tmp_path: Path) -> None:
    master = f"127.0.0.1:{free_port()}"
    code, error = ended(rank_by_hand(1, 2, [*SHORT, "run"], tmp_path, master=master), time.monotonic())
    assert code == 1
    assert error.splitlines()[-1].startswith(f"kuramotognn: rank 1: cannot meet all 2 ranks at the master {master}")


@pytest.mark.slow
def test_an_error_is_one_sentence_with_its_rank(tmp_path: Path) -> None:
    process = torchrun(2, ["train", "--dataset", "nowhere"], tmp_path)
    code, error = ended(process, time.monotonic(), 100)
    assert code != 0
    ours = [line for line in error.splitlines() if line.startswith("kuramotognn:")]
    assert len(ours) == 1
    assert ours[0].startswith("kuramotognn: rank 0: unknown dataset 'nowhere'")
    assert not list(tmp_path.iterdir())


@pytest.fixture
def slow_link() -> Iterator[tuple[str, str]]:
    """Two network namespaces, each with a device of its own name, and between them a link of 100 Mbit/s."""
    names = ("kg-left", "kg-right")
    commands = [
        *(f"ip netns add {name}" for name in names),
        f"ip link add {names[0]} netns {names[0]} type veth peer name {names[1]} netns {names[1]}",
    ]
    for number, name in enumerate(names):
        inside = f"ip netns exec {name}"
        commands += [
            f"{inside} ip address add 10.77.0.{number + 1}/24 dev {name}",
            f"{inside} ip link set {name} up",
            f"{inside} ip link set lo up",
            f"{inside} tc qdisc add dev {name} root tbf rate 100mbit burst 32kbit latency 50ms",
        ]
    try:
        if not shutil.which("ip") or not shutil.which("tc"):
            pytest.skip("network namespaces need iproute2")
        for command in commands:
            done = subprocess.run(command.split(), capture_output=True, text=True)
            if done.returncode:
                pytest.skip(f"network namespaces cannot be made here: {command}: {done.stderr.strip()}")
        yield names
    finally:
        for name in names if shutil.which("ip") else ():
            subprocess.run(["ip", "netns", "delete", name], capture_output=True)


@pytest.mark.slow
def test_a_slow_link_gives_the_same_numbers(tmp_path: Path, slow_link: tuple[str, str]) -> None:
    one_process([*SHORT, "one"], tmp_path)
    ranks = [
        rank_by_hand(rank, 2, [*SHORT, "two"], tmp_path, master="10.77.0.1:29500", namespace=name)
        for rank, name in enumerate(slow_link)
    ]
    for process in ranks:
        code, error = ended(process, time.monotonic(), 300)
        assert code == 0, error
    assert_same_run(tmp_path / "two", tmp_path / "one")


@pytest.mark.slow
def test_a_cut_network_ends_both_sides_with_a_sentence(tmp_path: Path, slow_link: tuple[str, str]) -> None:
    ranks = [
        rank_by_hand(rank, 2, [*ENDLESS.split(), "run"], tmp_path, master="10.77.0.1:29500", namespace=name)
        for rank, name in enumerate(slow_link)
    ]
    wait_for(tmp_path, "run/split-0/checkpoint-*", 200)
    subprocess.run(["ip", "netns", "exec", slow_link[0], "ip", "link", "set", slow_link[0], "down"], check=True)
    cut = time.monotonic()
    found = [ended(process, cut) for process in ranks]
    assert [code for code, _ in found] == [1, 1]
    assert "rank 1 has given no sign of life" in found[0][1].splitlines()[-1]
    assert "rank 1 has lost the master 10.77.0.1:29500" in found[1][1].splitlines()[-1]
