"""The command ``reproduce``, on the one experiment that takes no training."""

import json
from pathlib import Path

import pytest

from kuramotognn.cli import main
from kuramotognn.sweeps.catalogue import ORDER
from kuramotognn.sweeps.cells import load
from tests.conftest import Refused

STATISTICS = ["reproduce", "dataset-statistics", "--datasets", "cora"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("reproduced")
    assert main([*STATISTICS, "--out", str(out), "--quiet"]) == 0
    return out


def test_the_statistics_are_the_papers(folder: Path, tmp_path: Path) -> None:
    (path,) = folder.rglob("*.json")
    assert load(path)["result"] == {
        "protocol": "random-per-class",
        "nodes": 2485,
        "edges": 5069,
        "features": 1433,
        "classes": 7,
    }
    assert main(["report", "--from", str(folder), "--out", str(tmp_path), "--quiet"]) == 0
    text = (tmp_path / "report.md").read_text()
    assert "| cora | 7 (7; +0) | 1433 (1433; +0) | 2485 (2485; +0) | 5069 (5069; +0) |" in text


def test_what_is_done_is_kept_unless_forced(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (path,) = folder.rglob("*.json")
    before = path.stat().st_mtime_ns
    assert main([*STATISTICS, "--out", str(folder)]) == 0
    assert path.stat().st_mtime_ns == before
    assert "1 of 1 runs are in" in capsys.readouterr().out
    assert main([*STATISTICS, "--out", str(folder), "--force", "--quiet"]) == 0
    assert path.stat().st_mtime_ns > before


def test_failures_are_run_again_when_asked(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (path,) = folder.rglob("*.json")
    copy = tmp_path / path.relative_to(folder)
    copy.parent.mkdir(parents=True)
    record = load(path)
    del record["result"]
    copy.write_text(json.dumps(record | {"failed": "for a test"}))
    assert main([*STATISTICS, "--out", str(tmp_path), "--quiet"]) == 1
    told = capsys.readouterr()
    assert "1 of 1 runs" in told.out
    assert "1 of 1 cells failed and 0 were not run" in told.err
    assert "failed" in load(copy)
    assert main([*STATISTICS, "--out", str(tmp_path), "--retry-failed", "--quiet"]) == 0
    assert "result" in load(copy)


def test_the_list(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KURAMOTOGNN_DATA", str(folder / "nothing"))
    assert main(["reproduce", "--out", str(folder), "--json"]) == 0
    rows = {row["experiment"]: row for row in json.loads(capsys.readouterr().out)}
    assert list(rows) == list(ORDER)
    assert rows["dataset-statistics"]["done"] == 1
    assert rows["main-accuracy"]["runs"] == 9 * 6 * 20
    assert "Photo/raw" in rows["main-accuracy"]["missing"]["photo"]
    assert main(["reproduce", "--out", str(folder)]) == 0
    told = " ".join(capsys.readouterr().out.split())
    for word in ("main-accuracy", "left, 1 job", "the paper's protocol is --splits 100", "not counted, because not in"):
        assert word in told
    assert "photo" in told.split("not counted")[1]


def test_ctrl_c_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("kuramotognn.sweeps.workers.run_cells", interrupted)
    assert main([*STATISTICS, "--out", str(tmp_path), "--quiet"]) == 130
    sentence = f"what was finished is kept, go on by giving the same command again; results are in {tmp_path}"
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["dept"], "unknown experiment 'dept'; did you mean 'depth'?"),
        (["depth", "--datasets", "pubmed"], "experiment depth has no data set 'pubmed'"),
        (["coupling", "--splits", "2"], "uses protocol planetoid-public, which has 1 split to report on, got 2"),
        (["depth", "--only", "T=65"], "experiment depth has no case 'T=65'; did you mean"),
        (["depth", "--only", "K=1"], "experiment depth has no axis 'K'"),
        (["depth", "--only", "64"], "--only must be AXIS=NUMBER, such as T=64, with commas between, got '64'"),
        (["depth", "--seeds", "0"], "seeds must be at least 1, got 0"),
        ([*STATISTICS[1:], "--jobs", "0"], "jobs must be at least 1, got 0"),
        (["depth", "--tuned", "missing.toml"], "config file 'missing.toml' does not exist"),
    ],
)
def test_mistakes_get_one_sentence(
    monkeypatch: pytest.MonkeyPatch, assert_refused: Refused, arguments: list[str], sentence: str
) -> None:
    monkeypatch.setenv("KURAMOTOGNN_OFFLINE", "1")
    assert_refused(["reproduce", *arguments, "--quiet"], sentence)
