"""The public data sets, read from raw files without a network, compared with torch_geometric's classes."""

import gzip
import hashlib
import io
import json
import os
import pickle
import shutil
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.datasets import WebKB
from torch_geometric.io import read_npz, read_planetoid_data
from torch_geometric.utils import is_undirected, to_undirected

from kuramotognn import SparseFeatures, load_dataset
from kuramotognn.config.resolve import resolve
from kuramotognn.data import DATASETS, DataError, NodeDataset, Split
from kuramotognn.data.facts import describe_datasets
from kuramotognn.data.raw_files import RawFile
from kuramotognn.data.readers import _unpickle, read_heterophilous, read_ogb_arxiv

NINE = ["cora", "citeseer", "pubmed", "computers", "photo", "coauthor-cs", "texas", "wisconsin", "cornell"]


def dense(dataset: NodeDataset) -> torch.Tensor:
    return dataset.x.to_dense() if isinstance(dataset.x, SparseFeatures) else dataset.x


def edge_set(edge_index: torch.Tensor) -> set[tuple[int, int]]:
    return set(zip(*edge_index.tolist(), strict=True))


def digest(split: Split) -> str:
    parts = torch.cat([split.train, split.validation, split.test]).numpy().astype("<i8")
    return hashlib.sha256(parts.tobytes()).hexdigest()[:16]


def split_digests(dataset: NodeDataset, name: str, protocol: str, numbers: tuple[int, ...]) -> list[str]:
    config = resolve({"dataset": name, "data.protocol": protocol}).config.data
    if config.largest_component:
        dataset = dataset.largest_component()
    return [digest(config.split(dataset, number)) for number in numbers]


def test_the_nine_have_the_papers_statistics(raw_root: Path) -> None:
    rows = {row["name"]: row for row in describe_datasets(raw_root)}
    assert [name for name, row in rows.items() if row["present"]] == NINE
    for name in NINE[:6]:
        ours, paper = rows[name]["ours"], rows[name]["paper"]
        for size in ("nodes", "edges", "features", "classes"):
            assert ours[size] == paper[size], (name, size)
    for name, sizes in {"texas": (183, 1703, 5), "wisconsin": (251, 1703, 5), "cornell": (183, 1703, 5)}.items():
        ours = rows[name]["ours"]
        assert (ours["nodes"], ours["features"], ours["classes"]) == sizes
    cached = json.loads((raw_root / "facts.json").read_text())
    cached["citeseer"]["facts"]["nodes"] = 7
    (raw_root / "facts.json").write_text(json.dumps(cached))
    assert describe_datasets(raw_root)[1]["ours"]["nodes"] == 7, "cached statistics are not computed again"
    (raw_root / "facts.json").unlink()


@pytest.mark.parametrize("folder", ["Cora", "CiteSeer", "PubMed"])
def test_planetoid_equals_torch_geometric(folder: str, raw_root: Path) -> None:
    ours = load_dataset(folder, protocol="planetoid-public", root=raw_root, download=False)
    theirs = read_planetoid_data(str(raw_root / folder / "raw"), folder)
    labelled = ours.y >= 0
    assert int((~labelled).sum()) == (15 if folder == "CiteSeer" else 0), "nodes that occur only in the graph"
    assert dense(ours).equal(theirs.x)
    assert ours.y[labelled].equal(theirs.y[labelled])
    assert edge_set(ours.edge_index) == edge_set(theirs.edge_index)
    (split,) = ours.given_splits
    for nodes, mask in ((split.train, "train_mask"), (split.validation, "val_mask"), (split.test, "test_mask")):
        assert nodes.equal(theirs[mask].nonzero().flatten())


def test_amazon_equals_torch_geometric(raw_root: Path) -> None:
    ours = load_dataset("photo", root=raw_root, download=False)
    theirs = read_npz(str(raw_root / DATASETS["photo"].raw[0].path))
    assert dense(ours).equal(theirs.x)
    assert ours.y.equal(theirs.y)
    assert edge_set(ours.edge_index) == edge_set(theirs.edge_index)
    assert isinstance(ours.x, SparseFeatures)


