"""From files to predictions: a run on a graph of one's own."""

import csv
import errno
import json
import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from torch_geometric.data import Data

from kuramotognn import Graph, fit, fraction, from_data
from kuramotognn.cli import main
from kuramotognn.config.resolve import resolve
from kuramotognn.data import ColumnEncoder, Columns

SETTINGS = ["--splits", "1", "--model.hidden-channels", "8", "--model.time", "1", "--training.epochs", "8", "--quiet"]


def two_communities() -> Data:
    rnd = np.random.default_rng(0)
    y = np.arange(90) % 3
    x = rnd.standard_normal((90, 4)).astype(np.float32) + 2 * np.eye(3, 4, dtype=np.float32)[y] * 1000 / 997
    pairs = np.array([(i, j) for i in range(90) for j in range(i) if rnd.random() < (0.15 if y[i] == y[j] else 0.01)])
    edges = np.concatenate([pairs, pairs[:, ::-1]]).T.copy()
    return Data(x=torch.from_numpy(x), edge_index=torch.from_numpy(edges), y=torch.from_numpy(y))


def write_csv(data: Data, folder: Path, labels: bool = True) -> list[str]:
    columns: dict[str, object] = {"id": [f"n{node}" for node in range(data.x.size(0))]}
    columns |= {f"x{column}": data.x[:, column].numpy() for column in range(data.x.size(1))}
    if labels:
        columns["y"] = data.y.numpy()
    pl.DataFrame(columns).write_csv(folder / "nodes.csv")
    source, target = data.edge_index[:, data.edge_index[0] < data.edge_index[1]].tolist()
    ends = {"from": [f"n{node}" for node in source], "to": [f"n{node}" for node in target]}
    pl.DataFrame(ends).write_csv(folder / "edges.csv")
    return ["--nodes", str(folder / "nodes.csv"), "--edges", str(folder / "edges.csv")]


def train_two_communities(folder: Path) -> tuple[Path, list[str]]:
    """A run folder, and the flags that name its files."""
    files = write_csv(two_communities(), folder)
    assert main(["train", *files, "--label", "y", *SETTINGS, "--out", str(folder / "run")]) == 0
    return folder / "run", files


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    return train_two_communities(tmp_path_factory.mktemp("own"))


def rows_of(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text().splitlines()))


def test_round_trip_gives_what_training_in_python_gives(trained: tuple[Path, list[str]], tmp_path: Path) -> None:
    run, files = trained
    recorded = json.loads((run / "result.json").read_text())["splits"][0]
    model = {"hidden_channels": 8, "time": 1.0, "encoder": "mlp"}
    training = {"epochs": 8, "weight_decay": 5e-4}
    config = resolve({"splits": 1, "model": model, "training": training}, {"recommended": False}).config
    dataset = from_data(two_communities())
    split = fraction(dataset.y, 0)
    columns = Columns.of_features(dataset.x)
    x = ColumnEncoder.fit(columns, split.train, standardise=True).apply(columns)
    torch.manual_seed(0)
    network = config.model.build(4, 3, config.solver)
    graph = Graph.from_edge_index(dataset.edge_index, 90, self_loops=True)
    in_python = fit(network, x, graph, dataset.y, split, config=config.training, seed=0)
    assert recorded["test_accuracy"] == in_python.test_accuracy
    assert recorded["validation_accuracy"] == in_python.best.validation_accuracy
    assert recorded["test_measures"] == in_python.test_measures

    out = tmp_path / "predictions.csv"
    assert main(["predict", str(run), *files, "--out", str(out), "--quiet"]) == 0
    rows = rows_of(out)
    right = [rows[node]["prediction"] == str(int(dataset.y[node])) for node in split.test.tolist()]
    assert sum(right) / len(right) == recorded["test_accuracy"]
    assert rows[5]["node"] == "n5"
    assert sum(float(value) for name, value in rows[5].items() if name.startswith("p(")) == pytest.approx(1, abs=1e-5)


def test_new_nodes_keep_the_old_ones_as_neighbours(trained: tuple[Path, list[str]], tmp_path: Path) -> None:
    run, files = trained
    whole = tmp_path / "whole.csv"
    assert main(["predict", str(run), *files, "--out", str(whole), "--quiet"]) == 0
    new = tmp_path / "new.csv"
    lines = Path(files[1]).read_text().splitlines()
    new.write_text("\n".join([lines[0], *lines[-3:]]) + "\n")
    arguments = ["predict", str(run), "--nodes", str(new), *files[2:], "--out", str(tmp_path / "new-p.csv"), "--quiet"]
    assert main([*arguments, "--with-training-nodes"]) == 0
    assert rows_of(tmp_path / "new-p.csv") == rows_of(whole)[-3:]
    assert main([*arguments, "--allow-missing"]) == 2, "the file is there, and is kept unless asked"
    assert rows_of(tmp_path / "new-p.csv") == rows_of(whole)[-3:]
    assert main([*arguments, "--allow-missing", "--overwrite"]) == 0
    assert len(rows_of(tmp_path / "new-p.csv")) == 3


