"""How the files of a user's graph were interpreted."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class GraphSummary:
    """How a graph's files were interpreted.

    Attributes:
        formats: the formats that were recognised.
        nodes: number of nodes.
        columns: what each column of the nodes is taken as.
        classes: labelled nodes by class.
        unlabelled: nodes without a label.
        unknown: nodes by the label that is taken as unknown; they are unlabelled.
        matrix: size of the feature matrix, if there is one.
        parts: nodes by their part in the (first) given split.
        splits: number of given splits.
        edges: rows of edges.
        directed: whether edges are one-way.
        repeated: rows of edges that repeat another.
        loops: edges from a node to itself.
        dropped: rows of edges whose ends are not among the nodes.
        isolated: nodes without an edge.
        weights: smallest and largest edge weight, if there are any.
        beside: nodes of the training graph that were added.
        warnings: a sentence for each likely mistake.
    """

    formats: list[str] = field(default_factory=list)
    nodes: int = 0
    columns: dict[str, str] = field(default_factory=dict)
    classes: dict[str, int] = field(default_factory=dict)
    unlabelled: int = 0
    unknown: dict[str, int] = field(default_factory=dict)
    matrix: str | None = None
    parts: dict[str, int] = field(default_factory=dict)
    splits: int = 0
    edges: int = 0
    directed: bool = False
    repeated: int = 0
    loops: int = 0
    dropped: int = 0
    isolated: int = 0
    weights: tuple[float, float] | None = None
    beside: int = 0
    warnings: list[str] = field(default_factory=list)
