"""Labels that mean unknown, and a label column that was not named."""

from pathlib import Path

import polars as pl
import pytest

from kuramotognn.cli import main
from kuramotognn.data import GraphFiles, read_graph


def read(folder: Path, labels: list[object], **meaning: object) -> tuple[list[int], tuple[str, ...], dict[str, int]]:
    frame = pl.DataFrame({"id": range(len(labels)), "topic": labels, "size": [0.5] * len(labels)}, strict=False)
    frame.write_parquet(folder / "n.parquet")
    (folder / "e.csv").write_text("a,b\n0,1\n")
    files = GraphFiles(folder / "n.parquet", folder / "e.csv", label="topic", **meaning)  # type: ignore[arg-type]
    dataset, summary = read_graph(files)
    return dataset.y.tolist(), dataset.class_names, summary.unknown


@pytest.mark.parametrize(("labels", "y", "unknown"), [
    ([0, 1, -1, 1], [0, 1, -1, 1], {"-1": 1}),
    (["0.0", "1.0", "-1.0"], [0, 1, -1], {"-1.0": 1}),
    ([0.0, 1.0, float("nan")], [0, 1, -1], {}),
    (["a", "b", "?", "Unknown", "NaN", None, ""], [0, 1, -1, -1, -1, -1, -1], {"?": 1, "Unknown": 1, "NaN": 1}),
    ([-1, 1, 1], [0, 1, 1], {}),
    ([-2, -1, 0], [0, 1, 2], {}),
])  # fmt: skip
def test_unknown_labels(labels: list[object], y: list[int], unknown: dict[str, int], tmp_path: Path) -> None:
    found = read(tmp_path, labels)
    assert (found[0], found[2]) == (y, unknown)


def test_unknown_labels_can_be_named(tmp_path: Path) -> None:
    assert read(tmp_path, [0, 1, -1], unknown=("none",))[1] == ("-1", "0", "1")
    assert read(tmp_path, [0, 1, 9, -1], unknown=("auto", "9"))[0] == [0, 1, -1, -1]
    assert read(tmp_path, ["a", "b", "?"], unknown=("a",))[1] == ("?", "b")


def write(folder: Path, header: str, label: str) -> list[str]:
    rows = [f"{node},{node % 3},{node / 7},{label if node < 4 else node % 2}" for node in range(40)]
    (folder / "n.csv").write_text("\n".join([header, *rows]))
    (folder / "e.csv").write_text("a,b\n0,1\n")
    return ["check", "--nodes", str(folder / "n.csv"), "--edges", str(folder / "e.csv")]


def test_check_reports_unknown_labels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [*write(tmp_path, "id,kind,size,topic", "-1"), "--label", "topic"]
    assert main(arguments) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "4 nodes to predict" in told
    assert "-1 4: labels that are taken as unknown" in told
    assert main([*arguments, "--unknown", "none"]) == 0
    assert "0 nodes to predict" in capsys.readouterr().out
    assert main([*arguments, "--unknown", "-1", "0"]) == 0
    assert "22 nodes to predict" in capsys.readouterr().out


def test_check_warns_without_a_label(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(write(tmp_path, "id,kind,size,topic", "0")) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "warning no column of classes is named" in told
    assert "'kind', 'topic'" in told


def test_a_column_called_label_is_the_label(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(write(tmp_path, "id,kind,size,label", "0")) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "label label" in told
    assert "number kind, size classes" in told


def test_several_columns_can_be_ignored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*write(tmp_path, "id,kind,size,label", "0"), "--ignore", "kind", "label", "--label", "kind"]) == 0
    assert main([*write(tmp_path, "id,kind,size,topic", "0"), "--ignore", "kind", "topic"]) == 0
    assert "left out kind, topic" in " ".join(capsys.readouterr().out.split())
