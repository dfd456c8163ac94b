"""Nodes over ranks: the numbers of one process."""

from __future__ import annotations

from typing import Any

import pytest

from kuramotognn.parallel import distribute
from kuramotognn.partition import metis_parts
from tests.parallel import cases
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


def description(name: str) -> str:
    model: Any = distribute(cases.make_model(name))
    described: str = model.distributed.describe(cases.small_graph())
    return described


def test_cut_and_traffic_are_counted(two: Processes) -> None:
    graph = cases.small_graph()
    part = metis_parts(graph.pattern, 2).tolist()
    cut = [(part[i], j) for j, i in graph.edge_index.t().tolist() if part[i] != part[j]]
    expected = f"{len(cut)} of {graph.num_edges} edges cut, {len(set(cut))} rows"
    for name, exchanged in (
        ("kuramotognn-res", f"{expected} ({len(set(cut)) * 8 * 4 / 1e6:.2f} MB) exchanged at each evaluation"),
        ("gcn", f"{expected} exchanged in each layer"),
    ):
        for found in two(description, name):
            assert found.endswith(exchanged)
