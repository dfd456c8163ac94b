"""The graphs that are measured on, with random row-normalised couplings and random phases."""

from __future__ import annotations

import gzip
import shutil
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import torch
from torch import Tensor
from torch_geometric.datasets import Amazon, Planetoid
from torch_geometric.utils import to_undirected

from kuramotognn import Graph, RandomWalk, largest_component, load_dataset

DATASETS = Path(__file__).parent.parent.parent / "shared" / "datasets"
STEP = 0.1


@dataclass(frozen=True, eq=False)
class Workload:
    """A flow to integrate with euler and step 0.1: graph, couplings, initial phases, upstream gradient."""

    name: str
    graph: Graph
    time: float
    a: Tensor
    x: Tensor
    upstream: Tensor

    @property
    def steps(self) -> int:
        """Euler steps to ``time``."""
        return round(self.time / STEP)

    def shortened(self, time: float) -> Workload:
        """The same flow, stopped earlier."""
        return Workload(self.name, self.graph, time, self.a, self.x, self.upstream)

    def describe(self) -> dict[str, object]:
        """Sizes, for the record."""
        return {
            "nodes": self.graph.num_nodes,
            "edges": self.graph.num_edges,
            "channels": self.x.size(1),
            "time": self.time,
            "steps": self.steps,
        }


def make(name: str, graph: Graph, channels: int, time: float) -> Workload:
    """Random numbers for a graph, the same at each run."""
    generator = torch.Generator().manual_seed(0)
    weights = torch.rand(graph.num_edges, generator=generator) + 0.1
    a = RandomWalk()(weights, Graph(graph.pattern, weights))
    x = torch.randn(graph.num_nodes, channels, generator=generator)
    return Workload(name, graph, time, a, x, torch.randn(x.shape, generator=generator))


def available() -> dict[str, tuple[int, float]]:
    """Channels and time of the workloads whose raw data is at hand; the embedded Cora always is."""
    work = {"cora": (80, 12.0), "pubmed": (128, 2.0), "computers": (128, 1.0), "ogbn-arxiv": (128, 1.0)}
    return work if DATASETS.is_dir() else {"cora": work["cora"]}


def load(name: str) -> Workload:
    """A workload by the name of its graph."""
    channels, time = available()[name]
    return make(name, load_graph(name), channels, time)


@cache
def load_graph(name: str) -> Graph:
    """The largest connected component of a public data set's graph (all of ogbn-arxiv, which is connected)."""
    if name == "cora":
        cora = load_dataset("cora").largest_component()
        return Graph.from_edge_index(cora.edge_index, cora.num_nodes)
    if name == "ogbn-arxiv":
        with gzip.open(DATASETS / "ogbn_arxiv" / "raw" / "edge.csv.gz") as file:
            edge_index = torch.from_numpy(np.loadtxt(file, delimiter=",", dtype=np.int64).T.copy())
        return Graph.from_edge_index(to_undirected(edge_index), int(edge_index.max()) + 1)
    folder, root = ("PubMed", Planetoid) if name == "pubmed" else ("Computers", Amazon)
    scratch = Path(mkdtemp())
    shutil.copytree(DATASETS / folder, scratch / folder)
    edge_index = root(str(scratch), folder)[0].edge_index
    shutil.rmtree(scratch)
    num_nodes = int(edge_index.max()) + 1
    nodes = largest_component(edge_index, num_nodes)
    position = torch.full((num_nodes,), -1)
    position[nodes] = torch.arange(nodes.numel())
    edges = position[edge_index]
    return Graph.from_edge_index(edges[:, (edges >= 0).all(0)], nodes.numel())
