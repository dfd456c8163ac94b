"""Public data sets by name: where they come from, under which protocols, and what the paper says of them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib.resources import files
from io import BytesIO
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
import torch

from kuramotognn.checks import did_you_mean
from kuramotognn.data import readers
from kuramotognn.data.errors import DataError
from kuramotognn.data.files import RawFile, data_root, download, offline, read_raw
from kuramotognn.data.node_dataset import NodeDataset
from kuramotognn.features import Normalisation, SparseFeatures
from kuramotognn.files import write_atomically

Protocol: TypeAlias = Literal[
    "random-per-class", "planetoid-public", "geom-gcn", "heterophilous", "ogb-time", "fraction", "k-fold", "own-split"
]
OWN_GRAPH = "own-graph"
"""What a graph from the user's files is called where a data set is named."""

DRAWN: tuple[Protocol, ...] = ("random-per-class", "fraction", "k-fold")
"""Protocols that need labels alone, so that every data set has them."""

GITHUB = "https://github.com"
RAW_GITHUB = "https://raw.githubusercontent.com"


@dataclass(frozen=True)
class Statistics:
    """What a paper says of a data set."""

    nodes: int
    edges: int
    features: int
    classes: int | None = None
    directed: bool = False


@dataclass(frozen=True)
class DatasetInfo:
    """An entry of the registry.

    Attributes:
        name: how it is called.
        description: what its nodes and edges are.
        read: makes the data set of the contents of its files.
        raw: the files it is made of.
        given: the protocol whose splits come with the data, if there is one.
        default: the protocol that is used unless another is asked for.
        development: nodes that ``random-per-class`` draws for training and validation together.
        normalisation: scaling of features that suits it.
        paper: statistics in the KuramotoGNN paper, where it has them.
        meaning: SHA-256 of what the files mean, for data sets that are around in other bytes than the published ones.
        archive: a zip file that holds all files, and the folder in it.
    """

    name: str
    description: str
    read: readers.Reader
    raw: tuple[RawFile, ...]
    given: Protocol | None = None
    default: Protocol = "random-per-class"
    development: int = 1500
    normalisation: Normalisation = "row-sum"
    paper: Statistics | None = None
    meaning: str | None = None
    archive: tuple[RawFile, str] | None = None

    @property
    def protocols(self) -> tuple[Protocol, ...]:
        """The protocols under which it can be used, the default first."""
        allowed = DRAWN if self.given is None else (self.given, *DRAWN)
        return (self.default, *(protocol for protocol in allowed if protocol != self.default))

    @property
    def embedded(self) -> bool:
        """Whether the package carries it, for all protocols but the given one."""
        return self.name == "cora"

    def is_present(self, root: Path) -> bool:
        """Whether all its files are in the data root."""
        return all((root / file.path).is_file() for file in self.raw)


def load_dataset(
    name: str,
    *,
    protocol: str | None = None,
    root: Path | str | None = None,
    download: bool | None = None,
    directed: bool = False,
) -> NodeDataset:
    """Load a public data set; files that are not there are downloaded, and all are verified.

    Args:
        name: forgiving in case, dashes and underscores.
        protocol: which splits will be used. Cora is embedded for protocols that draw splits; its public split belongs
            to Planetoid's files, which have the same papers in another order.
        root: folder of raw files in torch_geometric's layout (default: ``KURAMOTOGNN_DATA`` or the platform's cache).
        download: whether files may be downloaded (default: unless ``KURAMOTOGNN_OFFLINE`` is set).
        directed: keep edges one-way where the source has directions.
    """
    if (known := dataset_name(name)) == OWN_GRAPH:
        raise DataError(f"{OWN_GRAPH!r} is a graph of your own; use read_nodes_edges, or --nodes and --edges")
    info = DATASETS[known]
    if protocol is not None and protocol not in info.protocols:
        raise DataError(f"{info.name} has no protocol {protocol!r}; it has {', '.join(info.protocols)}")
    if info.embedded and protocol != info.given:
        return load_cora()
    folder = data_root() if root is None else Path(root)
    dataset = _load(info, folder, offline() if download is None else not download)
    return dataset if directed else dataset.undirected()


