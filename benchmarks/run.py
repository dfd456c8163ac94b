"""Measure the fused engine against what others run: ``python -m benchmarks.run [section …]``.

Times in one process, interleaved, medians over repeats, ratios with their spread, and verifies parity on what it timed:
without it there is no report. Writes ``benchmarks/results/<section>.json`` and ``benchmarks/results/README.md``.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks import older, peers, roofline, workloads
from benchmarks.report import write_report
from benchmarks.timing import interleaved, once
from benchmarks.workloads import STEP, Workload
from kuramotognn import GCN, GRAND, GraphCON, KuramotoGNN, Solver, integrate, load_dataset, random_per_class
from kuramotognn.fields import CoupledDynamics, Couplings
from kuramotognn.graph import Graph
from kuramotognn.kernels import use_backend
from kuramotognn.kernels.pattern_layout import layout
from kuramotognn.runs.provenance import provenance

RESULTS = Path(__file__).parent / "results"
REPEATS = {"cora": 9, "pubmed": 3, "pubmed, T = 8": 1, "computers": 3}
"""Turns of the flow section, 2 unless said; the larger graphs keep the peers busy for minutes."""
BRIEF = 250_000_000
"""Edges × channels × steps up to which peers are warmed up and a float64 reference is computed."""


def ours(work: Workload, a: Tensor, x: Tensor, omega: Tensor, **options: object) -> Tensor:
    """The flow by this library."""
    solver = Solver("euler", steps=work.steps, **options)
    return integrate(CoupledDynamics(Couplings(work.graph.pattern, a), omega, 1.0), x, work.time, solver).final


def forward_and_backward(work: Workload, flow: Callable[[Tensor, Tensor, Tensor], Tensor]) -> tuple[Tensor, ...]:
    """State and gradients of couplings, initial phases and frequencies."""
    a, x, omega = (tensor.detach().requires_grad_() for tensor in (work.a, work.x, work.x))
    y = flow(a, x, omega)
    return y.detach(), *torch.autograd.grad(y, (a, x, omega), work.upstream)


def candidates(work: Workload) -> dict[str, Callable[[], tuple[Tensor, ...]]]:
    """Forward and backward of the same flow, by us and by the peers."""

    def by_torch(a: Tensor, x: Tensor, omega: Tensor) -> Tensor:
        with use_backend("torch"):
            return ours(work, a, x, omega)

    def peer(make_field: Callable[[Graph, Tensor], peers.FieldFunction]) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
        return lambda a, x, omega: peers.flow(make_field(work.graph, a), x, omega, work.time)

    flows = {
        "fused": lambda a, x, omega: ours(work, a, x, omega),
        "per-edge": peer(peers.per_edge),
        "three products": peer(peers.three_products),
        "torch path": by_torch,
    }
    return {name: lambda flow=flow: forward_and_backward(work, flow) for name, flow in flows.items()}


def in_float64(work: Workload) -> Workload:
    """The same flow in double precision."""
    a, x, upstream = (tensor.double() for tensor in (work.a, work.x, work.upstream))
    return Workload(work.name, work.graph, work.time, a, x, upstream)


def error(mine: tuple[Tensor, ...], reference: tuple[Tensor, ...]) -> float:
    """Largest difference of the state and of each gradient, relative to the largest number of the reference."""
    pairs = zip(mine, reference, strict=True)
    return max(float((own.double() - exact.double()).abs().max() / exact.abs().max()) for own, exact in pairs)


def check_parity(work: Workload, results: dict[str, tuple[Tensor, ...]]) -> dict[str, object]:
    """Errors of the exact candidates against the per-edge definition, in float64 where it is affordable.

    Float32 itself is far from float64 after many steps on a sensitive flow; what must hold is 1e-4, or no more than
    twice the error that the per-edge definition makes in float32.
    """
    if _effort(work) <= BRIEF:
        reference, against = candidates(in_float64(work))["per-edge"](), "float64"
    else:
        reference, against = results["per-edge"], "per-edge in float32"
    errors = {name: error(results[name], reference) for name in ("fused", "per-edge", "torch path")}
    for name in ("fused", "torch path"):
        bound = max(1e-4, 2 * errors["per-edge"])
        assert errors[name] <= bound, f"{work.name}: {name} differs from {against} by {errors[name]:.1e} > {bound:.1e}"
    return {"against": against, "errors": errors}


def _effort(work: Workload) -> int:
    return work.graph.num_edges * work.x.size(1) * work.steps


def flows() -> dict:
    """Forward + backward of the flow: the numbers that the library promises."""
    out = {}
    for name in workloads.available():
        work = workloads.load(name)
        if name == "ogbn-arxiv":
            work = work.shortened(0.2)  # Per-edge messages of ten steps do not fit into 24 GB.
        out[name] = _flow(name, work)
    if "pubmed" in out:
        # At the end: what comes after a peer that fills all memory finds pages that a virtual machine has at hand.
        deep = "pubmed, T = 8"
        out[deep] = _flow(deep, workloads.load("pubmed").shortened(8.0))
    return out


def _flow(name: str, work: Workload) -> dict:
    runs = candidates(work)
    runs["fused"]()
    results: dict[str, tuple[Tensor, ...]] = {}

    def remembering(key: str) -> Callable[[], None]:
        def run() -> None:
            results[key] = runs[key]()

        return run

    again = {key: remembering(key) for key in runs}
    timings = interleaved(again, REPEATS.get(name, 2), quick={"fused": 3}, warm=_effort(work) > BRIEF)
    out = work.describe() | {"parity": check_parity(work, results), "timings": timings}
    tell(name, timings)
    return out


def forwards() -> dict:
    """Forward without a gradient, and one right-hand side beside the roofline."""
    peak, bandwidth = roofline.fma_peak(), roofline.copy_bandwidth()
    out: dict = {"fma_peak": peak, "copy_bandwidth": bandwidth, "graphs": {}}
    for name in workloads.available():
        work = workloads.load(name)
        per_edge, products = peers.per_edge(work.graph, work.a), peers.three_products(work.graph, work.a)
        dynamics = CoupledDynamics(Couplings(work.graph.pattern, work.a), work.x, 1.0)
        few, repeats = {"ogbn-arxiv": (2, 1), "computers": (4, 2)}.get(name, (10, 3))
        large, short = name in ("ogbn-arxiv", "computers"), work.shortened(few * STEP)
        with torch.no_grad():
            if large:  # There only ours is warmed up: peers ask for fresh memory each time.
                dynamics(0.0, work.x)
                ours(short, work.a, work.x, work.x)
            field = interleaved(
                {
                    "fused": lambda dynamics=dynamics, work=work: dynamics(0.0, work.x),
                    "per-edge": lambda per_edge=per_edge, work=work: work.x + per_edge(work.x),
                    "three products": lambda products=products, work=work: work.x + products(work.x),
                },
                repeats,
                quick=dict.fromkeys(("fused", "per-edge", "three products"), 1 if large else 5),
                warm=large,
            )
            stepping = interleaved(
                {
                    "fused": lambda work=short: ours(work, work.a, work.x, work.x),
                    "per-edge": lambda f=per_edge, work=short: peers.flow(f, work.x, work.x, work.time),
                    "three products": lambda f=products, work=short: peers.flow(f, work.x, work.x, work.time),
                },
                repeats,
                quick={"fused": 3},
                warm=large,
            )
        limit = roofline.bound(work, peak, bandwidth)
        per_step = stepping["fused"]["seconds"] / few
        out["graphs"][name] = work.describe() | {
            "field": field,
            "forward": stepping,
            "forward_steps": few,
            "roofline": limit,
            "sparse_product": roofline.sparse_product(work),
            "roofline_share_of_field": limit["seconds"] / field["fused"]["seconds"],
            "roofline_share_of_step": limit["seconds"] / per_step,
        }
        tell(name, field)
    return out


def epochs() -> dict:
    """A whole training epoch on Cora: encoder, attention, flow, decoder, optimiser, evaluation."""
    cora = load_dataset("cora").largest_component()
    graph = Graph.from_edge_index(cora.edge_index, cora.num_nodes)
    split = random_per_class(cora.y, 0)
    classes = cora.y[split.train]
    dense = cora.x.to_dense()
    torch.manual_seed(0)
    model = KuramotoGNN(
        cora.num_features, 64, 7, time=8.0, input_dropout=0.5, dropout=0.5, solver=Solver("euler", steps=16)
    )
    peer = {
        f"{name}, {kind} encoder": peers.PeerModel(model, make_field, 0.5, kind == "dense")
        for name, make_field in (("per-edge", peers.per_edge), ("three products", peers.three_products))
        for kind in ("our", "dense")
    }

    def epoch(network: torch.nn.Module, x: object, **options: object) -> Callable[[], None]:
        optimiser = torch.optim.Adam(network.parameters(), lr=0.01, weight_decay=0.05, fused=True)

        def run() -> None:  # As `fit` does it.
            network.train()
            optimiser.zero_grad()
            logits = network(x, graph, **options)
            F.cross_entropy(logits if options else logits[split.train], classes).backward()
            optimiser.step()
            network.eval()
            with torch.no_grad():
                network(x, graph)

        return run

    work = Workload("cora", graph, 8.0, *_settled(model, cora.x, graph))

    def flow_alone() -> None:
        a, x = work.a.detach().requires_grad_(), work.x.detach().requires_grad_()
        solver = Solver("euler", steps=16)
        y = integrate(CoupledDynamics(Couplings(graph.pattern, a), x, 1.0), x, 8.0, solver).final
        torch.autograd.grad(y, (a, x), work.upstream)

    runs = {"fused": epoch(model, cora.x, nodes=split.train), "its flow alone": flow_alone}
    runs |= {name: epoch(network, dense if "dense" in name else cora.x) for name, network in peer.items()}
    timings = interleaved(runs, 11, quick={"fused": 15, "its flow alone": 15})
    tell("epoch", timings)
    return {"nodes": cora.num_nodes, "channels": 64, "steps": 16, "timings": timings}


def edges() -> dict:
    """An ``edge_index`` given at every call, beside a ``Graph`` built once: forward + backward on Cora."""
    cora = load_dataset("cora").largest_component()
    graph = Graph.from_edge_index(cora.edge_index, cora.num_nodes)
    torch.manual_seed(0)
    sizes = (cora.num_features, 64, cora.num_classes)
    models = {"KuramotoGNN": KuramotoGNN(*sizes), "GRAND-l": GRAND(*sizes), "GraphCON": GraphCON(*sizes)}
    models["GCN"] = GCN(cora.num_features, 64, 2, cora.num_classes)
    out = {}
    for name, model in models.items():
        model.eval()  # Without dropout both ways must give the same bits.

        def gradients(given: object, model: torch.nn.Module = model) -> tuple[Tensor, ...]:
            logits = model(cora.x, given)
            return logits.detach(), *torch.autograd.grad(logits.square().sum(), list(model.parameters()))

        pairs = zip(gradients(graph), gradients(cora.edge_index), strict=True)
        assert all(torch.equal(first, second) for first, second in pairs), f"{name}: a Graph gives other numbers"
        runs = {"Graph": partial(gradients, graph), "edge_index": partial(gradients, cora.edge_index)}
        out[name] = interleaved(runs, 11, quick=dict.fromkeys(runs, 15), warm=True)
        tell(name, out[name])
    return out


def _settled(model: KuramotoGNN, x: object, graph: Graph) -> tuple[Tensor, Tensor, Tensor]:
    with torch.no_grad():
        x0 = model.encoder(x)
        return model.field.adjacency(x0, graph), x0, torch.randn_like(x0)


def depth() -> dict:
    """A thousand steps on PubMed: checkpoints bound the memory; what do they cost?"""
    if "pubmed" not in workloads.available():
        return {}
    work = workloads.load("pubmed")
    hundred = work.shortened(10.0)

    def train(memory: int) -> Callable[[], object]:
        return lambda: forward_and_backward(hundred, lambda a, x, o: ours(hundred, a, x, o, memory=memory))

    kept = {"everything kept": train(1 << 40)}
    timings = interleaved(kept | {"checkpoints": train(1 << 30)}, 11)
    least = "checkpoints, least memory"
    timings[least] = interleaved(kept | {least: train(1)}, 3)[least]
    tell("depth, 100 steps", timings)
    return {"hundred_steps": timings, "thousand_steps": _thousand_steps()}


def _thousand_steps() -> dict[str, object]:
    """In a process of its own, so that its peak memory is its own: once by themselves, then beside what is kept.

    That is fifty steps twenty times: the memory of more steps and that of a thousand would push each other out.
    """
    import subprocess

    code = """
