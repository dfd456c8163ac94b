import numpy as np
import torch

from kuramotognn.explore.recording import PARTS, record, separating_channels
from tests.explore.oscillators import TIME, nodes_without_edges, uncoupled

X0 = torch.rand(12, 3, generator=torch.Generator().manual_seed(0)) * 3
ALL = torch.arange(12)


def test_order_parameters_are_those_of_uncoupled_oscillators() -> None:
    recording = record(uncoupled(nodes_without_edges(X0)), ALL)
    times = np.array(recording.times)
    x = X0.double().numpy()[None] * (1 + times)[:, None, None]
    r = np.abs(np.exp(1j * x).mean(axis=1))  # [F, d]
    np.testing.assert_allclose(times, np.arange(0, TIME + 0.1, 0.5))
    np.testing.assert_allclose(recording.order.abs().numpy(), r[:, list(recording.channels)].T, atol=1e-6)
    np.testing.assert_allclose(recording.measures["order"], r.mean(axis=1), atol=1e-6)


def test_differences_of_phases_grow_with_time() -> None:
    nodes = torch.tensor([1, 4, 7])
    recording = record(uncoupled(nodes_without_edges(X0)), nodes)
    expected = (X0[nodes] - X0[1])[:, list(recording.channels)]
    for k, t in enumerate(recording.times):
        phases = recording.phases[:, k]
        torch.testing.assert_close(phases - phases[:, :1], (1 + t) * expected.t(), atol=1e-5, rtol=0)


def test_predictions_and_accuracy_are_the_decoder_applied_to_the_states() -> None:
    trained = uncoupled(nodes_without_edges(X0))
    recording = record(trained, ALL)
    linear = trained.model.decoder[-1]
    states = X0[None] * (1 + torch.tensor(recording.times))[:, None, None]
    expected = (states @ linear.weight.t() + linear.bias).argmax(dim=-1)
    assert recording.predictions.equal(expected)
    test = trained.task.split(0).test
    right = (expected == ALL % 2)[:, test].double().mean(dim=1)
    np.testing.assert_allclose(recording.measures["accuracy"], right.tolist())


def test_parts_are_those_of_the_split() -> None:
    trained = uncoupled(nodes_without_edges(X0))
    split, parts = trained.task.split(0), record(trained, ALL).parts
    for name in ("train", "validation", "test"):
        assert {PARTS[part] for part in parts[getattr(split, name)].tolist()} == {name}


def test_channels_are_sorted_by_the_distance_of_classes_on_the_circle() -> None:
    y = torch.tensor([0, 0, 1, 1, -1])
    full_turn, apart, equal = [0.0, 0.0, 2 * torch.pi, 2 * torch.pi], [0.0, 0.1, 3.0, 3.1], [1.0, 1.0, 1.5, 1.5]
    x = torch.tensor([[*full_turn, 3.0], [*apart, 0.0], [*equal, 9.0]]).t()
    assert separating_channels(x, y).tolist() == [1, 2, 0]
