"""Graph folders: what is read from one is what was converted, and a damaged one is refused."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from kuramotognn import DataError, NodeDataset, load_dataset, read_nodes_edges
from kuramotognn.cli import main
from kuramotognn.config.resolve import resolve
from kuramotognn.data import ColumnEncoder
from kuramotognn.data.graph_folder import FACTS, read_folder, summarise, write_folder
from kuramotognn.features import SparseFeatures
from kuramotognn.mapped_features import MappedFeatures
from kuramotognn.runs.task import Task
from tests.data.graph_examples import WHOLE

NODES = 40
SETTINGS = ["--model.time", "1", "--training.epochs", "4", "--splits", "1", "--quiet"]


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """A table of nodes with numbers, categories, classes and parts; weighted edges; a dense matrix on disk."""
    random = np.random.RandomState(0)
    parts = np.array(["train", "validation", "test", ""])[np.arange(NODES) % 4]
    rows = [
        f"n{i},{1e9 + random.randn():.3f},{'red' if i % 3 else 'blue'},{'yes' if i % 2 else 'no'},{parts[i]}"
        for i in range(NODES)
    ]
    ends = random.randint(NODES, size=(90, 2))
    edges = {tuple(sorted(pair)): random.rand() for pair in ends.tolist()}
    paths = {name: tmp_path / file for name, file in (("nodes", "n.csv"), ("edges", "e.csv"), ("features", "x.npy"))}
    paths["nodes"].write_text("\n".join(["id,size,colour,label,part", *rows]) + "\n", encoding="utf-8")
    lines = [f"n{i},n{j},{weight:.4f}" for (i, j), weight in edges.items()]
    paths["edges"].write_text("\n".join(["a,b,w", *lines]) + "\n", encoding="utf-8")
    np.save(paths["features"], random.randn(NODES, 6))
    return paths


def flags(files: dict[str, Path]) -> list[str]:
    named = [text for name, path in files.items() for text in (f"--{name}", str(path))]
    return [*named, "--label", "label", "--split-column", "part", "--weight", "w"]


def same(first: NodeDataset, second: NodeDataset) -> None:
    dense = [x if isinstance(x, torch.Tensor) else x.to_dense() for x in (first.x, second.x)]
    assert torch.equal(*dense)
    assert torch.equal(first.y, second.y)
    assert first.class_names == second.class_names
    assert list(first.node_ids) == list(second.node_ids)
    graphs = [Task.of(resolve({"data.normalisation": "none"}).config, each).graph for each in (first, second)]
    for name in ("rowptr", "row", "col", "transposed_rowptr", "transpose"):
        assert torch.equal(*(getattr(graph.pattern, name) for graph in graphs))
    assert torch.equal(*(graph.weight for graph in graphs))
    for here, there in zip(first.given_splits, second.given_splits, strict=True):
        assert all(torch.equal(getattr(here, part), getattr(there, part)) for part in ("train", "validation", "test"))


@pytest.mark.parametrize("with_matrix", [True, False])
def test_a_folder_holds_what_the_files_hold(files: dict[str, Path], with_matrix: bool, tmp_path: Path) -> None:
    matrix = {"features": files["features"]} if with_matrix else {}
    meaning: dict[str, Any] = {"label": "label", "split_column": "part", "weight": "w", **matrix}
    original = read_nodes_edges(files["nodes"], files["edges"], **meaning)
    write_folder(original, summarise(original, directed=False), tmp_path / "folder")
    found = read_nodes_edges(tmp_path / "folder")
    same(found, original)
    assert isinstance(found.x, MappedFeatures) == with_matrix
    encoded = []
    for each in (found, original):  # Numbers are standardised in double precision, in both alike.
        assert each.columns is not None
        x = ColumnEncoder.fit(each.columns, each.given_splits[0].train, standardise=True).apply(each.columns)
        encoded.append(x if isinstance(x, torch.Tensor) else x.to_dense())
    assert torch.equal(*encoded)
    assert float(encoded[0][original.given_splits[0].train, 0].std(correction=0)) == pytest.approx(1.0)


@pytest.mark.parametrize("name", WHOLE)
def test_every_format_that_check_reads_is_converted(name: str, tmp_path: Path) -> None:
    WHOLE[name](tmp_path / name)
    assert main(["convert", str(tmp_path / name), "--out", str(tmp_path / "folder")]) == 0
    same(read_nodes_edges(tmp_path / "folder"), read_nodes_edges(tmp_path / name))


def test_a_public_data_set_with_sparse_features(tmp_path: Path) -> None:
    cora = load_dataset("cora")
    write_folder(cora, summarise(cora, directed=False), tmp_path / "cora", self_loops=True)
    found, summary = read_folder(tmp_path / "cora")
    assert isinstance(found.x, SparseFeatures)
    assert found.x.to_dense().equal(cora.x.to_dense())  # type: ignore[union-attr]
    assert (summary.nodes, sum(summary.classes.values())) == (cora.num_nodes, cora.num_nodes)
    assert found.graph is not None
    assert found.graph.with_self_loops() is found.graph
    found.graph.weight[0] = 5.0
    assert np.load(tmp_path / "cora" / "weight.npy")[0] == 1.0, "what is changed in memory does not reach the file"


def test_commands_take_a_folder_as_they_take_files(
    files: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "folder"
    given = flags(files)
    assert main(["convert", given[1], *given[2:], "--out", str(folder)]) == 0
    assert main(["check", "--nodes", str(folder), "--quiet"]) == 0
    assert "40 nodes" in capsys.readouterr().out
    assert main(["train", "--nodes", str(folder), *SETTINGS, "--out", str(tmp_path / "run")]) == 0
    assert main(["train", *given, *SETTINGS, "--out", str(tmp_path / "plain")]) == 0
    metrics = [(tmp_path / run / "split-0" / "metrics.jsonl").read_text() for run in ("run", "plain")]
    assert metrics[0] == metrics[1], "the files read their matrix from disk, too"
    assert main(["evaluate", str(tmp_path / "run"), "--quiet"]) == 0
    predictions = [tmp_path / "first.csv", tmp_path / "second.csv"]
    assert main(["predict", str(tmp_path / "run"), "--out", str(predictions[0])]) == 0
    assert main(["predict", str(tmp_path / "plain"), "--nodes", str(folder), "--out", str(predictions[1])]) == 0
    rows = [path.read_text().splitlines() for path in predictions]
    assert [line.split(",")[3:] for line in rows[0]] == [line.split(",")[3:] for line in rows[1]]
    command = ["train", "--nodes", str(folder), "--batch", "nodes", "--parts", "4", "--parts-per-batch", "2"]
    assert main([*command, *SETTINGS, "--out", str(tmp_path / "batches")]) == 0


def test_flags_that_a_folder_has_settled_are_refused(
    files: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(tmp_path / "folder")
    given = flags(files)
    assert main(["convert", *given, "--out", folder]) == 0
    wrong = {
        "leave out --label": ["check", "--nodes", folder, "--label", "label"],
        "leave out --edges": ["check", "--nodes", folder, "--edges", str(files["edges"])],
        "are undirected; leave out --directed": ["check", "--nodes", folder, "--directed"],
        "exists and is not empty": ["convert", *given, "--out", folder],
        "leave out the files": ["convert", *given, "--dataset", "cora", "--out", folder],
        "needs one graph": ["convert", "--out", folder],
        "of all nodes": ["train", "--nodes", folder, "--data.largest-component", *SETTINGS],
    }
    for sentence, command in wrong.items():
        assert main(command) == 2
        error = capsys.readouterr().err
        assert sentence in error
        assert error.count("\n") == 1
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_damaged_folders_are_refused(files: dict[str, Path], tmp_path: Path) -> None:
    meaning: dict[str, Any] = {"label": "label", "features": files["features"], "ignore": ("part",)}
    original = read_nodes_edges(files["nodes"], files["edges"], **meaning)
    folder = tmp_path / "folder"
    write_folder(original, summarise(original, directed=False), folder)
    for path in sorted(folder.iterdir()):
        if path.name == FACTS or not path.stat().st_size:
            continue
        content = path.read_bytes()
        is_empty = path.name == "splits.npy"
        for damage in (None, b"", content[: len(content) // 2], content[:-8]):
            path.unlink() if damage is None else path.write_bytes(damage)
            if damage is None or not is_empty:
                with pytest.raises(DataError, match=r"^[^\n]+\Z") as caught:
                    read_folder(folder)
                assert path.stem in str(caught.value)
        path.write_bytes(content)
    read_folder(folder)
    for name in ("graph-entries", "graph-transpose", "graph-rowptr", "graph-transposed-rowptr", "labels", "categories"):
        array = np.load(folder / f"{name}.npy")
        wrong = array.copy()
        wrong.flat[1] = 10**6
        np.save(folder / f"{name}.npy", wrong)
        with pytest.raises(DataError, match=f"{name}.npy is damaged"):
            read_folder(folder)
        np.save(folder / f"{name}.npy", array.astype(np.int32))
        with pytest.raises(DataError, match="holds int32"):
            read_folder(folder)
        np.save(folder / f"{name}.npy", array)
    facts = json.loads((folder / FACTS).read_text())
    for change, sentence in (
        ({"format": 2}, "another version"),
        ({"nodes": NODES + 1}, "says"),
        ({"nodes": "many"}, "damaged: nodes"),
        ({"summary": {"nodes": "many"}}, "damaged: nodes"),
    ):
        (folder / FACTS).write_text(json.dumps(facts | change))
        with pytest.raises(DataError, match=sentence):
            read_folder(folder)


ALLOWED = 768 << 20
"""Bytes of private memory that the process below may have: RLIMIT_DATA counts all of it and no file that is mapped."""


def limited(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    import resource  # There is none on Windows.

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (ALLOWED, ALLOWED))

    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, preexec_fn=limit, check=False)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not enforce RLIMIT_DATA")
def test_features_of_twice_the_allowed_memory_train(tmp_path: Path) -> None:
    nodes = 100_000
    width = 2 * ALLOWED // 4 // nodes + 1
    path, random = tmp_path / "x.npy", np.random.RandomState(0)
    y = random.randint(2, size=nodes)
    array = np.lib.format.open_memmap(path, "w+", np.float32, (nodes, width))
    for start in range(0, nodes, 10_000):
        block = random.standard_normal((10_000, width)).astype(np.float32)
        array[start : start + 10_000] = block + y[start : start + 10_000, None]
    array.flush()
    del array
    assert path.stat().st_size > 2 * ALLOWED
    (tmp_path / "n.csv").write_text("id,label\n" + "".join(f"{i},{label}\n" for i, label in enumerate(y.tolist())))
    (tmp_path / "e.csv").write_text("a,b\n" + "".join(f"{i},{(i + 2) % nodes}\n" for i in range(nodes)))
    folder, run = str(tmp_path / "folder"), str(tmp_path / "run")
    named = ["--nodes", str(tmp_path / "n.csv"), "--edges", str(tmp_path / "e.csv"), "--features", str(path)]
    assert main(["convert", *named, "--label", "label", "--out", folder]) == 0
    in_memory = limited("import numpy, sys; numpy.load(sys.argv[1])", f"{folder}/features.npy")
    assert "MemoryError" in in_memory.stderr, "the limit holds"
    code = "import sys; from kuramotognn.cli import main; sys.exit(main(sys.argv[1:]))"
    settings = ["--model.hidden-channels", "4", "--model.heads", "1", "--model.time", "1", "--solver.steps", "2"]
    settings += ["--training.epochs", "2", "--splits", "1", "--model.input-dropout", "0.2", "--quiet"]
    done = limited(code, "train", "--nodes", folder, *settings, "--out", run)
    assert done.returncode == 0, done.stderr
    result = json.loads((Path(run) / "result.json").read_text())
    assert result["splits"][0]["test_accuracy"] > 0.6
