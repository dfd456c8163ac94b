"""Training: fit a model on a split, selecting on validation alone; deterministic per seed and resumable."""

from __future__ import annotations

import math
import time as clock
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import cached_property, partial
from inspect import signature
from statistics import fmean
from typing import Any

import torch
import torch.nn.functional as F
from pydantic import TypeAdapter
from torch import Tensor, nn

from kuramotognn.batches import Batch, make_batches, set_training_nodes
from kuramotognn.checkpoints import Checkpoint, CheckpointError, CheckpointFolder, digest
from kuramotognn.data.splits import Split
from kuramotognn.features import FeatureRows, Features, check_features, compact_features
from kuramotognn.graph import Graph
from kuramotognn.metrics import measure
from kuramotognn.models.continuous import ContinuousGNN
from kuramotognn.models.discrete import DiscreteGNN
from kuramotognn.parallel.distributed_model import DistributedModel
from kuramotognn.parallel.first_rank_checkpoints import FirstRankCheckpoints
from kuramotognn.solve import solver_errors
from kuramotognn.train_result import EpochMetrics, TrainResult
from kuramotognn.training_config import TrainingConfig
from kuramotognn.typing import EdgeIndex, Index, Labels, Logits

METRICS = {"balanced-accuracy": "balanced_accuracy", "macro-f1": "macro_f1", "roc-auc": "roc_auc"}
PLATEAU = 20
"""Epochs without a lower validation loss after which the schedule ``plateau`` halves the learning rate."""
OPTIMISERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "adam": partial(torch.optim.Adam, fused=True),
    "adamw": partial(torch.optim.AdamW, fused=True),
    "adamax": torch.optim.Adamax,
    "adagrad": torch.optim.Adagrad,
    "rmsprop": torch.optim.RMSprop,
    "sgd": torch.optim.SGD,
}


def fit(
    model: nn.Module,
    x: Features | FeatureRows,
    edges: EdgeIndex | Graph,
    y: Labels,
    split: Split,
    *,
    config: TrainingConfig | None = None,
    seed: int = 0,
    checkpoints: CheckpointFolder | None = None,
    on_epoch: Callable[[EpochMetrics], None] | None = None,
) -> TrainResult:
    """Train ``model`` on the split's training nodes and keep the epoch that validates best.

    Args:
        model: one of this library, or any that is called as ``model(x, edge_index)`` or, where its signature has it,
            with ``edge_weight``. A method ``set_training_nodes`` of one of its modules is called with the split's
            training nodes.
        x: ``[N, F]`` features, sparse, dense or on disk; made sparse when nearly empty and the model takes sparse ones.
            One of several processes may pass the rows that it needs.
        edges: a graph, or PyG's ``edge_index``.
        y: ``[N]`` classes.
        split: the nodes to train, select and test on.
        config: how to train.
        seed: of dropout; the global generator is left as it was.
        checkpoints: where to keep checkpoints; training goes on from the newest one found there.
        on_epoch: called with the metrics of each epoch.
    """
    config = config or TrainingConfig()
    check_features(x.x if isinstance(x, FeatureRows) else x)
    if config.select_time and not isinstance(model, ContinuousGNN):
        raise ValueError(f"select_time needs a model with a flow, got {type(model).__name__}")
    if config.metric == "roc-auc" and (classes := int(y.max()) + 1) != 2:
        raise ValueError(f"metric roc-auc is for two classes, got {classes}; take balanced-accuracy or macro-f1")
    set_training_nodes(model, split.train)
    if isinstance(ranks := getattr(model, "distributed", None), DistributedModel):
        check_batch_over_ranks(model, config)
        checkpoints = FirstRankCheckpoints(checkpoints, ranks.ranks)
    with torch.random.fork_rng(devices=_generator_devices(y)):
        torch.manual_seed(seed)
        return _Training(model, model_inputs(model, x, edges), y, split, config, seed, checkpoints).run(on_epoch)


def check_batch_over_ranks(model: nn.Module, config: TrainingConfig) -> None:
    """Refuse mini-batches of a model that is spread over processes."""
    if config.batch != "none" and getattr(model, "distributed", None) is not None:
        raise ValueError(f"training.batch {config.batch!r} is for one process; leave it out, or start one rank")


