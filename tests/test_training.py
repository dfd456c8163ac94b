from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch_geometric.nn.models import GCN

from kuramotognn import EpochMetrics, Graph, KuramotoGNN, Solver, SolverError, Split, TrainingConfig, fit, predict
from kuramotognn.checkpoints import CheckpointFolder
from kuramotognn.training import OPTIMISERS, _balanced, accuracy

NODES = 60


@pytest.fixture
def problem() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, Split]:
    """Three communities with features that tell them apart."""
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(NODES) % 3
    x = torch.randn(NODES, 6, generator=generator)
    x[torch.arange(NODES), y] += 2.0
    pairs = torch.randint(NODES, (2, 1500), generator=generator)
    edge_index = pairs[:, y[pairs[0]] == y[pairs[1]]][:, :200]
    order = torch.randperm(NODES, generator=generator)
    return x, torch.cat([edge_index, edge_index.flip(0)], 1), y, Split(order[:15], order[15:35], order[35:], "test", 0)


def make_model(**options: object) -> KuramotoGNN:
    torch.manual_seed(0)
    settings = {"time": 2.0, "heads": 2, "input_dropout": 0.0, "dropout": 0.3, "solver": Solver(steps=4)} | options
    return KuramotoGNN(6, 8, 3, **settings)  # type: ignore[arg-type]


def test_learns_and_keeps_the_best_epoch(problem) -> None:
    x, edge_index, y, split = problem
    model, seen = make_model(), []
    config = TrainingConfig(epochs=60, learning_rate=0.05)
    result = fit(model, x, edge_index, y, split, config=config, on_epoch=seen.append)
    assert result.test_accuracy > 0.8
    assert list(result.history) == seen
    assert result.best == max(seen, key=lambda m: (m.validation_accuracy, -m.validation_loss))
    logits = predict(model, x, edge_index)
    assert accuracy(logits, y, split.validation) == result.best.validation_accuracy
    assert accuracy(logits, y, split.test) == result.test_accuracy
    assert result.best.evaluations == 4


def test_ties_are_broken_by_loss_and_first_comes_first() -> None:
    def metrics(accuracy: float, loss: float) -> EpochMetrics:
        return EpochMetrics(1, 0.0, 0.0, loss, accuracy, None, 0)

    assert metrics(0.8, 1.0).better_than(None)
    assert metrics(0.8, 1.0).better_than(metrics(0.7, 0.1))
    assert metrics(0.8, 0.9).better_than(metrics(0.8, 1.0))
    assert not metrics(0.8, 1.0).better_than(metrics(0.8, 1.0))
    assert not metrics(0.7, 0.1).better_than(metrics(0.8, 1.0))


def test_test_nodes_have_no_say(problem) -> None:
    x, edge_index, y, split = problem
    shuffled = y.clone()
    shuffled[split.test] = y[split.test].flip(0)
    first, second = (fit(make_model(), x, edge_index, labels, split).history for labels in (y, shuffled))
    assert first == second


def test_deterministic_per_seed_and_global_generator_untouched(problem) -> None:
    x, edge_index, y, split = problem
    before = torch.get_rng_state()
    runs = []
    for seed in (1, 1, 2):
        model = make_model()
        torch.set_rng_state(before)
        runs.append(fit(model, x, edge_index, y, split, config=TrainingConfig(epochs=5), seed=seed).history)
        assert torch.get_rng_state().equal(before)
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]


def test_patience_stops_early(problem) -> None:
    x, edge_index, y, split = problem
    config = TrainingConfig(epochs=500, patience=4)
    result = fit(make_model(), x, edge_index, y, split, config=config)
    assert len(result.history) == result.best.epoch + 4 < 500


