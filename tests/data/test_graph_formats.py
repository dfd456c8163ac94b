"""Every format is recognised from the file alone and gives the same graph."""

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
import torch

from kuramotognn import SparseFeatures
from kuramotognn.cli import main
from kuramotognn.data import DataError, GraphFiles, NodeDataset, given_splits, read_graph, read_nodes_edges
from tests.data.graph_examples import (
    LABELS,
    MASKS,
    NODES,
    PAIRS,
    SPLITS,
    WHOLE,
    X,
    data,
    edge_lists,
    undirected_pairs,
)

OTHERS = [name for name in WHOLE if name != "facebook.mat"]
NUM_SPLITS = {"shchur.npz": 0, "nodes.csv": 1}


def dense(dataset: NodeDataset) -> torch.Tensor:
    return dataset.x.to_dense() if isinstance(dataset.x, SparseFeatures) else dataset.x


def edge_set(dataset: NodeDataset) -> set[tuple[int, ...]]:
    return {tuple(pair) for pair in dataset.edge_index.t().tolist()}


@pytest.mark.parametrize("name", OTHERS)
def test_one_file_gives_the_whole_graph(name: str, tmp_path: Path) -> None:
    WHOLE[name](tmp_path / name)
    dataset, summary = read_graph(GraphFiles(tmp_path / name))
    assert dense(dataset).numpy() == pytest.approx(X)
    assert edge_set(dataset) == undirected_pairs()
    assert dataset.y.tolist() == LABELS.tolist()
    assert dataset.class_names == ("0", "1")
    assert summary.formats


@pytest.mark.parametrize("name", OTHERS)
def test_given_masks_are_splits(name: str, tmp_path: Path) -> None:
    WHOLE[name](tmp_path / name)
    splits = read_nodes_edges(tmp_path / name).given_splits
    assert len(splits) == given_splits(GraphFiles(tmp_path / name)) == NUM_SPLITS.get(name, SPLITS)
    for number, split in enumerate(splits):
        for part, nodes in (("train", split.train), ("val", split.validation), ("test", split.test)):
            assert nodes.tolist() == np.flatnonzero(MASKS[part][number]).tolist()