def model_inputs(model: nn.Module, x: Features | FeatureRows, edges: EdgeIndex | Graph) -> tuple[Any, ...]:
    """The arguments of a forward pass: models of this library take sparse features and graphs, others tensors."""
    if isinstance(x, FeatureRows):
        return x, edges
    if isinstance(model, ContinuousGNN | DiscreteGNN):
        x = compact_features(x)
        graph = edges if isinstance(edges, Graph) else Graph.from_edge_index(edges, x.shape[0])
        return x if model.distributed is None else model.distributed.feature_rows(x, graph), graph
    dense = x if isinstance(x, Tensor) else x.to_dense()
    if not isinstance(edges, Graph):
        return dense, edges
    weighted = "edge_weight" in signature(model.forward).parameters
    return (dense, edges.edge_index, edges.weight) if weighted else (dense, edges.edge_index)


@torch.no_grad()
def predict(
    model: nn.Module, x: Features | FeatureRows, edges: EdgeIndex | Graph, *, time: float | None = None
) -> Logits:
    """Logits of every node, without dropout; at ``time`` along the flow when given."""
    return _predict(model, model_inputs(model, x, edges), time)


def _predict(model: nn.Module, inputs: tuple[Any, ...], time: float | None) -> Logits:
    model.eval()
    if time is None:
        logits: Logits = model(*inputs)
        return logits
    if not isinstance(model, ContinuousGNN):
        raise ValueError(f"time needs a model with a flow, got {type(model).__name__}")
    return model.logits_along(*inputs, save_at=[time])[0]


def accuracy(logits: Logits, y: Labels, nodes: Index) -> float:
    """Share of ``nodes`` whose highest logit is their class."""
    return float((logits[nodes].argmax(dim=-1) == y[nodes]).double().mean())