@pytest.mark.parametrize("optimiser", OPTIMISERS)
def test_interrupted_training_goes_on_to_the_same_numbers(problem, optimiser: str, tmp_path: Path) -> None:
    x, edge_index, y, split = problem
    config = TrainingConfig(epochs=12, checkpoint_every=5, optimiser=optimiser)  # type: ignore[arg-type]
    whole = fit(make_model(), x, edge_index, y, split, config=config)

    def stop_at_eight(metrics: EpochMetrics) -> None:
        if metrics.epoch == 8:
            raise KeyboardInterrupt

    folder = CheckpointFolder(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        fit(make_model(), x, edge_index, y, split, config=config, checkpoints=folder, on_epoch=stop_at_eight)
    told: list[EpochMetrics] = []
    resumed = fit(make_model(), x, edge_index, y, split, config=config, checkpoints=folder, on_epoch=told.append)
    assert resumed.history == whole.history == tuple(told)
    assert resumed.test_accuracy == whole.test_accuracy


def test_time_can_be_selected_on_validation(problem) -> None:
    x, edge_index, y, split = problem
    config = TrainingConfig(epochs=10, select_time=True, time_candidates=8)
    model = make_model()
    result = fit(model, x, edge_index, y, split, config=config)
    assert result.best.time is not None
    assert result.best.time in [2.0 * k / 8 for k in range(1, 9)]
    logits = predict(model, x, edge_index, time=result.best.time)
    assert accuracy(logits, y, split.validation) == result.best.validation_accuracy
    assert accuracy(logits, y, split.test) == result.test_accuracy


def test_pyg_models_train_too(problem) -> None:
    x, edge_index, y, split = problem
    torch.manual_seed(0)
    model = GCN(6, 16, 2, 3)
    assert fit(model, x, edge_index, y, split, config=TrainingConfig(epochs=20)).test_accuracy > 0.8
    with pytest.raises(ValueError, match="select_time needs a model with a flow, got GCN"):
        fit(model, x, edge_index, y, split, config=TrainingConfig(select_time=True))
    with pytest.raises(ValueError, match="time needs a model with a flow, got GCN"):
        predict(model, x, edge_index, time=1.0)


def test_features_that_are_not_finite_are_refused(problem) -> None:
    x, edge_index, y, split = problem
    x[4, 2] = float("nan")
    with pytest.raises(ValueError, match="feature 2 of node 4 is nan"):
        fit(make_model(), x, edge_index, y, split)


def test_adjoint_training_and_its_failure(problem) -> None:
    x, edge_index, y, split = problem
    config = TrainingConfig(epochs=2)
    solver = Solver("dopri5", rtol=1e-3, atol=1e-3, adjoint=True)
    assert fit(make_model(solver=solver), x, edge_index, y, split, config=config).best.evaluations > 4
    forward = fit(make_model(solver=solver), x, edge_index, y, split, config=TrainingConfig(epochs=1)).best.evaluations
    capped = Solver("dopri5", rtol=1e-3, atol=1e-3, adjoint=True, max_evaluations=forward + 2)
    with pytest.raises(SolverError, match="max_evaluations"):
        fit(make_model(solver=capped), x, edge_index, y, split, config=config)


def test_edge_index_and_graph_are_the_same(problem) -> None:
    x, edge_index, y, split = problem
    config = TrainingConfig(epochs=3)
    graph = Graph.from_edge_index(edge_index, NODES)
    first, second = (fit(make_model(), x, edges, y, split, config=config).history for edges in (edge_index, graph))
    assert first == second


def test_balanced_classes_add_the_same_to_the_loss() -> None:
    """The weighted mean of torch is over weights: each class's mean loss counts alike."""
    y = torch.tensor([0] * 6 + [1] * 3 + [3])
    logits = torch.randn(10, 4, generator=torch.Generator().manual_seed(0))
    weighted = F.cross_entropy(logits, y, _balanced(y, 4))
    means = [F.cross_entropy(logits[y == label], y[y == label]) for label in (0, 1, 3)]
    torch.testing.assert_close(weighted, torch.stack(means).mean())


def test_the_last_class_may_have_no_training_node() -> None:
    assert _balanced(torch.tensor([0, 0, 1]), 3).tolist() == pytest.approx([0.75, 1.5, 0.0])
