"""Memory of state and tape per rank."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from kuramotognn import Graph, KuramotoGNN, Solver
from kuramotognn.kernels.memory import pool
from kuramotognn.parallel import distribute
from tests.parallel.processes import Processes

NODES, CHANNELS, STEPS = 20_000, 64, 40


def peak_of_a_pass() -> int:
    """Bytes that a forward and backward pass takes at most beyond what was there before."""
    here = torch.arange(NODES)
    graph = Graph.from_edge_index(torch.stack([here, here.roll(1)]), NODES)
    torch.manual_seed(0)
    model = KuramotoGNN(8, CHANNELS, 3, time=4.0, solver=Solver(steps=STEPS))
    if dist.get_world_size() > 1:
        distribute(model)
    x = torch.randn(NODES, 8)
    model(x, graph, nodes=here[:10]).sum().backward()  # Loads what is loaded once.
    pool.free.clear()
    before = _bytes("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # Resets VmHWM.
    model(x, graph, nodes=here[:10]).sum().backward()
    return _bytes("VmHWM") - before


def _bytes(key: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key))


@pytest.mark.slow
def test_state_and_tape_fall_as_one_over_the_ranks(two: Processes, four: Processes, tmp_path: Path) -> None:
    one = Processes(1, tmp_path)
    whole = one(peak_of_a_pass)[0]
    one.end()
    assert whole > NODES * CHANNELS * 4 * 2 * STEPS  # At least the tape: sines and cosines of each step.
    for ranks in (two, four):
        for found in ranks(peak_of_a_pass):
            assert found < 1.15 * whole / ranks.size
