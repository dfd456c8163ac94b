"""A graph whose nodes are to be classified."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from kuramotognn.data.columns import Columns
from kuramotognn.data.splits import Split
from kuramotognn.features import Features, SparseFeatures
from kuramotognn.graph import largest_component
from kuramotognn.typing import EdgeIndex, EdgeWeight, Index, Labels

UNLABELLED = -1
"""Class of a node whose label is not known."""


@dataclass(frozen=True, eq=False)
class NodeDataset:
    """A graph whose nodes are to be classified.

    Attributes:
        name: how the registry calls it.
        x: ``[N, F]`` features, sparse when they are sparse.
        edge_index: ``[2, E]`` both directions of an undirected edge.
        y: ``[N]`` classes; −1 where the label is not known.
        class_names: what the classes are called.
        node_ids: what the nodes are called in their source.
        edge_weight: ``[E]`` weights, where the source has them.
        given_splits: the splits that come with the data, numbered from 0.
        columns: what ``x`` was made of, where it comes from a table: training fits an encoder of its own to them.
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
        """The subgraph on ``nodes``, renumbered in their order; given splits lose the nodes that are left out."""
        position = torch.full((self.num_nodes,), -1)
        position[nodes] = torch.arange(nodes.numel())
        edges = position[self.edge_index]
        kept = (edges >= 0).all(dim=0)
        return replace(
            self,
            x=self.x.rows(nodes) if isinstance(self.x, SparseFeatures) else self.x[nodes],
            edge_index=edges[:, kept],
            edge_weight=None if self.edge_weight is None else self.edge_weight[kept],
            y=self.y[nodes],
            node_ids=tuple(self.node_ids[node] for node in nodes.tolist()),
            columns=None if self.columns is None else self.columns.rows(nodes),
            given_splits=tuple(split.renumbered(position) for split in self.given_splits),
        )

    def undirected(self) -> NodeDataset:
        """Every edge in both directions, once; where weights of the two directions differ, the larger."""
        source, target = self.edge_index
        key = torch.cat([source * self.num_nodes + target, target * self.num_nodes + source])
        unique, place = torch.unique(key, return_inverse=True)
        edges = torch.stack(
            [unique.div(max(self.num_nodes, 1), rounding_mode="floor"), unique % max(self.num_nodes, 1)]
        )
        if self.edge_weight is None:
            return replace(self, edge_index=edges)
        weight = self.edge_weight.new_zeros(unique.numel())
        return replace(
            self, edge_index=edges, edge_weight=weight.scatter_reduce(0, place, self.edge_weight.repeat(2), "amax")
        )

    def edge_homophily(self) -> float:
        """Share of edges that join nodes of one class; loops and edges of unlabelled nodes are left out."""
        first, second = self.y[self.edge_index]
        counted = (first >= 0) & (second >= 0) & (self.edge_index[0] != self.edge_index[1])
        return float((first == second)[counted].double().mean()) if counted.any() else float("nan")

    def num_pairs(self) -> int:
        """How many pairs of different nodes are joined, in one direction or both."""
        low, high = self.edge_index.min(dim=0).values, self.edge_index.max(dim=0).values
        return int(torch.unique((low * self.num_nodes + high)[low != high]).numel())
