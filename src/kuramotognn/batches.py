"""Mini-batches for training: the whole graph, or subgraphs of a few parts each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from kuramotognn.features import Features, select_rows
from kuramotognn.graph import Graph
from kuramotognn.partition import NEEDS_METIS, metis_parts
from kuramotognn.training_config import TrainingConfig
from kuramotognn.typing import Index, Labels


@dataclass(frozen=True, eq=False)
class Batch:
    """What one step of the optimiser sees.

    Attributes:
        inputs: the arguments of the model's forward pass.
        train: training nodes, numbered as in ``inputs``.
        classes: their classes.
        share: their share of all training nodes.
    """

    inputs: tuple[Any, ...]
    train: Index
    classes: Labels
    share: float


class Batches(Protocol):
    """The batches of an epoch."""

    def draw(self) -> Iterator[Batch]:
        """The batches of the next epoch; together they have every training node once."""


def make_batches(model: nn.Module, inputs: tuple[Any, ...], y: Labels, train: Index, config: TrainingConfig) -> Batches:
    """The batches that ``config`` asks for.

    Args:
        model: the model; its labelled nodes are those of the batch while a batch of parts is used.
        inputs: the arguments of its forward pass on the whole graph.
        y: ``[N]`` classes.
        train: training nodes.
        config: how to train.
    """
    if config.batch == "none":
        return WholeGraph(Batch(inputs, train, y[train], 1.0))
    check_parts(config, y.numel())
    return PartBatches(model, inputs, y, train, config)


def check_parts(config: TrainingConfig, num_nodes: int) -> None:
    """Refuse batches that a graph of ``num_nodes`` cannot have, or that need what is not installed."""
    if config.batch == "none":
        return
    if config.parts > num_nodes:
        raise ValueError(f"training.parts must be at most the {num_nodes} nodes of the graph, got {config.parts}")
    if config.batch == "clusters" and find_spec("pymetis") is None:
        raise ValueError(NEEDS_METIS)


@dataclass(frozen=True, eq=False)
class WholeGraph:
    """One batch: the whole graph."""

    batch: Batch

    def draw(self) -> Iterator[Batch]:
        """The whole graph."""
        yield self.batch


class PartBatches:
    """The subgraphs on some parts at a time, with all edges between the chosen parts.

    With METIS parts this is `"Cluster-GCN: An Efficient Algorithm for Training Deep and Large Graph Convolutional
    Networks" <https://arxiv.org/abs/1905.07953>`_; with random ones, drawn again each epoch, PyG's
    ``RandomNodeLoader``. The order of parts comes from torch's generator, whose state checkpoints keep. Batches without
    training nodes are left out.
    """

    def __init__(
        self, model: nn.Module, inputs: tuple[Any, ...], y: Labels, train: Index, config: TrainingConfig
    ) -> None:
        self.model, self.inputs, self.y, self.train, self.config = model, inputs, y, train, config
        edges = inputs[1]
        self.graph = edges if isinstance(edges, Graph) else Graph.from_edge_index(edges, y.numel(), *inputs[2:])
        self.is_training = torch.zeros(y.numel(), dtype=torch.bool, device=y.device)
        self.is_training[train.to(y.device)] = True

    def draw(self) -> Iterator[Batch]:
        """Batches of parts in random order."""
        parts, device = self._parts(), self.y.device
        for group in torch.randperm(self.config.parts).split(self.config.parts_per_batch):  # type: ignore[no-untyped-call]
            chosen = torch.zeros(self.config.parts, dtype=torch.bool, device=device)
            chosen[group.to(device)] = True
            nodes = chosen[parts].nonzero().flatten()
            train = self.is_training[nodes].nonzero().flatten()
            if train.numel():
                set_training_nodes(self.model, train)
                share = train.numel() / self.train.numel()
                yield Batch(self._inputs(nodes), train, self.y[nodes[train]], share)
        set_training_nodes(self.model, self.train)

    def _parts(self) -> Index:
        if self.config.batch == "clusters":
            return metis_parts(self.graph.pattern, self.config.parts)
        return (torch.randperm(self.y.numel()) % self.config.parts).to(self.y.device)

    def _inputs(self, nodes: Index) -> tuple[Any, ...]:
        x: Features = self.inputs[0]
        part = self.graph.subgraph(nodes)
        if isinstance(self.inputs[1], Graph):
            return select_rows(x, nodes), part
        weight: list[Tensor] = [part.weight] * len(self.inputs[2:])
        return select_rows(x, nodes), part.edge_index, *weight


def set_training_nodes(model: nn.Module, nodes: Index) -> None:
    """Tell the modules that use labelled nodes (GRAND++) which they are."""
    for module in model.modules():
        if callable(set_nodes := getattr(module, "set_training_nodes", None)):
            set_nodes(nodes)