def test_webkb_equals_torch_geometric(shared_datasets: Path, tmp_path: Path) -> None:
    shutil.copytree(shared_datasets / "texas", tmp_path / "texas", copy_function=shutil.copyfile)
    for folder in (tmp_path / "texas", tmp_path / "texas" / "raw"):
        folder.chmod(0o755)
    ours, theirs = load_dataset("Texas", root=tmp_path, download=False, directed=True), WebKB(str(tmp_path), "Texas")[0]
    assert dense(ours).equal(theirs.x)
    assert ours.y.equal(theirs.y)
    assert edge_set(ours.edge_index) == edge_set(theirs.edge_index)
    for split in ours.given_splits:
        assert split.train.equal(theirs.train_mask[:, split.number].nonzero().flatten())
        assert split.validation.equal(theirs.val_mask[:, split.number].nonzero().flatten())
        assert split.test.equal(theirs.test_mask[:, split.number].nonzero().flatten())
    both_ways = load_dataset("texas", root=tmp_path, download=False)
    assert edge_set(both_ways.edge_index) == edge_set(to_undirected(theirs.edge_index))


@pytest.mark.parametrize(
    ("name", "protocol", "numbers", "golden"),
    [
        ("citeseer", "random-per-class", (0, 1000), ["67a04bfa3860595d", "b99b10940630e24b"]),
        ("coauthor-cs", "random-per-class", (0, 1000), ["80d4de531004fb68", "d4c5d929f887fbd0"]),
        ("pubmed", "planetoid-public", (0,), ["e6a4faca8fc7a7ff"]),
        ("wisconsin", "geom-gcn", (0, 9), ["751e6e8c5b8a4237", "638c68a1f1e8545b"]),
        ("photo", "fraction", (0, 7), ["3cd0b0e6289c1946", "200320bf566c8cd9"]),
        ("photo", "k-fold", (0, 7), ["850bf799e356d801", "869ca61ee8a78dde"]),
    ],
)
def test_splits_are_the_same_on_every_platform(
    name: str, protocol: str, numbers: tuple[int, ...], golden: list[str], raw_root: Path
) -> None:
    dataset = load_dataset(name, protocol=protocol, root=raw_root, download=False)
    assert split_digests(dataset, name, protocol, numbers) == golden


def test_given_splits_are_limited(raw_root: Path) -> None:
    texas = load_dataset("texas", root=raw_root, download=False)
    config = resolve({"dataset": "texas"}).config.data
    sizes = [len(part) for part in (config.split(texas, 3).train, config.split(texas, 3).validation)]
    assert sizes == [87, 59]
    with pytest.raises(ValueError, match="split 10 does not exist: geom-gcn has 10 splits, numbered 0 to 9"):
        config.split(texas, 10)
    part = texas.subset(torch.arange(100))
    assert int(part.given_splits[0].test.max()) < 100


def test_a_tampered_pickle_is_never_unpickled(shared_datasets: Path, tmp_path: Path) -> None:
    folder = tmp_path / "CiteSeer" / "raw"
    folder.mkdir(parents=True)
    for file in (shared_datasets / "CiteSeer" / "raw").iterdir():
        shutil.copyfile(file, folder / file.name)
    witness = tmp_path / "witness"

    class Harmful:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return os.mkdir, (str(witness),)

    (folder / "ind.citeseer.allx").write_bytes(pickle.dumps(Harmful()))
    with pytest.raises(DataError, match=r"allx is not the published file.* renamed to ind\.citeseer\.allx\.rejected"):
        load_dataset("citeseer", root=tmp_path, download=False)
    assert not witness.exists()
    assert (folder / "ind.citeseer.allx.rejected").exists()
    with pytest.raises(DataError, match="which the published files do not"):
        _unpickle(pickle.dumps(Harmful()))
    assert not witness.exists()


