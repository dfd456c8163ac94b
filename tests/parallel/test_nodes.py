"""Nodes over ranks: the numbers of one process."""

from __future__ import annotations

from typing import Any

import pytest

from tests.parallel.processes import Processes
from tests.parallel.test_channels import check

CASES: dict[str, tuple[Any, ...]] = {
    "residual": ("kuramotognn-res", {}, {}, True),
    "time-varying": (
        "kuramotognn-tv",
        {"encoder": "mlp", "time": 2.0},
        {"select_time": True, "time_candidates": 3},
        False,
    ),
    "adaptive": ("kuramotognn-adaptive", {}, {}, True),
    "kuramoto": ("kuramotognn", {}, {}, True, "nodes"),
    "signed": ("kuramotognn-signed", {}, {}, True, "nodes"),
    "lag": ("kuramotognn-lag", {}, {}, True, "nodes"),
    "delay": ("kuramotognn-delay", {}, {}, True, "nodes"),
    "second order": ("kuramotognn-second-order", {}, {}, True, "nodes"),
    "symmetric": ("grand-l", {"adjacency": "symmetric"}, {}, True, "nodes"),
    "grand-nl": ("grand-nl", {}, {"consistency": 1.0, "consistency_ramp": 0}, True),
    "graphcon": ("graphcon", {"step_dropout": 0.2, "source": "mixed"}, {}, True),
    "graphcon-res": ("graphcon-res", {"adjacency": "attention"}, {}, True),
    "gcn": ("gcn", {"residual": True}, {}, True),
    "gat": ("gat", {"heads": 2}, {}, True),
    "graphsage": ("graphsage", {"norm": "layer"}, {}, False),
    "gcnii": ("gcnii", {"num_layers": 4}, {}, True),
}


@pytest.mark.parametrize("case", CASES)
def test_two_ranks_train_as_one(two: Processes, case: str) -> None:
    check(two, CASES[case])


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_four_ranks_train_as_one(four: Processes, case: str) -> None:
    check(four, CASES[case])
