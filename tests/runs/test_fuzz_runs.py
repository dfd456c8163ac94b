"""Mutated run folders, settings and records: a result or one sentence, never a traceback."""

import json
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from kuramotognn.cli import main
from kuramotognn.config.resolve import ConfigError
from kuramotognn.sweeps.cells import load
from tests.data.limits import limits
from tests.data.test_fuzz import mutate
from tests.runs.test_own_graph import SETTINGS, two_communities, write_csv
from tests.sweeps.small_sweep import small_jobs

FILES = ("config.toml", "split-0/result.json", "split-0/encoder.json", "split-0/model.safetensors")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    folder = tmp_path_factory.mktemp("fuzz")
    files = write_csv(two_communities(), folder)
    assert main(["train", *files, "--label", "y", *SETTINGS, "--out", str(folder / "run")]) == 0
    return folder / "run", files


def mutations(good: bytes, seed: str, count: int) -> Iterator[bytes]:
    rnd = random.Random(seed)
    for _ in range(count):
        yield mutate(good, rnd)


def try_run(
    name: str, run: tuple[Path, list[str]], folder: Path, capfd: pytest.CaptureFixture[str], count: int
) -> None:
    source, files = run
    shutil.copytree(source, folder / "run")
    commands = [
        ["evaluate", str(folder / "run"), "--quiet"],
        ["predict", str(folder / "run"), *files, "--out", str(folder / "p.csv"), "--overwrite", "--quiet"],
    ]
    codes = []
    for content in mutations((source / name).read_bytes(), name, count):
        (folder / "run" / name).write_bytes(content)
        with limits(10):
            codes.append(main(commands[len(codes) % 2]))
        told = capfd.readouterr().err
        assert codes[-1] in (0, 2)
        assert told.count("\n") == (codes[-1] == 2), told
    assert 2 in codes, "too few mutations were errors"


@pytest.mark.parametrize("name", FILES)
@pytest.mark.filterwarnings("ignore")
def test_a_mutated_run_folder(
    name: str, run: tuple[Path, list[str]], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    try_run(name, run, tmp_path, capfd, 24)


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
@pytest.mark.filterwarnings("ignore")
def test_many_mutated_run_folders(
    name: str, run: tuple[Path, list[str]], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    try_run(name, run, tmp_path, capfd, 500)


def try_settings(run: tuple[Path, list[str]], folder: Path, capfd: pytest.CaptureFixture[str], count: int) -> None:
    good = b"""dataset = "cora"
splits = 2
[model]
name = "gcn"
layers = 2
[training]
epochs = 3
[data]
scale = 2.0
"""
    for content in mutations(good, "settings", count):
        (folder / "c.toml").write_bytes(content)
        with limits(10):
            code = main(["train", "--config", str(folder / "c.toml"), "--out", str(run[0]), "--quiet"])
        told = capfd.readouterr().err
        assert (code, told.count("\n")) == (2, 1), told  # At the latest because the folder is not empty.


@pytest.mark.filterwarnings("ignore")
def test_mutated_settings(run: tuple[Path, list[str]], tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    try_settings(run, tmp_path, capfd, 30)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_many_mutated_settings(run: tuple[Path, list[str]], tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    try_settings(run, tmp_path, capfd, 300)


def try_records(folder: Path, count: int) -> None:
    good = json.dumps(small_jobs(1)[0]._record() | {"result": {"protocol": "fraction", "test_accuracy": 0.5}}).encode()
    (folder / "r.json").write_bytes(good)
    load(folder / "r.json")
    sentences = []
    for content in mutations(good, "records", count):
        (folder / "r.json").write_bytes(content)
        try:
            with limits(10):
                load(folder / "r.json")
        except ConfigError as error:
            sentences.append(str(error))
    assert sentences
    assert not any("\n" in sentence for sentence in sentences)


def test_mutated_records(tmp_path: Path) -> None:
    try_records(tmp_path, 30)


@pytest.mark.slow
def test_many_mutated_records(tmp_path: Path) -> None:
    try_records(tmp_path, 400)
