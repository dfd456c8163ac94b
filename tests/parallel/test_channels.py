"""Channels over ranks: the numbers of one process."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.distributed as dist

from kuramotognn.parallel import distribute
from tests.parallel import cases
from tests.parallel.processes import Processes

CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any], bool]] = {
    "default": ("kuramotognn", {}, {"optimiser": "adam", "learning_rate": 0.01, "clip_norm": None}, True),
    "dense mlp": ("kuramotognn", {"encoder": "mlp", "decoder_activation": "relu"}, {"clip_norm": 0.1}, False),
    "select time": ("kuramotognn", {}, {"select_time": True, "time_candidates": 3}, True),
    "consistency": ("kuramotognn", {}, {"consistency": 1.0, "consistency_ramp": 0, "metric": "macro-f1"}, True),
    "odd widths": ("kuramotognn", {"hidden_channels": 9, "heads": 3, "attention_channels": 15}, {}, True),
    "one head": ("kuramotognn", {"heads": 1}, {}, True),
    "pearson": ("kuramotognn", {"attention_score": "pearson", "attention_channels": 16}, {}, True),
    "exp-kernel": ("kuramotognn", {"attention_score": "exp-kernel", "attention_normalise": "column"}, {}, True),
    "squareplus": ("kuramotognn", {"attention_score": "cosine", "attention_squash": "squareplus"}, {}, True),
    "detached": ("kuramotognn", {"frequencies": "detached", "phase_range": (0.0, 3.0)}, {}, True),
    "local order": ("kuramotognn", {"interaction": "local-order"}, {}, True),
    "signed": ("kuramotognn-signed", {}, {}, True),
    "lag": ("kuramotognn-lag", {}, {}, True),
    "delay": ("kuramotognn-delay", {}, {}, True),
    "second order": ("kuramotognn-second-order", {}, {}, True),
    "symmetric": ("grand-l", {"adjacency": "symmetric"}, {}, True),
    "grand-l": ("grand-l", {}, {"class_weights": "balanced", "label_smoothing": 0.1}, True),
    "grand-l-no-x0": ("grand-l-no-x0", {}, {}, True),
    "grand++": ("grand++", {}, {}, True),
}


@pytest.mark.parametrize("case", CASES)
def test_two_ranks_train_as_one(two: Processes, case: str) -> None:
    check(two, CASES[case])


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_four_ranks_train_as_one(four: Processes, case: str) -> None:
    check(four, CASES[case])


def states(name: str) -> torch.Tensor:
    """All states along a flow with constant couplings: nothing but the flow is computed otherwise over ranks."""
    model = cases.make_model(name, adjacency="symmetric", hidden_channels=24).eval()
    if dist.is_initialized():
        distribute(model, how="channels")
    with torch.no_grad():
        found: torch.Tensor = model.flow(cases.small_features(sparse=True), cases.small_graph(), save_at=[0.5, 1.0]).ys
    return found


@pytest.mark.parametrize("name", ["kuramotognn", "kuramotognn-lag", "grand-l"])
def test_the_flow_has_the_bits_of_one_process(two: Processes, name: str) -> None:
    for found in two(states, name):
        assert torch.equal(found, states(name))


def check(processes: Processes, case: tuple[Any, ...]) -> None:
    one = cases.train(*case)
    for found in processes(cases.train, *case):
        for key, value in one["parameters"].items():
            assert_near(found["parameters"][key], value, key)
        assert_near(found["logits"], one["logits"], "logits")
        assert len(found["history"]) == len(one["history"])


def assert_near(found: torch.Tensor, expected: torch.Tensor, what: str) -> None:
    distance, norm = (float(each.double().norm()) for each in (found.double() - expected, expected))
    assert distance <= 1e-6 * max(norm, 1.0), f"{what}: {distance} of {norm}"  # Some parameters start at zero.
