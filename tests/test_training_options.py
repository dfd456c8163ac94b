"""Options of training: what each does, that interrupted runs resume exactly, and that test labels have no influence."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from kuramotognn import (
    GCNII,
    GRAND,
    ContinuousGNN,
    EpochMetrics,
    GraphCON,
    Kuramoto,
    KuramotoGNN,
    Solver,
    Split,
    TrainingConfig,
    TrainResult,
    fit,
)
from kuramotognn.checkpoints import CheckpointFolder
from kuramotognn.training import consistency, learning_rate

NODES = 40
COMMON = ("learning_rate", "epochs")
OPTIONS: dict[str, dict[str, Any]] = {
    "clip": {"clip_norm": 0.01},
    "cosine": {"schedule": "cosine"},
    "plateau": {"schedule": "plateau", "learning_rate": 0.5, "epochs": 60},
    "smoothing": {"label_smoothing": 0.2},
    "consistency": {"consistency": 1.0, "consistency_ramp": 3},
    "decay": {"weight_decay": 0.1, "affine_weight_decay": 0.0},
    "time": {"select_time": True, "time_reach": 3.0, "time_candidates": 6},
}
MODELS: dict[str, dict[str, Any]] = {
    "frequencies": {"frequencies": "detached"},
    "cosine": {"attention_score": "cosine"},
    "pearson": {"attention_score": "pearson"},
    "exp-kernel": {"attention_score": "exp-kernel"},
    "squareplus": {"attention_squash": "squareplus"},
    "columns": {"attention_normalise": "column"},
    "attention-init": {"attention_init": "constant"},
    "mlp": {"encoder": "mlp"},
    "encoder-relu": {"encoder_activation": "relu"},
    "decoder-relu": {"decoder_activation": "relu"},
    "batch-norm": {"batch_norm": True},
    "phases": {"phase_range": (0.0, math.pi)},
    "local-order": {"equation": Kuramoto(interaction="local-order")},
}
EVERY_MODEL_OPTION = {key: value for options in MODELS.values() for key, value in options.items()}
GRAPHCON = {"adjacency": "attention", "source": "mixed", "activation": "identity", "transform": False}
GRAPHCON |= {"source_gradient": "detached", "step_dropout": 0.3}
ALL = {key: value for options in OPTIONS.values() for key, value in options.items() if key not in COMMON}


def problem() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, Split]:
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(NODES) % 3
    x = torch.randn(NODES, 6, generator=generator)
    x[torch.arange(NODES), y] += 1.0
    edges = torch.randint(NODES, (2, 120), generator=generator)
    order = torch.randperm(NODES, generator=generator)
    return x, edges, y, Split(order[:12], order[12:24], order[24:], "test", 0)


def make(**options: Any) -> KuramotoGNN:
    torch.manual_seed(0)
    return KuramotoGNN(6, 8, 3, time=2.0, heads=2, dropout=0.3, solver=Solver(steps=4), **options)


def make_graphcon(**options: Any) -> GraphCON:
    torch.manual_seed(0)
    return GraphCON(6, 8, 3, time=4.0, heads=2, dropout=0.3, solver=Solver("imex", steps=4), **options)


def make_grand(**options: Any) -> GRAND:
    torch.manual_seed(0)
    model = GRAND(6, 8, 3, time=2.0, heads=2, dropout=0.3, solver=Solver(steps=4), **options)
    nn.init.constant_(model.field.beta, 0.5)  # Training starts without a source.
    return model


def make_gcnii(**options: Any) -> GCNII:
    torch.manual_seed(0)
    return GCNII(6, 8, 2, 3, dropout=0.3, **options)


def train(
    folder: Path | None = None,
    stop_at: int = 0,
    y: torch.Tensor | None = None,
    model: nn.Module | None = None,
    **options: Any,
) -> TrainResult:
    def watch(metrics: EpochMetrics) -> None:
        if metrics.epoch == stop_at:
            raise KeyboardInterrupt

    x, edges, labels, split = problem()
    config = TrainingConfig(**{"epochs": 8, "checkpoint_every": 2, "learning_rate": 0.05, **options})
    checkpoints = CheckpointFolder(folder) if folder else None
    return fit(
        make() if model is None else model,
        x,
        edges,
        labels if y is None else y,
        split,
        config=config,
        checkpoints=checkpoints,
        on_epoch=watch,
    )


OTHERS: list[tuple[Callable[..., nn.Module], dict[str, Any]]] = [
    (make_graphcon, GRAPHCON),
    (make_grand, {"source_gradient": "detached"}),
    (make_gcnii, {"init": "uniform"}),
]


def without_seconds(result: TrainResult) -> dict[str, Any]:
    return replace(result, seconds=0.0).record() | {"history": result.history}


@pytest.mark.parametrize("name", [*OPTIONS, "all"])
def test_every_option_has_an_effect_and_resumes_exactly(name: str, tmp_path: Path) -> None:
    options = ALL if name == "all" else OPTIONS[name]
    whole = train(**options)
    plain = train(**{key: value for key, value in options.items() if key in COMMON})
    assert whole.history != plain.history
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path, stop_at=5, **options)
    assert without_seconds(train(tmp_path, **options)) == without_seconds(whole)


@pytest.mark.parametrize(
    ("make_model", "options"),
    [*((make, options) for options in MODELS.values()), (make, EVERY_MODEL_OPTION), *OTHERS],
    ids=[*MODELS, "all", "graphcon", "grand", "gcnii"],
)
def test_every_option_of_the_model_resumes_exactly(
    make_model: Callable[..., nn.Module], options: dict[str, Any], tmp_path: Path
) -> None:
    whole = train(model=make_model(**options))
    assert whole.history != train(model=make_model()).history
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path, stop_at=5, model=make_model(**options))
    assert without_seconds(train(tmp_path, model=make_model(**options))) == without_seconds(whole)


@pytest.mark.parametrize(
    ("make_model", "options"),
    [(make, {}), (make, EVERY_MODEL_OPTION), *OTHERS],
    ids=["plain", "every-option", "graphcon", "grand", "gcnii"],
)
def test_test_labels_have_no_influence(
    make_model: Callable[..., nn.Module], options: dict[str, Any], tmp_path: Path
) -> None:
    """With every option on: the same history, epoch, time and checkpoints whatever the labels of the test nodes."""
    _, _, y, split = problem()
    scrambled = y.clone()
    scrambled[split.test] = 0
    flow = isinstance(make_model(**options), ContinuousGNN)
    training = {name: value for name, value in ALL.items() if flow or name not in OPTIONS["time"]}
    first = train(tmp_path / "first", model=make_model(**options), **training)
    second = train(tmp_path / "second", y=scrambled, model=make_model(**options), **training)
    tensors = [CheckpointFolder(tmp_path / name).load_latest().tensors for name in ("first", "second")]  # type: ignore[union-attr]
    assert tensors[0].keys() == tensors[1].keys()
    assert all(torch.equal(tensors[0][name], tensors[1][name]) for name in tensors[0])
    assert first.history == second.history
    assert (first.best_epoch, first.time) == (second.best_epoch, second.time)
    assert torch.equal(first.logits, second.logits)  # type: ignore[arg-type]
    assert first.test_accuracy != second.test_accuracy


def test_the_norm_of_gradients_is_clipped() -> None:
    """Plain gradient descent moves by at most the learning rate times the norm."""
    x, edges, y, split = problem()
    model = make()
    before = nn.utils.parameters_to_vector(model.parameters()).detach().clone()
    config = TrainingConfig(epochs=1, optimiser="sgd", learning_rate=2.0, clip_norm=0.05)
    fit(model, x, edges, y, split, config=config)
    moved = nn.utils.parameters_to_vector(model.parameters()).detach() - before
    assert float(moved.norm()) == pytest.approx(2.0 * 0.05, rel=1e-3)


def test_learning_rates() -> None:
    def epochs(*losses: float) -> list[EpochMetrics]:
        return [EpochMetrics(k + 1, 0.0, 0.0, loss, 0.0, None, 0) for k, loss in enumerate(losses)]

    cosine = TrainingConfig(schedule="cosine", learning_rate=0.1, epochs=100)
    assert [learning_rate(cosine, epochs(*[1.0] * k)) for k in (0, 50)] == pytest.approx([0.1, 0.05])
    assert learning_rate(cosine, epochs(*[1.0] * 99)) == pytest.approx(0.05 * (1 + math.cos(0.99 * math.pi)))
    plateau = TrainingConfig(schedule="plateau", learning_rate=0.1)
    torch_rates = []
    parameter = nn.Parameter(torch.zeros(()))
    optimiser = torch.optim.SGD([parameter], lr=0.1)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimiser, factor=0.5, patience=19, threshold=0.0)
    losses = [*torch.linspace(1.0, 0.5, 30).tolist(), *[0.6] * 45, 0.4, *[0.7] * 30]
    for loss in losses:
        scheduler.step(loss)
        torch_rates.append(optimiser.param_groups[0]["lr"])
    ours = [learning_rate(plateau, epochs(*losses[: k + 1])) for k in range(len(losses))]
    assert ours == pytest.approx(torch_rates)
    assert learning_rate(TrainingConfig(learning_rate=0.3), epochs(*losses)) == 0.3


def test_the_consistency_term_by_hand() -> None:
    first, second = torch.tensor([[2.0, 0.0]]), torch.tensor([[0.0, 1.0]])
    p, q = (torch.softmax(logits, dim=-1)[0] for logits in (first, second))
    mean = (p + q) / 2
    target = mean**2 / (mean**2).sum()
    expected = ((p - target).square().sum() + (q - target).square().sum()) / 2
    torch.testing.assert_close(consistency([first, second], 0.5), expected)
    same = torch.randn(5, 3)
    assert float(consistency([same, same], 1.0)) == pytest.approx(0.0, abs=1e-12)


def test_consistency_has_no_gradient_through_its_target() -> None:
    logits = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    other = torch.randn(4, 3, dtype=torch.float64)
    consistency([logits, other], 0.5).backward()  # type: ignore[no-untyped-call]
    probabilities = logits.softmax(dim=-1)
    mean = ((probabilities + other.softmax(dim=-1)) / 2).detach() ** 2
    target = mean / mean.sum(dim=-1, keepdim=True)
    (expected,) = torch.autograd.grad((probabilities - target).square().sum() / 8, logits)
    torch.testing.assert_close(logits.grad, expected)


def test_label_smoothing_is_torchs() -> None:
    x, edges, y, split = problem()
    model = KuramotoGNN(6, 8, 3, time=2.0, heads=2, dropout=0.0, input_dropout=0.0, solver=Solver(steps=4))
    expected = F.cross_entropy(model(x, edges)[split.train], y[split.train], label_smoothing=0.3)
    result = fit(model, x, edges, y, split, config=TrainingConfig(epochs=1, label_smoothing=0.3))
    assert result.history[0].train_loss == pytest.approx(float(expected.detach()), rel=1e-5)


def test_weight_decay_by_group_is_gcniis() -> None:
    """With zero gradients only the decay moves the weights: here of the convolutions alone."""
    x, edges, y, split = problem()
    model = GCNII(6, 8, 2, 3)
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    config = TrainingConfig(
        epochs=1, optimiser="sgd", learning_rate=1e-9, weight_decay=1e8, affine_weight_decay=0.0, clip_norm=1e-9
    )
    fit(model, x, edges, y, split, config=config)
    for name, parameter in model.named_parameters():
        factor = 0.9 if name.startswith("convs.") else 1.0
        torch.testing.assert_close(parameter.detach(), factor * before[name], atol=1e-6, rtol=1e-6)


def test_times_beyond_the_models_own_take_the_same_steps() -> None:
    x, edges, _, _ = problem()
    model = make().eval()
    longer = KuramotoGNN(6, 8, 3, time=6.0, heads=2, solver=Solver(steps=12)).eval()
    longer.load_state_dict(model.state_dict())
    with torch.no_grad():
        states = model.flow(x, edges, save_at=[2.0, 3.3, 6.0]).ys
        expected = longer.flow(x, edges, save_at=[2.0, 3.3, 6.0]).ys
        alone = model.flow(x, edges, save_at=[3.3]).final
    assert torch.equal(states, expected)
    torch.testing.assert_close(alone, states[1], atol=1e-6, rtol=1e-6)


def test_affine_weight_decay_needs_affine_maps() -> None:
    x, edges, y, split = problem()
    with pytest.raises(ValueError, match="affine_weight_decay needs a model with encoder and decoder, got Linear"):
        fit(nn.Linear(6, 3), x, edges, y, split, config=TrainingConfig(affine_weight_decay=0.1))