def test_new_files_that_do_not_fit(trained: tuple[Path, list[str]], tmp_path: Path,
                                   capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    run, files = trained
    out = tmp_path / "p.csv"
    new = tmp_path / "new.csv"
    for change, sentence in [
        (("x2", "z2"), "has no column 'x2' (the model was trained with it)"),
        (("n3,", "m3,"), "keep those of the run with --with-training-nodes"),
    ]:
        new.write_text(Path(files[1]).read_text().replace(*change))
        assert main(["predict", str(run), "--nodes", str(new), *files[2:], "--out", str(out), "--quiet"]) == 2
        assert sentence in capsys.readouterr().err
        assert not out.exists()
    assert main(["predict", str(run), "--nodes", str(new), "--out", str(out), "--quiet"]) == 2
    assert "holds nodes only, and --edges is missing" in capsys.readouterr().err


def test_a_tampered_encoder_gets_a_sentence(trained: tuple[Path, list[str]], tmp_path: Path,
                                            capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    run, files = trained
    encoder = run / "split-0" / "encoder.json"
    whole = encoder.read_bytes()
    try:
        for content in (
            whole[:-9],
            whole.replace(b"means", b"meanz"),
            b"\xff",
            whole.replace(b'"x0":', b'"x0": "a", "q":'),
        ):
            encoder.write_bytes(content)
            assert main(["predict", str(run), *files, "--out", str(tmp_path / "p.csv"), "--quiet"]) == 2
            told = capsys.readouterr().err
            assert "encoder.json is not an encoder file" in told
            assert told.count("\n") == 1
    finally:
        encoder.write_bytes(whole)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--label", "z"], "has no column 'z'"),
        ([], "needs the column of its classes; name it with --label"),
        (["--label", "y", "--dataset", "photo"], "leave out the data set 'photo'"),
        (["--label", "y", "--data.protocol", "own-split"], "name the column of parts with --split-column"),
        (["--label", "y", "--data.protocol", "geom-gcn"], "your graph has no protocol 'geom-gcn'"),
        (["--label", "y", "--separator", "ab"], "separator must be one character"),
        (
            ["--label", "y", "--data.protocol", "k-fold", "--data.folds", "40"],
            "but 40 folds needs 40",
        ),
    ],
)
def test_mistakes_leave_nothing_behind(
    arguments: list[str],
    sentence: str,
    trained: tuple[Path, list[str]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["train", *trained[1], *arguments, *SETTINGS, "--out", str(tmp_path / "run")]) == 2
    told = capsys.readouterr().err
    assert sentence in told
    assert told.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_class_with_one_node(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = write_csv(two_communities(), tmp_path)
    text = (tmp_path / "nodes.csv").read_text().splitlines()
    (tmp_path / "nodes.csv").write_text("\n".join([*text[:-1], text[-1][:-1] + "rare"]))
    assert main(["check", *files, "--label", "y"]) == 0
    assert "class 'rare' has 1 labelled node(s)" in " ".join(capsys.readouterr().out.split())
    assert main(["train", *files, "--label", "y", *SETTINGS, "--out", str(tmp_path / "run")]) == 2
    assert "class 'rare' has 1 labelled node, but the fraction protocol needs 3" in capsys.readouterr().err


def test_check_says_what_was_understood(trained: tuple[Path, list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", *trained[1], "--label", "y"]) == 0
    told = capsys.readouterr().out
    for words in ("90, 0 of them without an edge", "x0, x1, x2, x3", "3: 0 30 (33 %)", "0 nodes to predict"):
        assert words in told
    assert main(["check", *trained[1], "--label", "y", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["classes"] == {"0": 30, "1": 30, "2": 30}
    assert main(["check", "--nodes", trained[1][1]]) == 2
    assert "--edges is missing" in capsys.readouterr().err


def test_class_weights_and_folds(trained: tuple[Path, list[str]], tmp_path: Path) -> None:
    arguments = ["--data.protocol", "k-fold", "--data.folds", "3", "--training.class-weights", "balanced"]
    out = tmp_path / "run"
    settings = [*SETTINGS[2:], *arguments, "--splits", "3"]
    assert main(["train", *trained[1], "--label", "y", *settings, "--out", str(out)]) == 0
    rows = [rows_of(out / f"split-{number}" / "predictions.csv") for number in range(3)]
    tested = [{row["node"] for row in part if row["part"] == "test"} for part in rows]
    assert set.union(*tested) == {f"n{node}" for node in range(90)}
    assert sum(map(len, tested)) == 90
    record = json.loads((out / "result.json").read_text())
    assert {"test_macro_f1", "test_balanced_accuracy"} <= record["summary"].keys()
    assert np.sum(record["splits"][0]["test_measures"]["confusion"]) == record["splits"][0]["test_nodes"]
    assert (out / "split-2" / "confusion.svg").read_text().startswith("<?xml")


def test_a_full_disk_and_a_forbidden_folder(
    trained: tuple[Path, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run, files = trained
    out = tmp_path / "p.csv"
    out.write_text("old")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr("kuramotognn.atomic_write.os.fsync", full)
        assert main(["predict", str(run), *files, "--out", str(out), "--overwrite", "--quiet"]) == 2
    assert "No space left on device" in capsys.readouterr().err
    assert out.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["p.csv"]

    def forbidden(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(tmp_path))

    monkeypatch.setattr("kuramotognn.atomic_write.tempfile.mkstemp", forbidden)
    assert main(["predict", str(run), *files, "--out", str(out), "--overwrite", "--quiet"]) == 2
    assert "Permission denied" in capsys.readouterr().err
    assert out.read_text() == "old"
