"""Training: fit a model on a split, selecting on validation alone; deterministic per seed and resumable."""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, Literal

import torch
import torch.nn.functional as F
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor, nn

from kuramotognn.checkpoints import Checkpoint, CheckpointFolder
from kuramotognn.data.splits import Split
from kuramotognn.features import Features, check_features, compact_features
from kuramotognn.graph import Graph
from kuramotognn.metrics import measure
from kuramotognn.models.continuous import ContinuousGNN
from kuramotognn.models.discrete import DiscreteGNN
from kuramotognn.optim import Adam
from kuramotognn.solve import solver_errors
from kuramotognn.typing import EdgeIndex, Index, Labels, Logits

OPTIMISERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "adam": Adam,
    "adamw": partial(torch.optim.AdamW, fused=True),  # Half the time of one small operator after the other.
    "adamax": torch.optim.Adamax,
    "adagrad": torch.optim.Adagrad,
    "rmsprop": torch.optim.RMSprop,
    "sgd": torch.optim.SGD,
}


class TrainingConfig(BaseModel):
    """How a model is trained."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    epochs: int = Field(200, ge=1, description="Passes over the training nodes, at most.")
    patience: int = Field(100, ge=1, description="Stop after this many epochs without a better validation result.")
    optimiser: Literal["adam", "adamw", "adamax", "adagrad", "rmsprop", "sgd"] = Field(
        "adam", description="Optimiser, with torch's defaults for what is not set here."
    )
    learning_rate: float = Field(0.01, gt=0, description="Step of the optimiser.")
    weight_decay: float = Field(0.0, ge=0, description="Weight decay of the optimiser.")
    class_weights: Literal["none", "balanced"] = Field(
        "none", description="Weigh each class in the loss by one over its share of the training nodes, or all alike."
    )
    select_time: bool = Field(
        False, description="Choose the integration time on validation, by decoding along the trajectory."
    )
    time_candidates: int = Field(20, ge=1, description="How many times up to model.time select-time tries.")
    checkpoint_every: int = Field(20, ge=1, description="Epochs between checkpoints.")


@dataclass(frozen=True)
class EpochMetrics:
    """One line of ``metrics.jsonl``; holds no wall-clock time, so that a resumed run writes the same bytes."""

    epoch: int
    train_loss: float
    train_accuracy: float
    validation_loss: float
    validation_accuracy: float
    time: float | None
    evaluations: int

    def better_than(self, other: EpochMetrics | None) -> bool:
        """Higher validation accuracy, ties broken by lower validation loss."""
        if other is None:
            return True
        mine, theirs = self.validation_accuracy, other.validation_accuracy
        return mine > theirs or (mine == theirs and self.validation_loss < other.validation_loss)


@dataclass(frozen=True)
class TrainResult:
    """What :func:`fit` found. The model is left with the parameters of ``best``.

    Attributes:
        best: metrics of the epoch chosen on validation.
        test_accuracy: accuracy on the test nodes, computed once, with the chosen parameters and time.
        test_measures: macro F1, balanced accuracy, confusion matrix and, for two classes, ROC-AUC of the same nodes.
        history: metrics of every epoch.
        seconds: wall-clock time, over all sessions of a resumed training.
    """

    best: EpochMetrics
    test_accuracy: float
    history: tuple[EpochMetrics, ...] = field(repr=False)
    seconds: float
    test_measures: Mapping[str, Any] = field(default_factory=dict, repr=False)


def fit(
    model: nn.Module,
    x: Features,
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
        model: called as ``model(x, edges)``; any PyG model is. A module in it that has a method ``set_training_nodes``
            is told the split's training nodes.
        x: ``[N, F]`` features, sparse or dense; made sparse when nearly empty and the model can take it.
        edges: a graph, or PyG's ``edge_index``.
        y: ``[N]`` classes.
        split: the nodes to train, select and test on.
        config: how to train.
        seed: of dropout; the global generator is left as it was.
        checkpoints: where to keep checkpoints; training goes on from the newest one found there.
        on_epoch: told of each epoch.
    """
    config = config or TrainingConfig()
    check_features(x)
    if isinstance(model, ContinuousGNN | DiscreteGNN):
        x = compact_features(x)
        if not isinstance(edges, Graph):
            edges = Graph.from_edge_index(edges, x.shape[0])
    if config.select_time and not isinstance(model, ContinuousGNN):
        raise ValueError(f"select_time needs a model with a flow, got {type(model).__name__}")
    for module in model.modules():
        if callable(tell := getattr(module, "set_training_nodes", None)):
            tell(split.train)
    with torch.random.fork_rng(devices=_generator_devices(y)):
        torch.manual_seed(seed)
        return _Training(model, x, edges, y, split, config, checkpoints).run(on_epoch)


@torch.no_grad()
def predict(model: nn.Module, x: Features, edges: EdgeIndex | Graph, *, time: float | None = None) -> Logits:
    """Logits of every node, without dropout; at ``time`` along the flow when given."""
    model.eval()
    if time is None:
        logits: Logits = model(x, edges)
        return logits
    if not isinstance(model, ContinuousGNN):
        raise ValueError(f"time needs a model with a flow, got {type(model).__name__}")
    final: Logits = model.decoder(model.flow(x, edges, save_at=[time]).final)
    return final


