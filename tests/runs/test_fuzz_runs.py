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
from tests.runs.test_own_graph import train_two_communities
from tests.sweeps.small_sweep import small_jobs

FILES = ("config.toml", "split-0/result.json", "split-0/encoder.json", "split-0/model.safetensors")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    return train_two_communities(tmp_path_factory.mktemp("fuzz"))


def mutations(good: bytes, seed: str, count: int) -> Iterator[bytes]:
    rnd = random.Random(seed)
    for _ in range(count):
        yield mutate(good, rnd)


def counts(usual: int, many: int) -> pytest.MarkDecorator:
    """How many mutations to try: few in every run of the tests, many in the slow one."""
    return pytest.mark.parametrize("count", [usual, pytest.param(many, marks=pytest.mark.slow)])


@counts(24, 500)
@pytest.mark.parametrize("name", FILES)
@pytest.mark.filterwarnings("ignore")
def test_a_mutated_run_folder(
    name: str, count: int, run: tuple[Path, list[str]], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    source, files = run
    shutil.copytree(source, tmp_path / "run")
    commands = [
        ["evaluate", str(tmp_path / "run"), "--quiet"],
        ["predict", str(tmp_path / "run"), *files, "--out", str(tmp_path / "p.csv"), "--overwrite", "--quiet"],
    ]
    codes = []
    for content in mutations((source / name).read_bytes(), name, count):
        (tmp_path / "run" / name).write_bytes(content)
        with limits(10):
            codes.append(main(commands[len(codes) % 2]))
        told = capfd.readouterr().err
        assert codes[-1] in (0, 2)
        assert told.count("\n") == (codes[-1] == 2), told
    assert 2 in codes, "too few mutations were errors"


@counts(30, 300)
@pytest.mark.filterwarnings("ignore")
def test_mutated_settings(
    count: int, run: tuple[Path, list[str]], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    good = b"""dataset = "cora"
splits = 2
[model]
name = "gcn"
num_layers = 2
[training]
epochs = 3
[data]
scale = 2.0
"""
    not_empty = 0
    for content in (good, *mutations(good, "settings", count)):
        (tmp_path / "c.toml").write_bytes(content)
        with limits(10):
            code = main(["train", "--config", str(tmp_path / "c.toml"), "--out", str(run[0]), "--quiet"])
        told = capfd.readouterr().err
        assert (code, told.count("\n")) == (2, 1), told  # At the latest because the folder is not empty.
        not_empty += "not empty" in told
        assert not_empty, "the settings are valid before they are mutated"
    assert not_empty < count, "too few mutations were errors"


@counts(30, 400)
def test_mutated_records(count: int, tmp_path: Path) -> None:
    good = json.dumps(small_jobs(1)[0]._record() | {"result": {"protocol": "fraction", "test_accuracy": 0.5}}).encode()
    (tmp_path / "r.json").write_bytes(good)
    load(tmp_path / "r.json")
    sentences = []
    for content in mutations(good, "records", count):
        (tmp_path / "r.json").write_bytes(content)
        try:
            with limits(10):
                load(tmp_path / "r.json")
        except ConfigError as error:
            sentences.append(str(error))
    assert sentences
    assert not any("\n" in sentence for sentence in sentences)
