"""Data sets by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.resources import files
from io import BytesIO

import numpy as np
import torch

from kuramotognn.checks import did_you_mean
from kuramotognn.features import Features, SparseFeatures
from kuramotognn.graph import largest_component
from kuramotognn.typing import EdgeIndex, Index, Labels


@dataclass(frozen=True, eq=False)
class NodeDataset:
    """A graph whose nodes are to be classified.

    Attributes:
        name: how the registry calls it.
        x: ``[N, F]`` features, sparse when they are sparse.
        edge_index: ``[2, E]`` both directions of an undirected edge.
        y: ``[N]`` classes.
        class_names: what the classes are called.
        node_ids: what the nodes are called in their source.
    """

    name: str
    x: Features
    edge_index: EdgeIndex
    y: Labels
    class_names: tuple[str, ...]
    node_ids: tuple[str, ...]

    @property
    def num_nodes(self) -> int:
        """``N``."""
        return self.y.numel()

    @property
    def num_features(self) -> int:
        """``F``."""
        return self.x.shape[1]

    @property
    def num_classes(self) -> int:
        """``C``."""
        return len(self.class_names)

    def largest_component(self) -> NodeDataset:
        """The data set on its largest connected component; nodes keep their order."""
        return self.subset(largest_component(self.edge_index, self.num_nodes))

    def subset(self, nodes: Index) -> NodeDataset:
        """The subgraph on ``nodes``, renumbered in their order."""
        position = torch.full((self.num_nodes,), -1)
        position[nodes] = torch.arange(nodes.numel())
        edges = position[self.edge_index]
        return replace(
            self,
            x=self.x.rows(nodes) if isinstance(self.x, SparseFeatures) else self.x[nodes],
            edge_index=edges[:, (edges >= 0).all(dim=0)],
            y=self.y[nodes],
            node_ids=tuple(self.node_ids[node] for node in nodes.tolist()),
        )


@dataclass(frozen=True)
class DatasetInfo:
    """An entry of the registry."""

    name: str
    description: str
    load: Callable[[], NodeDataset]


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


DATASETS = {info.name: info for info in (DatasetInfo("cora", "citations between papers; embedded", load_cora),)}


def load_dataset(name: str) -> NodeDataset:
    """Load a data set of the registry; the name is forgiving in case, dashes and underscores."""
    return DATASETS[dataset_name(name)].load()


def dataset_name(name: str) -> str:
    """The registry's spelling of a data set's name."""
    plain = name.strip().lower().replace("_", "-")
    if plain not in DATASETS:
        raise ValueError(
            f"unknown dataset {name!r}{did_you_mean(plain, DATASETS)}; known: {', '.join(sorted(DATASETS))}"
        )
    return plain