def accuracy(logits: Logits, y: Labels, nodes: Index) -> float:
    """Share of ``nodes`` whose highest logit is their class."""
    return float((logits[nodes].argmax(dim=-1) == y[nodes]).double().mean())


class ModeSwitch:
    """Puts a model into training or evaluation mode, as ``train()`` and ``eval()`` do, with less bookkeeping.

    They ask each module for its children, and on each assignment whether it is a parameter, a module or a buffer: on
    small graphs a hundredth of an epoch. What the modules are is looked up once. Where one of them has methods of its
    own for this, they are called.
    """

    def __init__(self, model: nn.Module) -> None:
        self.model, modules = model, list(model.modules())
        methods = ("train", "eval", "__setattr__")
        plain = all(getattr(type(module), name) is getattr(nn.Module, name) for module in modules for name in methods)
        self.attributes = [vars(module) for module in modules] if plain else None

    def __call__(self, training: bool) -> None:
        """Switch."""
        if self.attributes is None:
            self.model.train() if training else self.model.eval()
        else:
            for attributes in self.attributes:
                attributes["training"] = training


class _Training:
    """The state of one training between two epochs, and the step from one to the next."""

    def __init__(
        self,
        model: nn.Module,
        x: Features,
        edges: EdgeIndex | Graph,
        y: Labels,
        split: Split,
        config: TrainingConfig,
        checkpoints: CheckpointFolder | None,
    ) -> None:
        self.model, self.x, self.edges, self.y, self.split = model, x, edges, y, split
        self.config, self.checkpoints = config, checkpoints
        self.parameters, self.set_training = list(model.parameters()), ModeSwitch(model)
        self.optimiser = OPTIMISERS[config.optimiser](
            self.parameters, lr=config.learning_rate, weight_decay=config.weight_decay
        )
        self.classes = y[split.train]
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
        self.set_training(True)
        for parameter in self.parameters:
            parameter.grad = None  # What zero_grad does too, with bookkeeping that costs a hundredth of an epoch.
        logits = self._training_logits()
        weights = _balanced(self.classes, logits.size(-1)) if self.config.class_weights == "balanced" else None
        loss = F.cross_entropy(logits, self.classes, weights)
        with solver_errors():
            loss.backward()  # type: ignore[no-untyped-call]
        self.optimiser.step()
        metrics = self._validate(len(self.history) + 1, float(loss.detach()))
        self.history.append(metrics)
        if metrics.better_than(self.best):
            self.best = metrics
            self.best_state = {name: tensor.clone() for name, tensor in self.model.state_dict().items()}
        return metrics

    def _training_logits(self) -> Logits:
        nodes = self.split.train
        if isinstance(self.model, ContinuousGNN | DiscreteGNN):
            # A decoder with dropout over all nodes costs more than some flows.
            chosen: Logits = self.model(self.x, self.edges, nodes=nodes.to(self.y.device))
            return chosen
        logits: Logits = self.model(self.x, self.edges)
        return logits[nodes]

    @torch.no_grad()
    def _validate(self, epoch: int, train_loss: float) -> EpochMetrics:
        self.set_training(False)
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
            )
            if metrics.better_than(best):
                best = metrics
        assert best is not None
        return best

    def _candidates(self) -> Sequence[tuple[float | None, Logits]]:
        """Predictions to select from: one, or one for each time along the trajectory."""
        if not self.config.select_time:
            return [(None, self.model(self.x, self.edges))]
        assert isinstance(self.model, ContinuousGNN)
        count = self.config.time_candidates
        times = [self.model.time * (k + 1) / count for k in range(count)]
        solution = self.model.flow(self.x, self.edges, save_at=times)
        return [(t, self.model.decoder(state)) for t, state in zip(solution.ts, solution.ys, strict=True)]

    def _result(self) -> TrainResult:
        assert self.best is not None
        self.model.load_state_dict(self.best_state)
        logits = predict(self.model, self.x, self.edges, time=self.best.time)
        return TrainResult(
            best=self.best,
            test_accuracy=accuracy(logits, self.y, self.split.test),
            history=tuple(self.history),
            seconds=self._seconds(),
            test_measures=measure(logits, self.y, self.split.test),
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
        }
        return Checkpoint(tensors, facts)

    def _restore(self, saved: Checkpoint) -> None:
        def part(prefix: str) -> dict[str, Tensor]:
            return {
                name.removeprefix(prefix): value for name, value in saved.tensors.items() if name.startswith(prefix)
            }

        self.model.load_state_dict(part("model/"))
        self.best_state = part("best/")
        slots: dict[int, dict[str, Any]] = {}
        for name, value in part("optimiser/").items():
            index, key = name.split("/")
            slots.setdefault(int(index), {})[key] = value
        self.optimiser.load_state_dict(self.optimiser.state_dict() | {"state": slots})
        for name, state in part("random/").items():
            _set_generator_state(name, state)
        self.history = [EpochMetrics(**metrics) for metrics in saved.facts["history"]]
        self.best = self.history[saved.facts["best_epoch"] - 1]
        self.earlier_seconds = saved.facts["seconds"]


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
