"""The registry of public data sets: sources, protocols and the statistics in the paper."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib.resources import files
from io import BytesIO
from pathlib import Path

import numpy as np
import torch

from kuramotognn.atomic_write import write_atomically
from kuramotognn.checks import did_you_mean
from kuramotognn.data import readers
from kuramotognn.data.data_error import DataError
from kuramotognn.data.node_dataset import NodeDataset
from kuramotognn.data.protocols import DRAWN, Protocol
from kuramotognn.data.raw_files import RawFile, data_root, download, offline, read_raw
from kuramotognn.features import Normalisation, SparseFeatures

OWN_GRAPH = "own-graph"
"""Name of a graph from the user's files, where a data set is named."""

GITHUB = "https://github.com"
RAW_GITHUB = "https://raw.githubusercontent.com"

GIT_BLOBS = {
    "Computers/raw/amazon_electronics_computers.npz": "8120e4148a330b3fafe37c4476823302d9d834b9",
    "Photo/raw/amazon_electronics_photo.npz": "97323743cb56aca9dd611f5b4b46862c1c9c6bd9",
    "CS/raw/ms_academic_cs.npz": "9bdd7da943d86b74297e8d32e99eb64245b52835",
    "roman_empire/raw/roman_empire.npz": "1f9bae5e95b28e529015269e98acb237b65d8d3b",
    "amazon_ratings/raw/amazon_ratings.npz": "29647a8b0ff0ef856d73d683a8c3595bd5efbd38",
}
"""Git blob ids of files whose SHA-256 is not in checksums.txt."""
ARXIV_SHA256 = "49f85c801589ecdcc52cfaca99693aaea7b8af16a9ac3f41dd85a5f3193fe276"
"""Of the archive; its members are verified by their shapes, which OGB publishes."""
CONTENT_DIGESTS = {
    "computers": "5d8b02839b9211249d3836dbc586965bdeea58bcd12206e94d4ec6530b80fd12",
    "photo": "d852a723344794572581c58027c7b3d2c04f4f3ee71aec26d361200e27f3bdcf",
    "coauthor-cs": "2916a13ec726aee43e486b0d7ae4bfc18a70922ea7d1bc13e10053c250bd9b04",
}
"""Results of :func:`content_digest` for data sets that are also distributed in other files than the published ones."""


@dataclass(frozen=True)
class Statistics:
    """The statistics of a data set in the paper."""

    nodes: int
    edges: int
    features: int
    classes: int | None = None
    directed: bool = False


@dataclass(frozen=True)
class DatasetInfo:
    """A data set of the registry.

    Attributes:
        name: name of the data set.
        description: meaning of its edges.
        read: the reader of its raw files.
        raw: its raw files.
        given: the protocol of the splits that come with the data, if there are any.
        default: the default protocol.
        development: number of training and validation nodes of ``random-per-class``.
        normalisation: default scaling of the features.
        paper: statistics in the KuramotoGNN paper, if it has them.
        archive: zip file that contains all raw files, and the folder inside it.
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
    archive: tuple[RawFile, str] | None = None

    @property
    def protocols(self) -> tuple[Protocol, ...]:
        """The protocols of the data set, the default first."""
        allowed = DRAWN if self.given is None else (self.given, *DRAWN)
        return (self.default, *(protocol for protocol in allowed if protocol != self.default))

    @property
    def embedded(self) -> bool:
        """Whether the package contains it, for all protocols but the given one."""
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
    """Load a public data set. Missing files are downloaded, and all files are verified.

    Args:
        name: name of the data set; case, dashes and underscores do not matter.
        protocol: the protocol whose splits will be used. Cora is embedded for protocols that draw splits. Its public
            split needs Planetoid's files, which have the same papers in another order.
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
    dataset = _read(info, folder, offline() if download is None else not download)
    return dataset if directed else dataset.undirected()


def dataset_name(name: str) -> str:
    """A data set's name as spelled in the registry."""
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
    """The embedded Cora citation network."""
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


def content_digest(dataset: NodeDataset) -> str:
    """SHA-256 of binary features, undirected edges and classes; independent of their order and types in a file."""
    assert isinstance(dataset.x, SparseFeatures)
    pattern, edges = dataset.x.pattern, dataset.undirected().edge_index
    digest = hashlib.sha256(repr(dataset.x.shape).encode())
    for part in (pattern.row, pattern.col, edges, dataset.y):
        digest.update(part.contiguous().numpy().astype("<i8").tobytes())
    return digest.hexdigest()


def _read(info: DatasetInfo, root: Path, is_offline: bool) -> NodeDataset:
    if info.archive is not None and not info.is_present(root):
        _unpack(info, root, is_offline)
    accept = partial(_has_same_content, info) if info.name in CONTENT_DIGESTS else None
    contents = {Path(file.path).name: read_raw(file, root, offline=is_offline, accept=accept) for file in info.raw}
    return info.read(info.name, contents)


def _has_same_content(info: DatasetInfo, content: bytes) -> bool:
    try:
        return content_digest(info.read(info.name, {info.raw[0].path: content})) == CONTENT_DIGESTS[info.name]
    except (DataError, KeyError):
        return False


