"""The interface that a model calls when its graph is spread over processes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from kuramotognn.features import FeatureRows, Features
from kuramotognn.graph import Graph
from kuramotognn.solve import Solution
from kuramotognn.typing import EdgeWeight, Index, Logits


class Distributed(Protocol):
    """A model over several processes, each with the whole graph and a part of all else; see :mod:`.parallel`.

    Every process calls the same methods with the same arguments and gets the results of all nodes.
    """

    def feature_rows(self, x: Features | FeatureRows, graph: Graph) -> FeatureRows:
        """What this process needs of the features."""

    def describe(self, graph: Graph) -> str:
        """In words, what is spread and what is exchanged."""

    def logits(
        self, x: Features | FeatureRows, edges: Any, edge_weight: EdgeWeight | None, nodes: Index | None
    ) -> Logits:
        """Predictions for all nodes, or for some."""

    def flow(
        self, x: Features | FeatureRows, edges: Any, edge_weight: EdgeWeight | None, save_at: Sequence[float] | None
    ) -> Solution:
        """The states of all nodes along the flow."""

    def logits_along(
        self, x: Features | FeatureRows, edges: Any, edge_weight: EdgeWeight | None, save_at: Sequence[float]
    ) -> list[Logits]:
        """Predictions for all nodes at several times."""