class _Training:
    """The state of one training between two epochs, and the step from one to the next."""

    def __init__(
        self,
        model: nn.Module,
        inputs: tuple[Any, ...],
        y: Labels,
        split: Split,
        config: TrainingConfig,
        seed: int,
        checkpoints: CheckpointFolder | None,
    ) -> None:
        self.model, self.inputs, self.y, self.split = model, inputs, y, split
        self.config, self.seed, self.checkpoints = config, seed, checkpoints
        self.optimiser = OPTIMISERS[config.optimiser](
            _weight_decay_groups(model, config), lr=config.learning_rate, weight_decay=config.weight_decay
        )
        self.classes = y[split.train]
        self.batches = make_batches(model, inputs, y, split.train, config)
        self.history: list[EpochMetrics] = []
        self.best: EpochMetrics | None = None
        self.best_state: dict[str, Tensor] = {}
        self.earlier_seconds = 0.0
        self.started = clock.perf_counter()

    def run(self, on_epoch: Callable[[EpochMetrics], None] | None) -> TrainResult:
        saved = self.checkpoints.load_latest() if self.checkpoints else None
        if saved is not None:
            self._restore(saved)
            for metrics in self.history if on_epoch else ():
                on_epoch(metrics)  # type: ignore[misc]
        while not self._finished():
            metrics = self._epoch()
            if on_epoch:
                on_epoch(metrics)
            if self.checkpoints and (len(self.history) % self.config.checkpoint_every == 0 or self._finished()):
                self.checkpoints.save(len(self.history), self._checkpoint())
        return self._result()

    def _finished(self) -> bool:
        epoch = len(self.history)
        return epoch >= self.config.epochs or (
            self.best is not None and epoch - self.best.epoch >= self.config.patience
        )

    def _epoch(self) -> EpochMetrics:
        self.model.train()
        train_loss, evaluations = 0.0, 0
        for batch in self.batches.draw():
            train_loss += batch.share * self._step(batch)
            evaluations += self.model.counter.count if isinstance(self.model, ContinuousGNN) else 0
        metrics = self._validate(len(self.history) + 1, train_loss, evaluations)
        self.history.append(metrics)
        if metrics.better_than(self.best):
            self.best = metrics
            self.best_state = {name: tensor.clone() for name, tensor in self.model.state_dict().items()}
        return metrics

    def _step(self, batch: Batch) -> float:
        """One step of the optimiser; the loss before it."""
        self.optimiser.zero_grad()
        loss = self._loss(batch) if not self.config.consistency else self._consistent_loss(batch)
        with solver_errors():
            loss.backward()  # type: ignore[no-untyped-call]
        if self.config.clip_norm is not None:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.config.clip_norm)
        for group in self.optimiser.param_groups:
            group["lr"] = learning_rate(self.config, self.history)
        self.optimiser.step()
        return float(loss.detach())

    def _loss(self, batch: Batch) -> Tensor:
        return self._cross_entropy(self._training_logits(batch), batch)

    def _cross_entropy(self, logits: Logits, batch: Batch) -> Tensor:
        weights = _balanced(self.classes, logits.size(-1)) if self.config.class_weights == "balanced" else None
        return F.cross_entropy(logits, batch.classes, weights, label_smoothing=self.config.label_smoothing)

    def _consistent_loss(self, batch: Batch) -> Tensor:
        """Cross-entropy, mean over several passes, and the consistency of the predictions of the batch's nodes."""
        config = self.config
        passes = [self.model(*batch.inputs) for _ in range(config.consistency_passes)]
        loss = torch.stack([self._cross_entropy(logits[batch.train], batch) for logits in passes]).mean()
        ramp = min(1.0, len(self.history) / config.consistency_ramp) if config.consistency_ramp else 1.0
        return loss + ramp * config.consistency * consistency(passes, config.consistency_temperature)

    def _training_logits(self, batch: Batch) -> Logits:
        if isinstance(self.model, ContinuousGNN | DiscreteGNN):
            # A decoder with dropout over all nodes costs more than some flows.
            chosen: Logits = self.model(*batch.inputs, nodes=batch.train.to(self.y.device))
            return chosen
        logits: Logits = self.model(*batch.inputs)
        return logits[batch.train]

    @torch.no_grad()
    def _validate(self, epoch: int, train_loss: float, train_evaluations: int) -> EpochMetrics:
        self.model.eval()
        best: EpochMetrics | None = None
        for time, logits in self._candidates():
            metrics = EpochMetrics(
                epoch,
                train_loss,
                accuracy(logits, self.y, self.split.train),
                float(F.cross_entropy(logits[self.split.validation], self.y[self.split.validation])),
                accuracy(logits, self.y, self.split.validation),
                time,
                getattr(self.model, "evaluations", 0),
                train_evaluations,
                self._score(logits),
            )
            if metrics.better_than(best):
                best = metrics
        assert best is not None
        return best

    def _score(self, logits: Logits) -> float | None:
        """The chosen metric on the validation nodes, unless it is accuracy."""
        if self.config.metric == "accuracy":
            return None
        found = measure(logits, self.y, self.split.validation)[METRICS[self.config.metric]]
        return float(found) if found is not None else 0.0

    def _candidates(self) -> Sequence[tuple[float | None, Logits]]:
        """Predictions to select from: one, or one for each time along the trajectory."""
        if not self.config.select_time:
            return [(None, self.model(*self.inputs))]
        assert isinstance(self.model, ContinuousGNN)
        count = self.config.time_candidates
        reach = self.config.time_reach * self.model.time
        times = [reach * (k + 1) / count for k in range(count)]
        return list(zip(times, self.model.logits_along(*self.inputs, save_at=times), strict=True))

    def _result(self) -> TrainResult:
        assert self.best is not None
        self.model.load_state_dict(self.best_state)
        best, split = self.best, self.split
        with torch.no_grad():
            logits = _predict(self.model, self.inputs, best.time)
        return TrainResult(
            protocol=split.protocol,
            split=split.number,
            seed=self.seed,
            train_nodes=split.train.numel(),
            validation_nodes=split.validation.numel(),
            test_nodes=split.test.numel(),
            best_epoch=best.epoch,
            epochs=len(self.history),
            time=best.time,
            validation_accuracy=best.validation_accuracy,
            test_accuracy=accuracy(logits, self.y, split.test),
            evaluations=best.evaluations,
            mean_evaluations=fmean(metrics.evaluations for metrics in self.history),
            epoch_evaluations=fmean(each.evaluations + each.train_evaluations for each in self.history),
            seconds=round(self._seconds(), 3),
            test_measures=measure(logits, self.y, split.test),
            history=tuple(self.history),
            logits=logits,
        )

    def _seconds(self) -> float:
        return self.earlier_seconds + clock.perf_counter() - self.started

    def _checkpoint(self) -> Checkpoint:
        tensors = {f"model/{name}": tensor for name, tensor in self.model.state_dict().items()}
        tensors |= {f"best/{name}": tensor for name, tensor in self.best_state.items()}
        for index, state in self.optimiser.state_dict()["state"].items():
            tensors |= {f"optimiser/{index}/{key}": value for key, value in state.items() if value is not None}
        tensors |= {f"random/{name}": state for name, state in _generator_states(self.y).items()}
        facts = {
            "history": [asdict(metrics) for metrics in self.history],
            "best_epoch": self.best.epoch if self.best else None,
            "seconds": self._seconds(),
            "graph": self._graph,
        }
        return Checkpoint(tensors, facts)

    @cached_property
    def _graph(self) -> str:
        """A hash of the edges."""
        edges = self.inputs[1]
        parts = (edges.edge_index, edges.weight) if isinstance(edges, Graph) else self.inputs[1:]
        return digest({str(number): part for number, part in enumerate(parts)})

    def _restore(self, saved: Checkpoint) -> None:
        assert self.checkpoints is not None
        try:
            self._take(saved)
        except (KeyError, TypeError, ValueError, IndexError, RuntimeError, AssertionError) as error:
            raise CheckpointError(
                f"the newest checkpoint in {str(self.checkpoints.folder)!r} does not fit the run: "
                f"{str(error).splitlines()[0]}; remove it"
            ) from error

    def _take(self, saved: Checkpoint) -> None:
        """Continue from a checkpoint."""

        def part(prefix: str) -> dict[str, Tensor]:
            return {
                name.removeprefix(prefix): value for name, value in saved.tensors.items() if name.startswith(prefix)
            }

        if saved.facts.get("graph") not in (None, self._graph):
            raise ValueError("it was made on another graph")
        self.best_state = part("best/")
        self.model.load_state_dict(self.best_state)
        self.model.load_state_dict(part("model/"))
        shapes = [each.shape for group in self.optimiser.param_groups for each in group["params"]]
        slots: dict[int, dict[str, Any]] = {}
        for name, value in part("optimiser/").items():
            index, key = name.split("/")
            if value.dim() and value.shape != shapes[int(index)]:
                raise ValueError(f"{key} of parameter {index} has shape {list(value.shape)}")
            slots.setdefault(int(index), {})[key] = value
        self.optimiser.load_state_dict(self.optimiser.state_dict() | {"state": slots})
        for name, state in part("random/").items():
            _set_generator_state(name, state)
        self.history = TypeAdapter(list[EpochMetrics]).validate_python(saved.facts["history"])
        (self.best,) = (metrics for metrics in self.history if metrics.epoch == saved.facts["best_epoch"])
        self.earlier_seconds = float(saved.facts["seconds"])