@pytest.mark.parametrize("name", WHOLE)
def test_check_and_train_need_the_file_alone(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    WHOLE[name](tmp_path / name)
    assert main(["check", "--nodes", name]) == 0
    assert "format" in capsys.readouterr().out
    settings = ["--training.epochs", "2", "--model.time", "1", "--model.hidden-channels", "4", "--quiet"]
    drawn = ["--data.protocol", "fraction", "--splits", "1"] if name == "facebook.mat" else []
    assert main(["train", "--nodes", name, *settings, *drawn, "--out", "run"]) == 0
    record = json.loads((tmp_path / "run" / "result.json").read_text())
    count = NUM_SPLITS.get(name, SPLITS)
    if not drawn and count:
        assert (record["protocol"], len(record["splits"])) == ("own-split", count)


def test_dgl_s_folder(tmp_path: Path) -> None:
    WHOLE["nodes.csv"](tmp_path / "nodes.csv")
    assert edge_set(read_nodes_edges(tmp_path)) == undirected_pairs()


def test_facebook_columns_are_categories_and_zero_is_missing(tmp_path: Path) -> None:
    WHOLE["facebook.mat"](tmp_path / "facebook.mat")
    dataset, summary = read_graph(GraphFiles(tmp_path / "facebook.mat"))
    assert dataset.y.tolist() == [*LABELS[:-1].tolist(), -1]
    assert edge_set(dataset) == undirected_pairs()
    assert summary.columns["year"] == "category, 4 values"
    assert summary.columns["gender"] == "label"
    by_year = read_nodes_edges(tmp_path / "facebook.mat", label="year", ignore=("dorm",))
    assert by_year.class_names == ("1", "2", "3", "4")


def test_many_categories_stay_sparse(tmp_path: Path) -> None:
    rows = [f"{node},{node % 2},c{node % 100}" for node in range(300)]
    (tmp_path / "n.csv").write_text("id,label,town\n" + "\n".join(rows) + "\n")
    (tmp_path / "e.csv").write_text("a,b\n0,1\n")
    dataset = read_nodes_edges(tmp_path / "n.csv", tmp_path / "e.csv", label="label", categorical=("town",))
    assert isinstance(dataset.x, SparseFeatures)
    names = sorted({f"c{node % 100}" for node in range(300)})
    assert dense(dataset).argmax(dim=1).tolist() == [names.index(f"c{node % 100}") for node in range(300)]


def test_attributes_beside_a_table_of_ids_and_labels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scipy.sparse.save_npz(tmp_path / "attributes.npz", scipy.sparse.csr_array(X))
    table = [f"{node},{LABELS[node]}" for node in range(NODES)]
    (tmp_path / "t.csv").write_text("\n".join(["id,label", *table]))
    (tmp_path / "e.txt").write_bytes(edge_lists()["snap.txt"])
    files = {"features": tmp_path / "attributes.npz"}
    dataset = read_nodes_edges(tmp_path / "t.csv", tmp_path / "e.txt", **files)
    assert dense(dataset).numpy() == pytest.approx(X)
    assert dataset.y.tolist() == LABELS.tolist()
    (tmp_path / "t.csv").write_text("\n".join(["id,label", *table[::-1]]))
    _, summary = read_graph(GraphFiles(tmp_path / "t.csv", tmp_path / "e.txt", **files))
    assert "in another order" in summary.warnings[0]


@pytest.mark.parametrize("name", edge_lists())
def test_edge_lists(name: str, tmp_path: Path) -> None:
    WHOLE["shchur.npz"](tmp_path / "g.npz")
    (tmp_path / name).write_bytes(edge_lists()[name])
    dataset, summary = read_graph(GraphFiles(tmp_path / "g.npz", tmp_path / name))
    assert edge_set(dataset) == undirected_pairs()
    assert summary.edges == len(PAIRS)


def test_a_first_row_of_ids_is_no_header(tmp_path: Path) -> None:
    (tmp_path / "n.csv").write_text("id,label,x\nann,0,1\nbob,1,2\ncat,0,3\n")
    (tmp_path / "e.txt").write_text("# friends\nann bob 2.5\nbob cat 1\n")
    dataset = read_nodes_edges(tmp_path / "n.csv", tmp_path / "e.txt", weight="weight")
    assert edge_set(dataset) == {(0, 1), (1, 0), (1, 2), (2, 1)}
    assert dataset.edge_weight is not None
    assert dataset.edge_weight.tolist() == [2.5, 2.5, 1, 1]


def test_a_tab_separated_id_may_hold_blanks(tmp_path: Path) -> None:
    (tmp_path / "n.csv").write_text("id,label,x\nNew York,0,1\nRome,1,2\n")
    (tmp_path / "e.txt").write_text("# roads\nNew York\tRome\n")
    assert edge_set(read_nodes_edges(tmp_path / "n.csv", tmp_path / "e.txt")) == {(0, 1), (1, 0)}


def test_edge_weights_of_pyg_s_data(tmp_path: Path) -> None:
    weighted = data()
    weighted.edge_weight = torch.arange(1.0, weighted.num_edges + 1)
    torch.save(weighted, tmp_path / "w.pt")
    dataset = read_nodes_edges(tmp_path / "w.pt", directed=True)
    assert dataset.edge_weight is not None
    found = dict(zip(map(tuple, dataset.edge_index.t().tolist()), dataset.edge_weight.tolist(), strict=True))
    wanted = zip(map(tuple, PAIRS.tolist()), weighted.edge_weight.tolist(), strict=True)
    assert found == dict(wanted)


def test_to_data_is_the_inverse_of_reading(tmp_path: Path) -> None:
    torch.save(data(), tmp_path / "d.pt")
    found, source = read_nodes_edges(tmp_path / "d.pt", directed=True).to_data(), data()
    for name in ("x", "y", "train_mask", "val_mask", "test_mask"):
        assert found[name].equal(source[name]), name
    assert sorted(found.edge_index.t().tolist()) == sorted(source.edge_index.t().tolist())
    assert found.validate()


def test_reading_leaves_torch_s_list_of_safe_classes_alone(tmp_path: Path) -> None:
    torch.save(data(), tmp_path / "d.pt")
    before = list(torch.serialization.get_safe_globals())
    read_nodes_edges(tmp_path / "d.pt")
    assert set(torch.serialization.get_safe_globals()) == set(before)


def without(name: str, **changes: object) -> dict[str, object]:
    arrays: dict[str, object] = {"node_features": X, "node_labels": LABELS, "edges": PAIRS}
    return {**{key: value for key, value in arrays.items() if key != name}, **changes}


@pytest.mark.parametrize(("arrays", "sentence"), [
    (without("edges", edges=PAIRS.astype(float)), "its edges must be pairs of whole numbers"),
    (without("edges", edges=PAIRS[:, :1]), "its edges must be pairs of whole numbers"),
    (without("edges", edges=PAIRS + NODES), "is not in g.npz; add it, or drop such edges with --allow-missing"),
    (without("node_labels", node_labels=LABELS[1:]), "its labels have shape [11] but it has 12 nodes"),
    (without("node_labels", node_labels=np.eye(NODES)), "each node needs one class"),
    (without("node_features", node_features=np.where(X == 1, np.nan, X)), "row 1, column 1 of its matrix is nan"),
    (without("node_features", node_features=X.astype("U3")), "not numbers"),
    (without("", train_masks=MASKS["train"], val_masks=MASKS["train"], test_masks=MASKS["test"]),
     "node 0 is in two parts of split 0"),
    (without("", **{f"{part}_masks": mask[:, 1:] for part, mask in MASKS.items()}), "masks are for 11 nodes"),
])  # fmt: skip
def test_graph_files_that_cannot_be_used(arrays: dict[str, object], sentence: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "g.npz", **arrays)  # type: ignore[arg-type]
    with pytest.raises(DataError) as raised:
        read_nodes_edges(tmp_path / "g.npz")
    assert sentence in str(raised.value)


def test_a_sparse_nan_is_named_by_row_and_column(tmp_path: Path) -> None:
    matrix = scipy.sparse.csr_array(X)
    matrix.data[-1] = np.nan
    place = matrix.tocoo()
    scipy.sparse.save_npz(tmp_path / "x.npz", matrix)
    WHOLE["heterophilous.npz"](tmp_path / "g.npz")
    sentence = f"row {place.row[-1]}, column {place.col[-1]} of its matrix is nan"
    with pytest.raises(DataError, match=sentence):
        read_nodes_edges(tmp_path / "g.npz", features=tmp_path / "x.npz")


def test_unknown_content_lists_the_formats(tmp_path: Path) -> None:
    torch.save({"weight": torch.ones(2)}, tmp_path / "m.pt")
    with pytest.raises(DataError, match=r"holds weight \[2\], which is no graph that is known here: Shchur"):
        read_nodes_edges(tmp_path / "m.pt")
    torch.save(torch.nn.Linear(2, 2), tmp_path / "m.pt")
    with pytest.raises(DataError, match="holds objects other than tensors, which can run code"):
        read_nodes_edges(tmp_path / "m.pt")
