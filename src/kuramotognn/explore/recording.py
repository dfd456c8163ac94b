"""A trained model along its flow: phases, predictions and measures at some times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace

import torch
from torch import Tensor

from kuramotognn.diagnostics import MEASURES, class_separation, order_parameter, oversmoothing_profile
from kuramotognn.diagnostics.profile import FREQUENCY_SPREAD, states_at, step_times
from kuramotognn.explore.sources import TrainedModel
from kuramotognn.kernels import use_backend
from kuramotognn.training import accuracy
from kuramotognn.typing import Index, Labels, Nodes

MOST_TIMES = 48
CHANNELS = 4
ACCURACY = "accuracy"
LABELS = {
    **{name: MEASURES[name].label for name in ("order", "local-order", "dirichlet", "phase-energy")},
    FREQUENCY_SPREAD: "frequency spread",
    ACCURACY: "test accuracy of the decoder",
}
"""What is drawn against time, with the labels of the axes."""
PARTS = ("unused", "train", "validation", "test")


@dataclass(frozen=True, eq=False)
class Recording:
    """What is shown of a model's flow. Shapes: ``F`` times, ``C`` channels, ``n`` shown nodes.

    Attributes:
        title: name of the model.
        source: where the model is from.
        split: whose training nodes it was trained on.
        times: ``F`` times from 0 to the depth T.
        channels: the ``C`` channels in which classes lie farthest apart on the circle at T, the first one farthest.
        phases: ``[C, F, n]`` phases, unwrapped, minus the median of all nodes.
        order: ``[C, F]`` complex order parameters of all nodes in that frame.
        predictions: ``[F, n]`` classes that the decoder gives.
        parts: ``[n]`` the nodes' parts in the split, by their place in :data:`PARTS`.
        measures: ``F`` values of each measure of :data:`LABELS`, over all nodes and channels.
    """

    title: str
    source: str
    split: int
    times: tuple[float, ...]
    channels: tuple[int, ...]
    phases: Tensor
    order: Tensor
    predictions: Tensor
    parts: Tensor
    measures: Mapping[str, tuple[float, ...]]


def record(trained: TrainedModel, nodes: Index) -> Recording:
    """Integrate the flow of a model and keep what is shown of ``nodes``."""
    task, model = trained.task, trained.model
    split = task.split(trained.split)
    times = [t for t in step_times(model, MOST_TIMES) if t < trained.time * (1 - 1e-9)] + [trained.time]
    model.eval()
    phases, order, predictions, accuracies = [], [], [], []
    with torch.no_grad(), use_backend(task.config.backend):
        final = model.flow(task.x, task.graph, save_at=[trained.time]).final
        channels = separating_channels(final, task.y)
        for x in states_at(model, task.x, task.graph, times):
            # The median turns with most nodes; the mean does not where a few turn fast.
            deviation = x[:, channels] - x[:, channels].median(dim=0).values
            logits = model.decoder(x)
            phases.append(deviation[nodes].t().cpu())
            order.append(order_parameter(deviation).cpu())
            predictions.append(logits[nodes].argmax(dim=-1).cpu())
            accuracies.append(accuracy(logits, task.y, split.test))
        data = SimpleNamespace(x=task.x, edge_index=task.graph, y=task.y)
        names = [name for name in LABELS if name != ACCURACY]
        profile = oversmoothing_profile(model, data, measures=names, times=times)
    part = torch.zeros(task.dataset.num_nodes, dtype=torch.uint8)
    for number, name in enumerate(PARTS[1:], start=1):
        part[getattr(split, name)] = number
    return Recording(
        title=trained.title,
        source=trained.source,
        split=trained.split,
        times=tuple(times),
        channels=tuple(channels.tolist()),
        phases=torch.stack(phases, dim=1),
        order=torch.stack(order, dim=1),
        predictions=torch.stack(predictions),
        parts=part[nodes],
        measures={**profile.measures, ACCURACY: tuple(accuracies)},
    )


def separating_channels(x: Nodes, y: Labels, most: int = CHANNELS) -> Index:
    """The channels in which classes lie farthest apart on the circle, in descending order: variance between classes."""
    x, y = x[y >= 0].double(), y[y >= 0]
    between = [class_separation(torch.stack([channel.cos(), channel.sin()], dim=1), y).between for channel in x.t()]
    return torch.tensor(between).argsort(descending=True, stable=True)[:most].to(x.device)
