"""What ranks compute and what one process computes: the same functions, with or without a group."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from kuramotognn import Graph, Split, TrainingConfig, fit
from kuramotognn.config.model_settings import default_solver, settings_class
from kuramotognn.features import Features, SparseFeatures
from kuramotognn.models.lookup import find_model
from kuramotognn.parallel import distribute
from kuramotognn.parallel.distribute import How

NODES, WIDTH, CLASSES = 60, 12, 3


def small_graph() -> Graph:
    generator = torch.Generator().manual_seed(1)
    edges = torch.randint(NODES, (2, 150), generator=generator)
    edges = torch.cat([edges, edges.flip(0)], dim=1)
    return Graph.from_edge_index(edges[:, edges[0] != edges[1]], NODES)


def small_features(sparse: bool = False) -> Features:
    x = torch.randn(NODES, WIDTH, generator=torch.Generator().manual_seed(2))
    if not sparse:
        return x
    row, col = (x > 0.5).nonzero().t()
    return SparseFeatures.from_coo(row, col, x[row, col], (NODES, WIDTH))


def small_split() -> tuple[Tensor, Split]:
    order = torch.randperm(NODES, generator=torch.Generator().manual_seed(3))
    y = torch.arange(NODES) % CLASSES
    return y, Split(order[:20], order[20:40], order[40:], "test", 0)


def make_model(name: str, **options: Any) -> torch.nn.Module:
    torch.manual_seed(0)
    settings = settings_class(name)(name=name, **{"hidden_channels": 8} | options)
    return settings.build(WIDTH, CLASSES, default_solver(find_model(name)))


def train(
    name: str, options: dict[str, Any], training: dict[str, Any], sparse: bool = False, how: How = "auto"
) -> dict[str, Any]:
    """Train a small model for some epochs: parameters, logits and history.

    By plain gradient descent unless ``training`` says otherwise: Adam divides gradients that are zero up to rounding by
    their own size, and what is left is rounding.
    """
    model = make_model(name, **options)
    if dist.is_initialized():
        distribute(model, how=how)
    y, split = small_split()
    config = TrainingConfig(**{"epochs": 5, "optimiser": "sgd", "learning_rate": 0.05, "clip_norm": 1.0} | training)
    result = fit(model, small_features(sparse), small_graph(), y, split, config=config)
    return {
        "parameters": {key: value.clone() for key, value in model.state_dict().items()},
        "logits": result.logits,
        "history": [asdict(each) for each in result.history],
    }
