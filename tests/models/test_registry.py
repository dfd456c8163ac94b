"""Every model through everything that a model must be able to do."""

import inspect
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data

from kuramotognn import (
    GRAND,
    MODELS,
    Attention,
    DampedOscillators,
    Diffusion,
    Field,
    Graph,
    GraphCON,
    KuramotoConv,
    KuramotoGNN,
    PhaseField,
    Solver,
    Split,
    TrainingConfig,
    TrainResult,
    fit,
    predict,
)
from kuramotognn.checkpoints import CheckpointFolder, read_tensors, write_tensors
from kuramotognn.config.model_settings import default_solver, settings_class
from kuramotognn.features import SparseFeatures, compact_features
from kuramotognn.models.continuous import GraphFlow
from kuramotognn.models.lookup import find_model
from kuramotognn.train_result import EpochMetrics

NODES, FEATURES, CLASSES = 24, 40, 3
SOLVER = Solver("euler", step_size=0.25)
SMALL = {"hidden_channels": 8, "time": 1.0, "heads": 2, "num_layers": 3}


def make(name: str, seed: int = 0) -> nn.Module:
    known = settings_class(name).model_fields
    settings = settings_class(name)(name=name, **{key: value for key, value in SMALL.items() if key in known})
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return settings.build(FEATURES, CLASSES, SOLVER)


def features() -> Tensor:
    """A bag of words, one entry in twenty."""
    generator = torch.Generator().manual_seed(1)
    return (torch.rand(NODES, FEATURES, generator=generator) < 0.05).float()


def edges() -> tuple[Tensor, Tensor]:
    """Weighted edges among all nodes but the last two, which stay isolated."""
    generator = torch.Generator().manual_seed(2)
    ends = torch.randint(NODES - 2, (2, 60), generator=generator)
    both = torch.cat([ends, ends.flip(0)], dim=1)
    weight = torch.rand(60, generator=generator) + 0.5
    return both, torch.cat([weight, weight])


def labels() -> Tensor:
    return torch.randint(CLASSES, (NODES,), generator=torch.Generator().manual_seed(3))


def split() -> Split:
    nodes = torch.arange(NODES)
    return Split(nodes[:9], nodes[9:16], nodes[16:], "test", 0)


def graph() -> Graph:
    edge_index, weight = edges()
    return Graph.from_edge_index(edge_index, NODES, weight)


def train(model: nn.Module, folder: Path | None = None, stop_at: int | None = None, epochs: int = 6) -> TrainResult:
    def watch(metrics: EpochMetrics) -> None:
        if metrics.epoch == stop_at:
            raise KeyboardInterrupt

    config = TrainingConfig(epochs=epochs, checkpoint_every=2)
    checkpoints = CheckpointFolder(folder) if folder else None
    return fit(model, features(), graph(), labels(), split(), config=config, checkpoints=checkpoints, on_epoch=watch)


def knowing(name: str) -> nn.Module:
    """An untrained model that knows its training nodes, if it needs them, without dropout."""
    model = make(name)
    for module in model.modules():
        if hasattr(module, "set_training_nodes"):
            module.set_training_nodes(split().train)
    return model.eval()


@pytest.mark.parametrize("name", MODELS)
def test_settings_have_the_defaults_of_the_constructor(name: str) -> None:
    """The same weights, dropout masks and outputs; only the sizes have to be given to a constructor."""
    info, settings = MODELS[name], settings_class(name)()
    sizes = {key: getattr(settings, key) for key in ("hidden_channels", "num_layers") if hasattr(settings, key)}
    outputs = []
    for by_settings in (True, False):
        torch.manual_seed(0)
        if by_settings:
            model = settings.build(FEATURES, CLASSES, default_solver(info))
        else:
            channels = {"channels": sizes["hidden_channels"]} if name == "kuramotognn-res" else {}
            equation = {} if info.equation is None else {"equation": info.equation(**channels)}
            model = info.make(in_channels=FEATURES, out_channels=CLASSES, **sizes, **info.fixed, **equation)
        for module in model.modules():
            if hasattr(module, "set_training_nodes"):
                module.set_training_nodes(split().train)
        outputs.append(model(features(), graph()))
    assert torch.equal(*outputs)


@pytest.mark.parametrize(
    ("model", "part", "prefix"),
    [
        (KuramotoGNN, PhaseField, ""),
        (KuramotoConv, PhaseField, ""),
        (GRAND, Diffusion, ""),
        (GraphCON, DampedOscillators, ""),
        (GraphFlow, Attention, "attention_"),
        (GraphFlow, Field, ""),
    ],
)
def test_a_model_has_the_defaults_of_its_parts(model: type, part: type, prefix: str) -> None:
    ours, parts = (inspect.signature(each).parameters for each in (model, part))
    shared = [(name, prefix * (prefix + name in ours) + name) for name in parts]
    shared = [(name, own) for name, own in shared if own in ours and parts[name].default is not inspect.Parameter.empty]
    assert shared
    for name, own in shared:
        if name != "activation":  # A model takes its name, a field the function.
            assert ours[own].default == parts[name].default, name