def dataset_name(name: str) -> str:
    """The registry's spelling of a data set's name."""
    plain = name.strip().lower().replace("_", "-").replace(" ", "-")
    if plain == OWN_GRAPH:
        return OWN_GRAPH
    spelt = {known.replace("-", ""): known for known in DATASETS}
    if plain.replace("-", "") not in spelt:
        raise ValueError(
            f"unknown dataset {name!r}{did_you_mean(plain, DATASETS)}; known: {', '.join(sorted(DATASETS))}"
        )
    return spelt[plain.replace("-", "")]


def load_cora() -> NodeDataset:
    """The embedded Cora citation network: works offline, always."""
    content = files("kuramotognn.data").joinpath("cora.npz").read_bytes()
    with np.load(BytesIO(content), allow_pickle=False) as arrays:
        words = torch.from_numpy(arrays["words"].astype(np.int64))
        papers = torch.from_numpy(np.repeat(np.arange(arrays["labels"].size), arrays["word_counts"]))
        pairs = torch.from_numpy(arrays["citations"].astype(np.int64)).t()
        shape = (arrays["labels"].size, int(arrays["num_words"]))
        return NodeDataset(
            name="cora",
            x=SparseFeatures.from_coo(papers, words, torch.ones(words.numel()), shape),
            edge_index=torch.cat([pairs, pairs.flip(0)], dim=1),
            y=torch.from_numpy(arrays["labels"].astype(np.int64)),
            class_names=tuple(str(name).replace("_", " ") for name in arrays["class_names"]),
            node_ids=tuple(str(paper) for paper in arrays["paper_ids"]),
        )


def meaning(dataset: NodeDataset) -> str:
    """SHA-256 of binary features, undirected edges and classes, whatever order and types a file keeps them in."""
    assert isinstance(dataset.x, SparseFeatures)
    pattern, edges = dataset.x.pattern, dataset.undirected().edge_index
    digest = hashlib.sha256(repr(dataset.x.shape).encode())
    for part in (pattern.row, pattern.col, edges, dataset.y):
        digest.update(part.contiguous().numpy().astype("<i8").tobytes())
    return digest.hexdigest()


def _load(info: DatasetInfo, root: Path, is_offline: bool) -> NodeDataset:
    if info.archive is not None and not info.is_present(root):
        _unpack(info, root, is_offline)
    accept = partial(_means_the_same, info) if info.meaning else None
    contents = {Path(file.path).name: read_raw(file, root, offline=is_offline, accept=accept) for file in info.raw}
    return replace(info.read(info.name, contents), name=info.name)


def _means_the_same(info: DatasetInfo, content: bytes) -> bool:
    try:
        return meaning(info.read(info.name, {info.raw[0].path: content})) == info.meaning
    except (DataError, KeyError):
        return False


def _unpack(info: DatasetInfo, root: Path, is_offline: bool) -> None:
    assert info.archive is not None
    archive, folder = info.archive
    place = root / archive.path
    if not place.exists():
        if is_offline:
            missing = next(root / file.path for file in info.raw if not (root / file.path).is_file())
            raise DataError(
                f"{missing} is not there and downloads are switched off; get {archive.url} and put it in {place}"
            )
        download(archive, root)
    home = Path(archive.path).parent
    members = {str(Path(folder) / Path(file.path).relative_to(home)): file.path for file in info.raw}
    for path, content in readers.unzip(place.read_bytes(), members, str(place)).items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        write_atomically(root / path, content)
    place.unlink()


@cache
def _checksums() -> dict[str, str]:
    lines = files("kuramotognn.data").joinpath("checksums.txt").read_text(encoding="utf-8").splitlines()
    return {path: digest for digest, path in (line.split() for line in lines)}


def _verified(folder: str, url: Callable[[str], str], names: list[str]) -> tuple[RawFile, ...]:
    paths = {name: f"{folder}/raw/{name}" for name in names}
    return tuple(RawFile(path, url(name), sha256=_checksums()[path]) for name, path in paths.items())


def _planetoid(folder: str, description: str, paper: Statistics) -> DatasetInfo:
    name = folder.lower()
    return DatasetInfo(
        name,
        description,
        readers.read_planetoid,
        _verified(
            folder,
            lambda file: f"{GITHUB}/kimiyoung/planetoid/raw/master/data/{file}",
            [f"ind.{name}.{part}" for part in readers.PLANETOID_PARTS],
        ),
        given="planetoid-public",
        paper=paper,
    )


