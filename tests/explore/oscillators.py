"""Uncoupled oscillators as a trained model: their flow is known."""

from __future__ import annotations

import torch
from torch import Tensor

from kuramotognn import KuramotoGNN, NodeDataset, Solver
from kuramotognn.config.resolve import resolve
from kuramotognn.explore.sources import TrainedModel
from kuramotognn.runs.task import Task

TIME = 2.0
DATA = {"normalisation": "none", "per_class": 1, "development": 6, "self_loops": False}


def nodes_without_edges(x: Tensor, class_names: tuple[str, ...] = ("a", "b"), prefix: str = "n") -> NodeDataset:
    """Nodes with classes in turn."""
    count = x.size(0)
    ids = tuple(f"{prefix}{k}" for k in range(count))
    y = torch.arange(count) % len(class_names)
    return NodeDataset("invented", x, torch.empty(2, 0, dtype=torch.long), y, class_names, ids)


def uncoupled(data: NodeDataset) -> TrainedModel:
    """A model with x(0) = ω = features and no neighbours: x(t) = (1 + t) x(0), which Euler's method gives exactly."""
    width = data.num_features
    model = KuramotoGNN(width, width, data.num_classes, time=TIME, heads=1, solver=Solver("euler", step_size=0.5))
    with torch.no_grad():
        model.encoder.linear.weight.copy_(torch.eye(width))
        model.encoder.linear.bias.zero_()
    return TrainedModel(Task.of(resolve({"dataset": "cora", "data": DATA}).config, data), model, 0, TIME, "invented")