from benchmarks import run, workloads
from benchmarks.timing import interleaved, memory_watch, once

pubmed = workloads.load("pubmed")

def train(time, **options):
    work = pubmed.shortened(time)
    return lambda: run.forward_and_backward(work, lambda a, x, o: run.ours(work, a, x, o, **options))

deep, fifty = train(100.0), train(5.0, memory=1 << 40)
train(0.1)()
with memory_watch() as peak:
    first = once(deep)

def kept():  # Results are dropped, for their memory is used again.
    for _ in range(20):
        fifty()

fifty()
timings = interleaved({"kept": kept, "deep": deep}, 3, warm=True)
print("measured", run.json.dumps({"timings": timings, "first_seconds": first, "bytes_above_data": peak[0]}))
"""
    root = Path(__file__).parent.parent
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root)
    deep: dict[str, object] = json.loads(done.stdout.split("measured")[1])
    tell("depth, 1000 steps", deep["timings"])
    print(f"first {deep['first_seconds']:.1f} s, {deep['bytes_above_data'] / 1e9:.2f} GB above the data", flush=True)
    return deep


def growth() -> dict:
    """How the cost of forward + backward grows with nodes, edges, channels and steps."""
    out: dict[str, list] = {}
    base = {"nodes": 10_000, "degree": 10, "channels": 64, "steps": 20}
    sweeps = {
        "nodes": [1_000, 3_000, 10_000, 30_000, 100_000],
        "degree": [2, 5, 10, 20, 50],
        "channels": [8, 16, 32, 64, 128, 256],
        "steps": [5, 10, 20, 50, 100],
    }
    for axis, values in sweeps.items():
        out[axis] = []
        for value in values:
            size = base | {axis: value}
            generator = torch.Generator().manual_seed(0)
            edges = torch.randint(size["nodes"], (2, size["nodes"] * size["degree"]), generator=generator)
            graph = Graph.from_edge_index(edges, size["nodes"])
            work = workloads.make("random", graph, size["channels"], size["steps"] * STEP)
            run = candidates(work)["fused"]
            run()
            out[axis].append({"value": value, "seconds": min(once(run) for _ in range(3))})
    return out


def locality() -> dict:
    """Does another order of the nodes pay? With the engine's own renumbering switched off, and then with it."""
    import numpy as np
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    out = {}
    for name in workloads.available():
        work = workloads.load(name)
        pattern, n = work.graph.pattern, work.graph.num_nodes
        matrix = csr_matrix((np.ones(pattern.num_entries), pattern.col, pattern.rowptr), shape=(n, n))
        orders = {
            "as given": np.arange(n),
            "reverse Cuthill–McKee": reverse_cuthill_mckee(matrix, symmetric_mode=True).astype(np.int64),
            "by degree": np.argsort(-np.diff(pattern.rowptr.numpy()), kind="stable"),
            "random": np.random.default_rng(0).permutation(n),
        }
        runs = {}
        for label, order in orders.items():
            position = torch.from_numpy(np.argsort(order))
            graph = Graph.from_edge_index(position[work.graph.edge_index], n)
            graph.pattern.derived["flow_layout"] = layout(graph.pattern)  # Keep this order, whatever the size.
            moved = workloads.make(name, graph, work.x.size(1), 0.5)
            runs[label] = candidates(moved)["fused"]
        runs["renumbered by the engine"] = candidates(work.shortened(0.5))["fused"]
        out[name] = interleaved(runs, 3)
        tell(f"locality {name}", out[name])
    return out