def _shchur(
    name: str, description: str, path: str, git_blob: str, meaning: str, paper: Statistics, development: int = 1500
) -> DatasetInfo:
    url = f"{GITHUB}/shchur/gnn-benchmark/raw/master/data/npz/{Path(path).name}"
    return DatasetInfo(
        name,
        description,
        readers.read_shchur,
        (RawFile(path, url, git_blob=git_blob),),
        development=development,
        normalisation="row-l2",
        paper=paper,
        meaning=meaning,
    )


def _webkb(name: str) -> DatasetInfo:
    def url(file: str) -> str:
        kind = f"new_data/{name}" if file.startswith("out1") else "splits"
        return f"{RAW_GITHUB}/graphdml-uiuc-jlu/geom-gcn/master/{kind}/{file}"

    names = ["out1_node_feature_label.txt", "out1_graph_edges.txt"]
    names += [f"{name}_split_0.6_0.2_{number}.npz" for number in range(readers.NUM_GIVEN_SPLITS)]
    return DatasetInfo(
        name,
        "links between web pages of a department",
        readers.read_webkb,
        _verified(name, url, names),
        given="geom-gcn",
        default="geom-gcn",
    )


def _heterophilous(name: str, description: str, git_blob: str) -> DatasetInfo:
    stem = name.replace("-", "_")
    url = f"{GITHUB}/yandex-research/heterophilous-graphs/raw/main/data/{stem}.npz"
    return DatasetInfo(
        name,
        description,
        readers.read_heterophilous,
        (RawFile(f"{stem}/raw/{stem}.npz", url, git_blob=git_blob),),
        given="heterophilous",
        default="heterophilous",
        normalisation="none",
    )


def _ogb_arxiv() -> DatasetInfo:
    tables = ("node-feat", "edge", "node-label", "num-node-list", "num-edge-list")
    paths = [f"raw/{table}.csv.gz" for table in tables] + [f"split/time/{part}.csv.gz" for part in readers.OGB_PARTS]
    url = "http://snap.stanford.edu/ogb/data/nodeproppred/arxiv.zip"
    return DatasetInfo(
        "ogbn-arxiv",
        "citations between papers of arXiv",
        readers.read_ogb_arxiv,
        tuple(RawFile(f"ogbn_arxiv/{path}", url) for path in paths),
        given="ogb-time",
        default="ogb-time",
        normalisation="none",
        paper=Statistics(169343, 1166243, 128, directed=True),
        archive=(RawFile("ogbn_arxiv/arxiv.zip", url), "arxiv"),
    )


DATASETS = {
    info.name: info
    for info in (
        _planetoid("Cora", "citations between papers; embedded", Statistics(2485, 5069, 1433, 7)),
        _planetoid("CiteSeer", "citations between papers", Statistics(2120, 3679, 3703, 6)),
        _planetoid("PubMed", "citations between papers on diabetes", Statistics(19717, 44324, 500, 3)),
        _shchur(
            "computers",
            "products bought together",
            "Computers/raw/amazon_electronics_computers.npz",
            "8120e4148a330b3fafe37c4476823302d9d834b9",
            "5d8b02839b9211249d3836dbc586965bdeea58bcd12206e94d4ec6530b80fd12",
            Statistics(13381, 245778, 767, 10),
        ),
        _shchur(
            "photo",
            "products bought together",
            "Photo/raw/amazon_electronics_photo.npz",
            "97323743cb56aca9dd611f5b4b46862c1c9c6bd9",
            "d852a723344794572581c58027c7b3d2c04f4f3ee71aec26d361200e27f3bdcf",
            Statistics(7487, 119043, 745, 8),
        ),
        _shchur(
            "coauthor-cs",
            "authors of common papers",
            "CS/raw/ms_academic_cs.npz",
            "9bdd7da943d86b74297e8d32e99eb64245b52835",
            "2916a13ec726aee43e486b0d7ae4bfc18a70922ea7d1bc13e10053c250bd9b04",
            Statistics(18333, 81894, 6805, 15),
            development=5000,
        ),
        _webkb("texas"),
        _webkb("wisconsin"),
        _webkb("cornell"),
        _heterophilous("roman-empire", "words of an article", "1f9bae5e95b28e529015269e98acb237b65d8d3b"),
        _heterophilous("amazon-ratings", "products bought together", "29647a8b0ff0ef856d73d683a8c3595bd5efbd38"),
        _ogb_arxiv(),
    )
}