def test_amazon_is_recognised_by_its_content(shared_datasets: Path, tmp_path: Path) -> None:
    """The same graph with other bytes, order and types is accepted; a changed edge is not."""
    info = DATASETS["photo"]
    place = tmp_path / info.raw[0].path
    place.parent.mkdir(parents=True)
    with np.load(shared_datasets / info.raw[0].path) as original:
        arrays = {name: original[name] for name in original}
    arrays["adj_indices"] = arrays["adj_indices"].astype(np.int64)
    arrays["attr_data"] = 2 * arrays["attr_data"].astype(np.float64)
    np.savez(place, **arrays)
    assert load_dataset("photo", root=tmp_path, download=False).num_nodes == 7650
    arrays["adj_indices"][0] += 1
    np.savez(place, **arrays)
    with pytest.raises(DataError, match="is not the published file"):
        load_dataset("photo", root=tmp_path, download=False)


def generated_features(rows: int, columns: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((rows, columns)).astype(np.float32)


def test_layout_of_heterophilous_graphs(shared_datasets: Path, tmp_path: Path) -> None:
    """The graph is real, features and masks are generated: this tests the reader and the checksum."""
    graph = shared_datasets / "roman_empire_graph"
    edges = np.loadtxt(graph / "edges.csv", delimiter=",", skiprows=1, dtype=np.int64)
    labels = np.loadtxt(graph / "labels.csv", skiprows=1, dtype=np.int64)
    parts = np.random.default_rng(1).integers(0, 3, (10, labels.size))
    buffer = io.BytesIO()
    np.savez(
        buffer,
        node_features=generated_features(labels.size, 300),
        node_labels=labels,
        edges=edges,
        **{f"{part}_masks": parts == number for number, part in enumerate(("train", "val", "test"))},
    )
    dataset = read_heterophilous("roman-empire", {"roman_empire.npz": buffer.getvalue()})
    assert (dataset.num_nodes, dataset.num_features, dataset.num_classes) == (22662, 300, 18)
    assert dataset.undirected().num_pairs() == 32927
    assert is_undirected(dataset.undirected().edge_index)
    assert dataset.given_splits[4].validation.tolist() == np.flatnonzero(parts[4] == 1).tolist()
    place = tmp_path / "roman_empire" / "raw" / "roman_empire.npz"
    place.parent.mkdir(parents=True)
    place.write_bytes(buffer.getvalue())
    with pytest.raises(DataError, match="is not the published file"):
        load_dataset("roman_empire", root=tmp_path, download=False)


def small_arxiv(nodes: int = 6) -> dict[str, bytes]:
    def table(rows: object) -> bytes:
        return gzip.compress("\n".join(",".join(map(str, row)) for row in rows).encode() + b"\n")  # type: ignore[attr-defined]

    return {
        "raw/node-feat.csv.gz": table(generated_features(nodes, 4).tolist()),
        "raw/edge.csv.gz": table([(0, 1), (1, 2), (2, 1)]),
        "raw/node-label.csv.gz": table([(node % 2,) for node in range(nodes)]),
        "raw/num-node-list.csv.gz": table([(nodes,)]),
        "raw/num-edge-list.csv.gz": table([(3,)]),
        "split/time/train.csv.gz": table([(0,), (3,)]),
        "split/time/valid.csv.gz": table([(1,), (4,)]),
        "split/time/test.csv.gz": table([(2,), (5,)]),
    }


def test_ogb_layout_from_its_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in small_arxiv().items():
            archive.writestr(f"arxiv/{name}", content)
    home = tmp_path / "ogbn_arxiv"
    home.mkdir()
    with pytest.raises(DataError, match=r"get https://snap.*arxiv\.zip and put it in .*ogbn_arxiv/arxiv\.zip"):
        load_dataset("ogbn-arxiv", root=tmp_path, download=False)
    (home / "arxiv.zip").write_bytes(buffer.getvalue())
    with pytest.raises(DataError, match="is not the published file"):
        load_dataset("ogbn-arxiv", root=tmp_path, download=False)
    monkeypatch.setattr(RawFile, "is_genuine", lambda *_: None)
    (home / "arxiv.zip").write_bytes(buffer.getvalue()[:-9])
    with pytest.raises(DataError, match="is not the published archive"):
        load_dataset("ogbn-arxiv", root=tmp_path, download=False)
    (home / "arxiv.zip").write_bytes(buffer.getvalue())
    dataset = load_dataset("OGBN_Arxiv", root=tmp_path, download=False)
    assert edge_set(dataset.edge_index) == {(0, 1), (1, 0), (1, 2), (2, 1)}
    assert dense(dataset).numpy() == pytest.approx(generated_features(6, 4))
    assert dataset.given_splits[0].validation.tolist() == [1, 4]
    one_way = load_dataset("ogbn-arxiv", root=tmp_path, download=False, directed=True)
    assert edge_set(one_way.edge_index) == {(0, 1), (1, 2), (2, 1)}


def test_ogb_tables_must_agree() -> None:
    contents = {Path(name).name: content for name, content in small_arxiv().items()}
    with pytest.raises(DataError, match="announce 7 nodes and 3 edges"):
        read_ogb_arxiv("ogbn-arxiv", contents | {"num-node-list.csv.gz": gzip.compress(b"7\n")})
    with pytest.raises(DataError, match=r"edge\.csv\.gz cannot be read as a gzipped table of numbers"):
        read_ogb_arxiv("ogbn-arxiv", contents | {"edge.csv.gz": gzip.compress(b"1,x\n")})
    with pytest.raises(DataError, match=r"edge\.csv\.gz cannot be read as gzip"):
        read_ogb_arxiv("ogbn-arxiv", contents | {"edge.csv.gz": b"1,2\n"})


def test_the_real_arxiv_graph_with_generated_features(shared_datasets: Path) -> None:
    home = shared_datasets / "ogbn_arxiv"
    contents = {file.name: file.read_bytes() for file in home.rglob("*.gz")}
    contents["node-feat.csv.gz"] = gzip.compress(b"0.5,1\n" * 169343, compresslevel=1)
    dataset = read_ogb_arxiv("ogbn-arxiv", contents)
    assert (dataset.num_nodes, dataset.num_classes, dataset.edge_index.size(1)) == (169343, 40, 1166243)
    assert dataset.num_pairs() == 1157799
    (split,) = dataset.given_splits
    assert [part.numel() for part in (split.train, split.validation, split.test)] == [90941, 29799, 48603]
    assert digest(split) == "df02a4bbdb3fdbb9"


def test_unknown_protocols_of_a_data_set() -> None:
    with pytest.raises(DataError, match="photo has no protocol 'geom-gcn'; it has random-per-class, fraction, k-fold"):
        load_dataset("photo", protocol="geom-gcn")
    with pytest.raises(ValueError, match="texas has no protocol 'ogb-time'; it has geom-gcn"):
        resolve({"dataset": "texas", "data.protocol": "ogb-time"})


@pytest.mark.parametrize("name", ["CoauthorCS", "coauthor_cs", "Coauthor CS", "COAUTHOR-CS"])
def test_case_and_dashes_of_a_name_do_not_matter(name: str) -> None:
    from kuramotognn.data import dataset_name

    assert dataset_name(name) == "coauthor-cs"


def test_every_file_has_a_source_and_can_be_verified() -> None:
    assert list(DATASETS) == [*NINE, "roman-empire", "amazon-ratings", "ogbn-arxiv"]
    for info in DATASETS.values():
        for file in info.raw:
            assert file.url.startswith("http")
            known = file.sha256 or file.git_blob or info.archive
            assert known, f"{file.path} could not be verified"
    assert replace(DATASETS["cora"]).protocols[0] == "random-per-class"
