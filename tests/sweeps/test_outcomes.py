import math

import pytest
import torch

from kuramotognn.config.resolve import Config, resolve
from kuramotognn.diagnostics import dirichlet_energy, order_parameter
from kuramotognn.runs.run import Task
from kuramotognn.sweeps.outcomes import OUTCOMES, TIMES, accuracy, oversmoothing, timing, trajectory, validation


def small(**settings: object) -> Config:
    base: dict[str, object] = {"training": {"epochs": 2}, "model": {"hidden_channels": 4, "time": 2.0}}
    return resolve({}, {"recommended": False} | base | settings).config


def test_accuracy_leaves_out_what_tuning_splits_say_about_test_nodes() -> None:
    assert 0 <= accuracy(small())["test_accuracy"] <= 1
    assert {name for name in accuracy(small(first_split=1000)) if name.startswith("test")} == {"test_nodes"}


def test_validation_says_nothing_of_test_nodes() -> None:
    assert {name for name in validation(small()) if name.startswith("test")} == {"test_nodes"}


def test_accuracy_is_that_of_a_run() -> None:
    from kuramotognn.training import fit

    config = small(seed=3, first_split=2)
    task = Task.from_config(config)
    result = fit(task.model(), task.x, task.graph, task.y, task.split(2), config=config.training, seed=3)
    assert accuracy(config)["test_accuracy"] == result.test_accuracy


def test_timing_counts_evaluations() -> None:
    result = timing(small(solver={"step_size": 0.5}), epochs=6, passes=4)
    assert result["evaluations"] == 4
    assert 0 < result["evaluation_ms"] < result["epoch_ms"]
    layers = timing(
        resolve({"model.name": "gcn", "model.hidden_channels": 4, "model.num_layers": 3}).config, epochs=6, passes=4
    )
    assert layers["evaluations"] == 3


def test_trajectories_start_at_the_encoder() -> None:
    config = small(training={"epochs": 1, "learning_rate": 1e-12})
    result = trajectory(config)
    assert result["times"] == pytest.approx([2.0 * k / TIMES for k in range(TIMES + 1)])
    for values in result["curves"].values():
        assert len(values) == TIMES + 1
        assert all(math.isfinite(value) for value in values)
    task = Task.from_config(config)
    model = task.model().eval()
    with torch.no_grad():
        start = model.encoder(task.x)  # type: ignore[operator]
    assert result["curves"]["order"][0] == pytest.approx(float(order_parameter(start).abs().mean()), abs=1e-5)


def test_a_model_without_a_flow_has_no_trajectory() -> None:
    with pytest.raises(ValueError, match="gcn has no flow to follow"):
        trajectory(resolve({"model": {"name": "gcn", "hidden_channels": 4}, "training": {"epochs": 1}}).config)


@pytest.mark.parametrize(
    ("model", "depth"), [("kuramotognn", {"time": 2.0}), ("gcn", {"num_layers": 6, "residual": False})]
)
def test_the_report_card_measures_the_last_hidden_state(model: str, depth: dict[str, object]) -> None:
    chosen: dict[str, object] = {"name": model, "hidden_channels": 4, **depth}
    config = small(model=chosen, training={"epochs": 1, "learning_rate": 1e-12})
    result = oversmoothing(config)
    task = Task.from_config(config)
    built = task.model().eval()
    with torch.no_grad():
        if model == "gcn":  # The input of the last layer.
            states: list[torch.Tensor] = []
            built.convs[-1].register_forward_pre_hook(lambda _, inputs: states.append(inputs[0]))  # type: ignore[index]
            built(task.x, task.graph)
            last = states[0]
        else:
            last = built.flow(task.x, task.graph, save_at=[2.0]).ys[-1]  # type: ignore[operator]
    assert result["dirichlet"] == pytest.approx(dirichlet_energy(last, task.graph), rel=1e-4)
    assert {"test_accuracy", "mad", "rayleigh", "effective_rank", "law"} <= result.keys()


def test_measures_by_name() -> None:
    assert set(OUTCOMES) == {"accuracy", "validation", "timing", "trajectory", "oversmoothing", "statistics"}