def consistency(passes: Sequence[Logits], temperature: float) -> Tensor:
    """Mean squared distance of class probabilities to their sharpened mean, over nodes and passes.

    The consistency regularisation of `"Graph Random Neural Networks for Semi-Supervised Learning on Graphs"
    <https://arxiv.org/abs/2005.11079>`_; the sharpened mean has no gradient.
    """
    probabilities = torch.stack([logits.softmax(dim=-1) for logits in passes])
    sharpened = probabilities.detach().mean(dim=0) ** (1 / temperature)
    target = sharpened / sharpened.sum(dim=-1, keepdim=True)
    return (probabilities - target).square().sum(dim=-1).mean()


def learning_rate(config: TrainingConfig, history: Sequence[EpochMetrics]) -> float:
    """The learning rate of the epoch after ``history``: a function of it, so that resuming needs no other state."""
    if config.schedule == "cosine":
        return config.learning_rate * (1 + math.cos(math.pi * len(history) / config.epochs)) / 2
    if config.schedule == "constant":
        return config.learning_rate
    rate, best, waited = config.learning_rate, math.inf, 0
    for metrics in history:
        best, waited = (metrics.validation_loss, 0) if metrics.validation_loss < best else (best, waited + 1)
        if waited >= PLATEAU:
            rate, waited = rate / 2, 0
    return rate


def _weight_decay_groups(model: nn.Module, config: TrainingConfig) -> list[dict[str, Any]]:
    """Parameters, with the weight decay of encoder and decoder apart where it is set."""
    if config.affine_weight_decay is None:
        return [{"params": list(model.parameters())}]
    named = list(model.named_parameters())
    affine = [parameter for name, parameter in named if name.startswith(("encoder.", "decoder."))]
    if not affine:
        raise ValueError(f"affine_weight_decay needs a model with encoder and decoder, got {type(model).__name__}")
    others = [parameter for name, parameter in named if not name.startswith(("encoder.", "decoder."))]
    return [{"params": others}, {"params": affine, "weight_decay": config.affine_weight_decay}]


def _balanced(classes: Labels, num_classes: int) -> Tensor:
    """Weights under which every class that occurs adds the same to the loss, with mean one over the nodes."""
    counts = torch.bincount(classes, minlength=num_classes)
    present = counts > 0
    return torch.where(present, classes.numel() / (present.sum() * counts.clamp(min=1)), 0.0).float()


def _generator_devices(y: Labels) -> list[torch.device]:
    return [y.device] if y.device.type == "cuda" else []


def _generator_states(y: Labels) -> dict[str, Tensor]:
    states = {"cpu": torch.get_rng_state()}
    return states | {str(device): torch.cuda.get_rng_state(device) for device in _generator_devices(y)}


def _set_generator_state(name: str, state: Tensor) -> None:
    if name == "cpu":
        torch.set_rng_state(state)
    else:
        torch.cuda.set_rng_state(state, name)
