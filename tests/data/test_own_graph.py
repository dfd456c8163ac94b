"""Graphs from the user's files: what is read, and which errors are raised."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import scipy.sparse
import torch

from kuramotognn import SparseFeatures
from kuramotognn.data import ColumnEncoder, DataError, GraphFiles, NodeDataset, read_graph, read_nodes_edges
from kuramotognn.data.matrix_files import read_matrix

NODES = """paper,year,venue,pages,topic,part
a,1990,ICML,8,ml,train
b,1991,NIPS,9,ml,train
c,1992,ICML,7,db,validation
d,1993,VLDB,12,db,test
e,1994,,10,,
f,1995,NIPS,11,ml,test
"""
EDGES = """from,to,strength
a,b,1
b,a,1
b,c,2
c,d,0.5
e,e,3
"""
MEANING = {"label": "topic", "id": "paper", "split_column": "part"}
BAD_FILES: dict[str, tuple[str | bytes, str | bytes, dict[str, object], str]] = {
    "missing-column": (
        NODES,
        EDGES,
        {"label": "topics"},
        "nodes.csv has no column 'topics' (labels; name it with --label); did you mean 'topic'?",
    ),
    "missing-id": (NODES, EDGES, {"id": "key"}, "nodes.csv has no column 'key' (ids; name it with --id)"),
    "missing-weight": (NODES, EDGES, {"weight": "w"}, "edges.csv has no column 'w'"),
    "missing-source": (NODES, EDGES, {"source": "x"}, "edges.csv has no column 'x'"),
    "unknown-id": (
        NODES,
        EDGES + "p17,a,1\n",
        {},
        "edges.csv row 7: node 'p17' is not in nodes.csv; add it, or drop such edges with --allow-missing",
    ),
    "empty-end": (NODES, EDGES + ",a,1\n", {}, "edges.csv row 7, column 'from': the id is empty"),
    "duplicate-id": (
        NODES + "b,1,ICML,3,ml,train\n",
        EDGES,
        {},
        "nodes.csv row 8, column 'paper': id 'b' was used in row 3 already",
    ),
    "empty-id": (NODES + ",1,ICML,3,ml,train\n", EDGES, {}, "nodes.csv row 8, column 'paper': the id is empty"),
    "non-numeric": (NODES.replace("1992", "19x2"), EDGES, {}, "nodes.csv row 4, column 'year': '19x2' is not a number"),
    "nan": (NODES.replace("1992", "nan"), EDGES, {}, "nodes.csv row 4, column 'year': 'nan' is not finite"),
    "infinite": (NODES.replace("1992", "-inf"), EDGES, {}, "nodes.csv row 4, column 'year': '-inf' is not finite"),
    "empty-cell": (
        NODES.replace("1992", " "),
        EDGES,
        {},
        "nodes.csv row 4, column 'year': the cell is empty; fill it in",
    ),
    "two-weights": (
        NODES,
        EDGES.replace("b,a,1", "b,a,4"),
        {"weight": "strength"},
        "edges.csv row 3: the edge between 'a' and 'b' has weight 4, but 1 in row 2",
    ),
    "no-labels": (
        NODES.replace(",ml,", ",,").replace(",db,", ",,"),
        EDGES,
        {"split_column": None},
        "column 'topic': no node has a label",
    ),
    "unknown-part": (
        NODES.replace("validation", "dev"),
        EDGES,
        {},
        "nodes.csv row 4, column 'part': 'dev' is not a part of a split",
    ),
    "no-validation": (NODES.replace("validation", "train"), EDGES, {}, "column 'part': no node is 'validation'"),
    "unlabelled-test": (
        NODES.replace("e,1994,,10,,", "e,1994,,10,,test"),
        EDGES,
        {},
        "nodes.csv row 6, column 'part': a test node needs a label",
    ),
    "empty-file": ("", EDGES, {}, "nodes.csv is empty"),
    "blank-file": ("\n\n", EDGES, {}, "nodes.csv is empty"),
    "header-only": (NODES.splitlines()[0], EDGES, {}, "nodes.csv has no rows"),
    "no-edges": (NODES, "from,to\n", {}, "edges.csv has no rows"),
    "semicolons": (NODES.replace(",", ";"), EDGES, {}, "it seems to be separated by ';'; pass --separator ';'"),
    "tabs": (NODES.replace(",", "\t"), EDGES, {}, "it seems to be separated by tab; pass --separator tab"),
    "utf-16": (NODES.encode("utf-16"), EDGES, {}, "nodes.csv is UTF-16 or binary, not UTF-8 text"),
    "utf-16-without-mark": (NODES, EDGES.encode("utf-16-le"), {}, "edges.csv is UTF-16 or binary"),
    "latin-1": (
        NODES.replace("VLDB", "Zürich").encode("latin-1"),
        EDGES,
        {},
        "nodes.csv line 5 is not UTF-8 (byte 0xfc)",
    ),
    "ragged": (NODES + "g,1,ICML,3,ml,train,7\n", EDGES, {}, "nodes.csv row 8 has 7 cells but the header has 6"),
    "one-column": (NODES, "only\na\n", {}, "edges.csv must have two columns of node ids"),
    "no-features": (
        "paper,topic\na,ml\nb,ml\n",
        "s,t\na,b\n",
        {"split_column": None},
        "nodes.csv has no column of features",
    ),
}


for value, problem in {
    "-0.5": "weight -0.5 is out of range",
    "inf": "'inf' is not finite",
    "": "the cell is empty",
}.items():
    place = f"edges.csv row 5, column 'strength': {problem}"
    BAD_FILES[f"weight-{value or 'empty'}"] = (NODES, EDGES.replace("0.5", value), {"weight": "strength"}, place)


def write(folder: Path, nodes: str | bytes = NODES, edges: str | bytes = EDGES) -> tuple[Path, Path]:
    paths = folder / "nodes.csv", folder / "edges.csv"
    for path, content in zip(paths, (nodes, edges), strict=True):
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return paths


def edge_weights(dataset: NodeDataset) -> dict[tuple[int, int], float]:
    weight = dataset.edge_weight if dataset.edge_weight is not None else torch.ones(dataset.edge_index.size(1))
    return dict(zip(zip(*dataset.edge_index.tolist(), strict=True), weight.tolist(), strict=True))  # type: ignore[arg-type]


def test_roles_of_the_columns(tmp_path: Path) -> None:
    dataset, summary = read_graph(GraphFiles(*write(tmp_path), weight="strength", **MEANING))  # type: ignore[arg-type]
    assert dataset.node_ids == ["a", "b", "c", "d", "e", "f"]
    assert dataset.class_names == ("db", "ml")
    assert dataset.y.tolist() == [1, 1, 0, 0, -1, 1]
    assert edge_weights(dataset) == {
        **{(0, 1): 1, (1, 0): 1, (1, 2): 2, (2, 1): 2, (2, 3): 0.5, (3, 2): 0.5},
        (4, 4): 3,
    }
    assert torch.as_tensor(dataset.x)[:, :2].tolist() == [
        [1990 + k, pages] for k, pages in enumerate((8, 9, 7, 12, 10, 11))
    ]
    assert torch.as_tensor(dataset.x)[:, 2:].tolist() == [
        [1, 0, 0],
        [0, 1, 0],
        [1, 0, 0],
        [0, 0, 1],
        [0, 0, 0],
        [0, 1, 0],
    ]
    (split,) = dataset.given_splits
    assert (split.train.tolist(), split.validation.tolist(), split.test.tolist()) == ([0, 1], [2], [3, 5])
    assert summary.columns == {
        "paper": "id",
        "topic": "label",
        "part": "split",
        "year": "number",
        "venue": "category, 3 values",
        "pages": "number",
    }
    assert (summary.nodes, summary.unlabelled, summary.classes) == (6, 1, {"db": 2, "ml": 3})
    assert (summary.edges, summary.repeated, summary.loops, summary.isolated) == (5, 1, 1, 1)
    assert summary.weights == (0.5, 3.0)


def test_directed_edges(tmp_path: Path) -> None:
    dataset = read_nodes_edges(*write(tmp_path), directed=True, weight="strength", **MEANING)
    assert edge_weights(dataset) == {(0, 1): 1, (1, 0): 1, (1, 2): 2, (2, 3): 0.5, (4, 4): 3}


def test_parquet_equals_csv(tmp_path: Path) -> None:
    paths = write(tmp_path)
    for path in paths:
        pl.read_csv(path).write_parquet(path.with_suffix(".parquet"))
    csv = read_nodes_edges(*paths, weight="strength", **MEANING)
    parquet = read_nodes_edges(*(path.with_suffix(".parquet") for path in paths), weight="strength", **MEANING)
    assert torch.as_tensor(csv.x).equal(torch.as_tensor(parquet.x))
    assert edge_weights(csv) == edge_weights(parquet)
    assert csv.y.equal(parquet.y)
    assert csv.node_ids == parquet.node_ids


def test_nodes_as_npz(tmp_path: Path) -> None:
    _, edges = write(tmp_path, edges="s,t\n0,1\n2,1\n")
    matrix = np.arange(12.0).reshape(4, 3)
    np.savez(tmp_path / "nodes.npz", x=matrix, topic=np.array(["u", "v", "", "u"]), size=np.array([5, 6, 7, 8]))
    dataset = read_nodes_edges(tmp_path / "nodes.npz", edges, label="topic")
    assert torch.as_tensor(dataset.x).tolist() == np.column_stack([[5, 6, 7, 8], matrix]).tolist()
    assert dataset.y.tolist() == [0, 1, -1, 0]
    assert edge_weights(dataset) == {(0, 1): 1, (1, 0): 1, (1, 2): 1, (2, 1): 1}


def test_a_bag_of_words_stays_sparse(tmp_path: Path) -> None:
    words = scipy.sparse.random(6, 40, density=0.1, format="csr", random_state=0, dtype=np.float32)
    scipy.sparse.save_npz(tmp_path / "words.npz", words)
    dataset = read_nodes_edges(*write(tmp_path), features=tmp_path / "words.npz", **MEANING)
    assert isinstance(dataset.x, SparseFeatures)
    assert dataset.x.to_dense()[:, 5:].numpy() == pytest.approx(words.toarray())
    paths = write(tmp_path, "\n".join(NODES.splitlines()[:6]), "a,b\na,b\n")
    with pytest.raises(DataError, match=r"the feature matrix has 6 rows but nodes\.csv has 5 nodes"):
        read_nodes_edges(*paths, features=tmp_path / "words.npz", **MEANING)


def test_whole_numbers_written_with_decimals_are_the_same_class(tmp_path: Path) -> None:
    frame = pl.DataFrame({"id": [1, 2, 3], "label": [10.0, None, 2.0], "size": [0.1, 0.2, 0.3]})
    frame.write_parquet(tmp_path / "nodes.parquet")
    _, edges = write(tmp_path, edges="a,b\n1,2\n")
    dataset = read_nodes_edges(tmp_path / "nodes.parquet", edges, label="label")
    assert dataset.class_names == ("2", "10")
    assert dataset.y.tolist() == [1, -1, 0]


def test_other_separators_quotes_and_byte_order_marks(tmp_path: Path) -> None:
    paths = write(tmp_path, "﻿" + NODES.replace(",", "\t"), EDGES.replace(",", "\t"))
    assert read_nodes_edges(*paths, separator="\t", **MEANING).num_nodes == 6
    quoted = NODES.replace("ICML", '"ICML, 3rd\nvolume"')
    assert read_nodes_edges(*write(tmp_path, quoted), **MEANING).num_nodes == 6


@pytest.mark.parametrize(("nodes", "edges", "meaning", "sentence"), BAD_FILES.values(), ids=BAD_FILES)
def test_files_that_cannot_be_used(
    nodes: str | bytes, edges: str | bytes, meaning: dict[str, object], sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError) as raised:
        read_nodes_edges(*write(tmp_path, nodes, edges), **(MEANING | meaning))
    assert sentence in str(raised.value)
    assert "\n" not in str(raised.value)


def test_missing_files(tmp_path: Path) -> None:
    nodes, edges = write(tmp_path)
    with pytest.raises(DataError, match=r"absent\.csv does not exist"):
        read_nodes_edges(tmp_path / "absent.csv", edges, **MEANING)
    with pytest.raises(DataError, match="cannot be read: Is a directory"):
        read_nodes_edges(nodes, tmp_path, **MEANING)


def test_edges_of_missing_nodes_can_be_dropped(tmp_path: Path) -> None:
    dataset, summary = read_graph(
        GraphFiles(*write(tmp_path, edges=EDGES + "p17,a,1\n"), allow_missing=True, **MEANING)  # type: ignore[arg-type]
    )
    assert summary.dropped == 1
    assert dataset.edge_index.size(1) == 7


def test_free_text_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    rows = "\n".join(f"{k},a title of its own number {k},{k % 2}" for k in range(30))
    paths = write(tmp_path, f"id,title,label\n{rows}\n", "a,b\n0,1\n")
    with pytest.raises(DataError, match=r"'title' is text with 30 different values.*--ignore 'title'.*--features"):
        read_nodes_edges(*paths, label="label")
    assert read_nodes_edges(*paths, label="label", categorical=["title"]).num_features == 30
    with pytest.raises(DataError, match="no column of features"):
        read_nodes_edges(*paths, label="label", ignore=["title"])


def test_a_measurement_is_not_a_label(tmp_path: Path) -> None:
    rows = "\n".join(f"{k},{k},{k / 7}" for k in range(60))
    with pytest.raises(DataError, match="has 60 different labels for 60 nodes"):
        read_nodes_edges(*write(tmp_path, f"id,x,label\n{rows}\n", "a,b\n0,1\n"), label="label")


def test_npz_files_that_cannot_be_used(tmp_path: Path) -> None:
    path = tmp_path / "words.npz"
    np.savez(path, x=np.ones((6, 3)))
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"words\.npz cannot be read as npz"):
        read_matrix(path)
    np.savez(path, x=np.array([[{"a": 1}]], dtype=object), allow_pickle=True)
    with pytest.raises(DataError, match="holds pickled objects, which can run code"):
        read_matrix(path)
    np.save(path.with_suffix(".npy"), np.ones(3))
    path.write_bytes(path.with_suffix(".npy").read_bytes())
    with pytest.raises(DataError, match="holds a single array, not an npz archive"):
        read_matrix(path)
    np.savez(path, a=np.ones((2, 2)), b=np.ones((2, 2)))
    with pytest.raises(DataError, match="must hold one matrix"):
        read_matrix(path)
    np.savez(path, a=np.array([[1.0, np.nan]]))
    with pytest.raises(DataError, match="row 0, column 1 of its matrix is nan"):
        read_matrix(path)
    np.savez(path, a=np.array([["x"]]))
    with pytest.raises(DataError, match="not numbers"):
        read_matrix(path)
    broken = {"format": b"csr", "shape": [2, 2], "data": [1.0], "indices": [7], "indptr": [0, 1, 1]}
    np.savez(path, **{name: np.array(value) for name, value in broken.items()})
    with pytest.raises(DataError, match="cannot be read as a matrix"):
        read_matrix(path)


def test_the_encoder_is_fitted_to_training_nodes_only(tmp_path: Path) -> None:
    columns = read_nodes_edges(*write(tmp_path), **MEANING).columns
    assert columns is not None
    encoder = ColumnEncoder.fit(columns, torch.tensor([0, 1, 5]), standardise=True)
    years = np.array([1990.0, 1991.0, 1995.0])
    assert encoder.means["year"] == pytest.approx(years.mean())
    assert encoder.scales["year"] == pytest.approx(years.std())
    assert encoder.categories == {"venue": ("ICML", "NIPS")}
    x = torch.as_tensor(encoder.apply(columns))
    assert x[[0, 1, 5], 0].numpy() == pytest.approx((years - years.mean()) / years.std())
    assert x[3, 2:].tolist() == [0, 0], "VLDB does not occur in training nodes"
    assert encoder.unseen(columns) == [
        "column 'venue': 1 node has a value that no training node has ('VLDB'); it is encoded as no category"
    ]
    again = ColumnEncoder.model_validate_json(encoder.model_dump_json())
    assert torch.as_tensor(again.apply(columns)).equal(x)
    assert json.loads(encoder.model_dump_json())["categories"] == {"venue": ["ICML", "NIPS"]}


def test_a_constant_column_stays_finite(tmp_path: Path) -> None:
    columns = read_nodes_edges(*write(tmp_path), **MEANING).columns
    assert columns is not None
    x = torch.as_tensor(ColumnEncoder.fit(columns, torch.tensor([2]), standardise=True).apply(columns))
    assert x[:, 0].tolist() == [-2, -1, 0, 1, 2, 3]


def test_columns_of_new_nodes_are_read_as_the_model_needs_them(tmp_path: Path) -> None:
    columns = read_nodes_edges(*write(tmp_path), **MEANING).columns
    assert columns is not None
    encoder = ColumnEncoder.fit(columns, torch.arange(6), standardise=False)
    swapped = "venue,pages,paper,year,note\nNIPS,3,x,2000,anything\nnew,4,y,2001,goes\n"
    files = GraphFiles(*write(tmp_path, swapped, "a,b\nx,y\n"), label="topic", id="paper")
    dataset, summary = read_graph(files, encoder)
    assert torch.as_tensor(encoder.apply(dataset.columns or columns)).tolist() == [
        [2000, 3, 0, 1, 0],
        [2001, 4, 0, 0, 0],
    ]
    assert summary.columns["note"] == "left out"
    write(tmp_path, swapped.replace("year", "years"), "a,b\nx,y\n")
    with pytest.raises(DataError, match=r"no column 'year' \(the model was trained with it\); did you mean 'years'"):
        read_graph(files, encoder)