@pytest.mark.parametrize("name", MODELS)
def test_fit_save_load_predict(name: str, tmp_path: Path) -> None:
    model = make(name)
    result = train(model)
    assert len(result.history) == 6
    logits = predict(model, features(), graph())
    assert logits.shape == (NODES, CLASSES)
    assert logits.isfinite().all()
    write_tensors(tmp_path / "model.safetensors", model.state_dict(), {})
    other = make(name, seed=9)
    other.load_state_dict(read_tensors(tmp_path / "model.safetensors")[0])
    assert torch.equal(predict(other, features(), graph()), logits)


@pytest.mark.parametrize("name", MODELS)
def test_every_parameter_is_trained(name: str) -> None:
    model = make(name)
    before = {key: value.clone() for key, value in model.named_parameters()}
    model.train()
    train(model)
    untouched = [key for key, value in model.named_parameters() if value.grad is None]
    assert untouched == []
    assert any(not torch.equal(value, before[key]) for key, value in model.named_parameters())


@pytest.mark.parametrize("name", MODELS)
def test_an_interrupted_training_resumes_to_the_same_metrics(name: str, tmp_path: Path) -> None:
    whole = train(make(name))
    with pytest.raises(KeyboardInterrupt):
        train(make(name), tmp_path, stop_at=5)
    resumed = train(make(name, seed=5), tmp_path)
    assert resumed.history == whole.history
    assert resumed.test_accuracy == whole.test_accuracy


@pytest.mark.parametrize("name", MODELS)
def test_sparse_and_dense_features_give_the_same(name: str) -> None:
    model, x = knowing(name), features()
    sparse = compact_features(x)
    assert isinstance(sparse, SparseFeatures)
    dense = model(x, graph())
    torch.testing.assert_close(model(sparse, graph()), dense, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(model(x.to_sparse(), graph()), dense, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_edges_as_in_pyg_and_some_nodes_only(name: str) -> None:
    model, (edge_index, weight) = knowing(name), edges()
    every = model(features(), graph())
    torch.testing.assert_close(model(features(), edge_index, weight), every)
    some = torch.tensor([5, 0, NODES - 1])
    torch.testing.assert_close(model(features(), edge_index, weight, nodes=some), every[some])


@pytest.mark.parametrize("name", MODELS)
def test_weights_matter_and_weight_zero_is_no_edge(name: str) -> None:
    model, (edge_index, weight) = knowing(name), edges()
    whole = model(features(), edge_index, weight)
    assert not torch.allclose(model(features(), edge_index), whole, atol=1e-6)
    without = weight.clone()
    without[[3, 63]] = 0
    kept = without > 0
    torch.testing.assert_close(
        model(features(), edge_index, without), model(features(), edge_index[:, kept], without[kept])
    )


@pytest.mark.parametrize("name", MODELS)
def test_a_batch_of_two_graphs_is_the_two_graphs(name: str) -> None:
    model, (edge_index, weight), x = knowing(name), edges(), features()
    one = Data(x=x, edge_index=edge_index, edge_weight=weight)
    two = Data(x=x.flip(0), edge_index=edge_index[:, :30], edge_weight=weight[:30])
    batch = Batch.from_data_list([one, two])
    together = model(batch.x, batch.edge_index, batch.edge_weight)
    if name == "grand++":
        return  # Its sources are the training nodes of one graph.
    apart = [model(data.x, data.edge_index, data.edge_weight) for data in (one, two)]
    torch.testing.assert_close(together, torch.cat(apart), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_an_isolated_node_is_independent_of_the_others(name: str) -> None:
    model, x = knowing(name), features()
    quiet = torch.zeros_like(x)
    quiet[-2:] = x[-2:]
    if name == "grand++":
        return  # An isolated source depends on the mean of all sources.
    torch.testing.assert_close(model(quiet, graph())[-2:], model(x, graph())[-2:], atol=1e-5, rtol=1e-5)
    nobody = Graph.from_edge_index(torch.empty(2, 0, dtype=torch.long), NODES)
    assert model(x, nobody).isfinite().all()


@pytest.mark.parametrize("name", MODELS)
def test_training_is_the_same_from_run_to_run(name: str) -> None:
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        first, second = (train(make(name), epochs=2).history for _ in range(2))
    finally:
        torch.set_num_threads(threads)
    assert first == second


def test_facts_are_told() -> None:
    for name, info in MODELS.items():
        assert info.name == name == settings_class(name)(name=name).name
        for fact in (info.formula, info.reference, info.cost, info.use, info.fused, info.title):
            assert fact
            assert "\n" not in fact
        for key, field in settings_class(name).model_fields.items():
            assert field.description, (name, key)


def test_an_unknown_model_is_refused() -> None:
    with pytest.raises(ValueError, match=r"unknown model 'grand-1'; did you mean 'grand-l'\?; known: kuramotognn, "):
        find_model("grand-1")