SECTIONS = {  # What takes milliseconds first; peers that fill all memory last: the machine is long busy with it.
    "epoch": epochs,
    "edges": edges,
    "forward": forwards,
    "depth": depth,
    "growth": growth,
    "locality": locality,
    "flow": flows,
    "older": older.compare,
    "first_gradient": older.first_gradient,
}


def tell(title: str, timings: dict) -> None:
    """A line a candidate, while one waits."""
    for name, row in timings.items():
        low, high = row["ratio_range"]
        print(
            f"{title:20s} {name:30s} {row['seconds']:9.4f} s  {row['ratio']:7.2f}x [{low:.2f}, {high:.2f}]", flush=True
        )


def main() -> None:
    """Run the sections named on the command line, or all of them."""
    chosen = sys.argv[1:] or list(SECTIONS)
    if unknown := [name for name in chosen if name not in SECTIONS]:
        sys.exit(f"unknown section {unknown[0]!r}; known: {', '.join(SECTIONS)}")
    RESULTS.mkdir(exist_ok=True)
    for name in chosen:
        start = time.perf_counter()
        result = SECTIONS[name]()
        record = {"result": result, "seconds": time.perf_counter() - start, "provenance": provenance()}
        (RESULTS / f"{name}.json").write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
        print(f"{name} took {record['seconds']:.0f} s", flush=True)
    write_report(RESULTS)


if __name__ == "__main__":
    main()
