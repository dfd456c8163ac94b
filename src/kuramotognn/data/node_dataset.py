"""A graph whose nodes are to be classified."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from kuramotognn.data.columns import Columns
from kuramotognn.data.data_error import DataError
from kuramotognn.data.splits import Split
from kuramotognn.features import Features, SparseFeatures, select_rows
from kuramotognn.graph import Graph, largest_component
from kuramotognn.mapped_features import MappedFeatures
from kuramotognn.typing import EdgeIndex, EdgeWeight, Index, Labels

if TYPE_CHECKING:
    from torch_geometric.data import Data

UNLABELLED = -1
"""Class of a node without a label."""


@dataclass(frozen=True, eq=False)
class NodeDataset:
    """A graph whose nodes are to be classified.

    Attributes:
        name: name in the registry.
        x: ``[N, F]`` features, dense or sparse.
        edge_index: ``[2, E]`` with both directions of an undirected edge.
        y: ``[N]`` classes; −1 for unlabelled nodes.
        class_names: names of the classes.
        node_ids: names of the nodes in their source.
        edge_weight: ``[E]`` edge weights, if there are any.
        given_splits: the splits that come with the data, numbered from 0.
        columns: the table that ``x`` was computed from, if there is one; each split fits its own encoder to it.
        graph: the graph of the edges, if it is there already, such as one that is mapped from disk.
    """

    name: str
    x: Features
    edge_index: EdgeIndex
    y: Labels
    class_names: tuple[str, ...]
    node_ids: Sequence[str]
    edge_weight: EdgeWeight | None = None
    given_splits: tuple[Split, ...] = ()
    columns: Columns | None = None
    graph: Graph | None = None

    def __repr__(self) -> str:
        """Two lines: what it is, and its sizes."""
        kind = {SparseFeatures: "sparse", MappedFeatures: "on disk"}.get(type(self.x), "dense")
        weighted = "" if self.edge_weight is None else ", weighted"
        splits = f", {len(self.given_splits)} given splits" if self.given_splits else ""
        return (
            f"NodeDataset {self.name!r}: {self.num_nodes} nodes in {self.num_classes} classes{splits}\n"
            f"  edge_index [2, {self.edge_index.size(1)}]{weighted}, x [{self.num_nodes}, {self.num_features}] {kind}"
        )

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
        """The subgraph on ``nodes``, renumbered in their order; other nodes are removed from given splits, too."""
        if isinstance(self.x, MappedFeatures):
            raise DataError("features on disk are of all nodes; leave out nodes before you write them")
        position = torch.full((self.num_nodes,), -1)
        position[nodes] = torch.arange(nodes.numel())
        edges = position[self.edge_index]
        kept = (edges >= 0).all(dim=0)
        return replace(
            self,
            x=select_rows(self.x, nodes),
            edge_index=edges[:, kept],
            edge_weight=None if self.edge_weight is None else self.edge_weight[kept],
            y=self.y[nodes],
            node_ids=tuple(self.node_ids[node] for node in nodes.tolist()),
            columns=None if self.columns is None else self.columns.rows(nodes),
            given_splits=tuple(split.renumbered(position) for split in self.given_splits),
            graph=None,
        )

    def undirected(self) -> NodeDataset:
        """Every edge once in both directions, with the larger weight where the two directions differ."""
        (source, target), n = self.edge_index, max(self.num_nodes, 1)
        unique, place = torch.unique(torch.cat([source * n + target, target * n + source]), return_inverse=True)
        edges, weight = torch.stack([unique // n, unique % n]), self.edge_weight
        if weight is not None:
            weight = weight.new_zeros(unique.numel()).scatter_reduce(0, place, weight.repeat(2), "amax")
        return replace(self, edge_index=edges, edge_weight=weight, graph=None)

    def to_data(self) -> Data:
        """PyG's ``Data`` with dense ``x``, ``edge_index``, ``y`` and ``edge_weight``; given splits become masks.

        Masks are ``[N]`` for one split and ``[N, splits]`` for several, as in PyG's data sets.
        """
        from torch_geometric.data import Data  # Importing it takes seconds.

        x = self.x if isinstance(self.x, Tensor) else self.x.to_dense()
        data = Data(x=x, edge_index=self.edge_index, y=self.y)
        if self.edge_weight is not None:
            data.edge_weight = self.edge_weight
        for name, part in (("train_mask", "train"), ("val_mask", "validation"), ("test_mask", "test")):
            masks = torch.zeros(self.num_nodes, len(self.given_splits), dtype=torch.bool)
            for number, split in enumerate(self.given_splits):
                masks[getattr(split, part), number] = True
            if self.given_splits:
                data[name] = masks.squeeze(1)
        return data

    def edge_homophily(self) -> float:
        """Share of edges between nodes of the same class, without self-loops and edges of unlabelled nodes."""
        first, second = self.y[self.edge_index]
        counted = (first >= 0) & (second >= 0) & (self.edge_index[0] != self.edge_index[1])
        return float((first == second)[counted].double().mean()) if counted.any() else float("nan")

    def num_pairs(self) -> int:
        """Number of pairs of different nodes with an edge in at least one direction."""
        low, high = self.edge_index.min(dim=0).values, self.edge_index.max(dim=0).values
        return int(torch.unique((low * self.num_nodes + high)[low != high]).numel())
