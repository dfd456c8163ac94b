"""Times whichever kuramotognn is on the path: one line of input is one turn, answered with the seconds it took.

Two of these processes take turns, one with the kernels at hand and one with those of an older commit: see
``benchmarks.older``. Lines are ``flow GRAPH``, ``epoch`` and ``simulate KIND``.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from statistics import median

import numpy as np
import torch
import torch.nn.functional as F

from benchmarks import workloads
from kuramotognn import KuramotoGNN, Solver, integrate, load_dataset, random_per_class
from kuramotognn.graph import Graph

try:
    from kuramotognn.fields import CoupledDynamics, Couplings
except ImportError:  # the older commit
    from kuramotognn.optim import Adam

    from kuramotognn import KuramotoDynamics
    from kuramotognn.training import ModeSwitch

    def dynamics(work: workloads.Workload, a: torch.Tensor, omega: torch.Tensor) -> object:
        """The right-hand side."""
        return KuramotoDynamics(work.graph.pattern, a, omega, 1.0)

    def training_parts(model: torch.nn.Module) -> tuple[Callable[[bool], object], torch.optim.Optimizer]:
        """The switch between training and evaluation and the optimiser, as ``fit`` had them."""
        return ModeSwitch(model), Adam(list(model.parameters()), lr=0.01, weight_decay=0.05)
else:

    def dynamics(work: workloads.Workload, a: torch.Tensor, omega: torch.Tensor) -> object:
        """The right-hand side."""
        return CoupledDynamics(Couplings(work.graph.pattern, a), omega, 1.0)

    def training_parts(model: torch.nn.Module) -> tuple[Callable[[bool], object], torch.optim.Optimizer]:
        """The switch between training and evaluation and the optimiser, as ``fit`` has them."""
        return model.train, torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=0.05, fused=True)


def flow(name: str) -> Callable[[], object]:
    """Forward and backward of a workload's flow."""
    work = workloads.load(name)
    solver = Solver("euler", steps=work.steps)

    def run() -> object:
        a, x, omega = (tensor.detach().requires_grad_() for tensor in (work.a, work.x, work.x))
        y = integrate(dynamics(work, a, omega), x, work.time, solver).final
        return torch.autograd.grad(y, (a, x, omega), work.upstream)

    return run


def epoch(_: str) -> Callable[[], object]:
    """A training epoch on Cora as ``fit`` does it."""
    cora = load_dataset("cora").largest_component()
    graph, split = Graph.from_edge_index(cora.edge_index, cora.num_nodes), random_per_class(cora.y, 0)
    torch.manual_seed(0)
    solver = Solver("euler", steps=16)
    model = KuramotoGNN(cora.num_features, 64, 7, time=8.0, input_dropout=0.5, dropout=0.5, solver=solver)
    set_training, optimiser = training_parts(model)

    def run() -> object:
        set_training(True)
        optimiser.zero_grad()
        F.cross_entropy(model(cora.x, graph, nodes=split.train), cora.y[split.train]).backward()
        optimiser.step()
        set_training(False)
        with torch.no_grad():
            return model(cora.x, graph)

    return run


def simulation(kind: str) -> Callable[[], object]:
    """A hundred thousand oscillators in time, all to all or on a random graph."""
    from kuramotognn.simulate import Oscillators, random_network, simulate

    rng, n = np.random.default_rng(0), 100_000
    graph = random_network(n, 10, rng) if kind == "graph" else None
    model = Oscillators(coupling=3.0, frequencies=rng.normal(size=n), graph=graph)
    start = rng.uniform(-np.pi, np.pi, n)
    return lambda: simulate(model, 0.5, step=0.05, samples=10, initial_phases=start)


KINDS = {"flow": (flow, 3), "epoch": (epoch, 15), "simulate": (simulation, 3)}
"""What makes a run, and how often it is run in one turn, whose median counts."""


def main() -> None:
    """Answer until the input ends."""
    runs: dict[str, Callable[[], object]] = {}
    for line in sys.stdin:
        kind, _, what = line.strip().partition(" ")
        make, repeats = KINDS[kind]
        if line not in runs:
            runs[line] = make(what)
            runs[line]()
            runs[line]()
        seconds = []
        for _ in range(repeats):
            start = time.perf_counter()
            runs[line]()
            seconds.append(time.perf_counter() - start)
        print(median(seconds), flush=True)


if __name__ == "__main__":
    main()