def _unpack(info: DatasetInfo, root: Path, is_offline: bool) -> None:
    assert info.archive is not None
    archive, folder = info.archive
    path = root / archive.path
    if not path.exists():
        if is_offline:
            missing = next(root / file.path for file in info.raw if not (root / file.path).is_file())
            raise DataError(
                f"{missing} is not there and downloads are switched off; get {archive.url} and put it in {path}"
            )
        download(archive, root)
    parent = Path(archive.path).parent
    members = {str(Path(folder) / Path(file.path).relative_to(parent)): file.path for file in info.raw}
    for member, content in readers.unzip(read_raw(archive, root, offline=True), members, str(path)).items():
        (root / member).parent.mkdir(parents=True, exist_ok=True)
        write_atomically(root / member, content)
    path.unlink()


@cache
def _checksums() -> dict[str, str]:
    lines = files("kuramotognn.data").joinpath("checksums.txt").read_text(encoding="utf-8").splitlines()
    return {path: digest for digest, path in (line.split() for line in lines)}


def _raw_files(folder: str, urls: dict[str, str]) -> tuple[RawFile, ...]:
    """The files ``folder/raw/name`` with their checksums; ``urls`` maps names to addresses."""
    paths = {f"{folder}/raw/{name}": url for name, url in urls.items()}
    return tuple(RawFile(path, url, _checksums().get(path), GIT_BLOBS.get(path)) for path, url in paths.items())


def _planetoid(folder: str, description: str, paper: Statistics) -> DatasetInfo:
    name, base = folder.lower(), f"{GITHUB}/kimiyoung/planetoid/raw/master/data"
    parts = [f"ind.{folder.lower()}.{part}" for part in readers.PLANETOID_PARTS]
    raw = _raw_files(folder, {part: f"{base}/{part}" for part in parts})
    return DatasetInfo(name, description, readers.read_planetoid, raw, given="planetoid-public", paper=paper)


def _shchur(name: str, description: str, folder: str, file: str, paper: Statistics) -> DatasetInfo:
    raw = _raw_files(folder, {file: f"{GITHUB}/shchur/gnn-benchmark/raw/master/data/npz/{file}"})
    return DatasetInfo(name, description, readers.read_shchur, raw, normalisation="row-l2", paper=paper)


def _webkb(name: str) -> DatasetInfo:
    base = f"{RAW_GITHUB}/graphdml-uiuc-jlu/geom-gcn/master"
    graph = ("out1_node_feature_label.txt", "out1_graph_edges.txt")
    splits = [f"{name}_split_0.6_0.2_{number}.npz" for number in range(readers.NUM_GIVEN_SPLITS)]
    urls = {file: f"{base}/new_data/{name}/{file}" for file in graph} | {
        file: f"{base}/splits/{file}" for file in splits
    }
    description = "links between web pages of a department"
    raw = _raw_files(name, urls)
    return DatasetInfo(name, description, readers.read_webkb, raw, given="geom-gcn", default="geom-gcn")


def _heterophilous(name: str, description: str) -> DatasetInfo:
    folder = name.replace("-", "_")
    file = f"{folder}.npz"
    return DatasetInfo(
        name,
        description,
        readers.read_heterophilous,
        _raw_files(folder, {file: f"{GITHUB}/yandex-research/heterophilous-graphs/raw/main/data/{file}"}),
        given="heterophilous",
        default="heterophilous",
        normalisation="none",
    )


def _ogb_arxiv() -> DatasetInfo:
    tables = ("node-feat", "edge", "node-label", "num-node-list", "num-edge-list")
    paths = [f"raw/{table}.csv.gz" for table in tables] + [f"split/time/{part}.csv.gz" for part in readers.OGB_PARTS]
    url = "https://snap.stanford.edu/ogb/data/nodeproppred/arxiv.zip"
    return DatasetInfo(
        "ogbn-arxiv",
        "citations between papers of arXiv",
        readers.read_ogb_arxiv,
        tuple(RawFile(f"ogbn_arxiv/{path}", url) for path in paths),
        given="ogb-time",
        default="ogb-time",
        normalisation="none",
        paper=Statistics(169343, 1166243, 128, directed=True),
        archive=(RawFile("ogbn_arxiv/arxiv.zip", url, ARXIV_SHA256), "arxiv"),
    )


BOUGHT, COAUTHORS = "products bought together", "authors of common papers"
COMPUTERS, PHOTO, CS = "amazon_electronics_computers.npz", "amazon_electronics_photo.npz", "ms_academic_cs.npz"
DATASETS = {
    info.name: info
    for info in (
        _planetoid("Cora", "citations between papers; embedded", Statistics(2485, 5069, 1433, 7)),
        _planetoid("CiteSeer", "citations between papers", Statistics(2120, 3679, 3703, 6)),
        _planetoid("PubMed", "citations between papers on diabetes", Statistics(19717, 44324, 500, 3)),
        _shchur("computers", BOUGHT, "Computers", COMPUTERS, Statistics(13381, 245778, 767, 10)),
        _shchur("photo", BOUGHT, "Photo", PHOTO, Statistics(7487, 119043, 745, 8)),
        replace(_shchur("coauthor-cs", COAUTHORS, "CS", CS, Statistics(18333, 81894, 6805, 15)), development=5000),
        _webkb("texas"),
        _webkb("wisconsin"),
        _webkb("cornell"),
        _heterophilous("roman-empire", "words of an article"),
        _heterophilous("amazon-ratings", BOUGHT),
        _ogb_arxiv(),
    )
}
