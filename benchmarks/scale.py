"""Time and memory of training large graphs in one process and over ranks: ``python -m benchmarks.scale [section …]``.

Sections: ``edges`` (generated graphs with power-law degrees), ``linearity`` (in depth and edges, over a factor of 8),
``arxiv`` (the ogbn-arxiv graph in ``KURAMOTOGNN_DATA`` with generated features). Each measurement runs in processes of
its own: one with two threads, and two ranks of one thread each. Writes ``benchmarks/results/scale.json``.

    python -m benchmarks.scale edges --edges 1000000 10000000 40000000
    python -m benchmarks.scale linearity arxiv
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist

from kuramotognn import Graph, KuramotoGNN, Solver, Split, TrainingConfig, fit
from kuramotognn.data.raw_files import data_root
from kuramotognn.features import FeatureRows
from kuramotognn.graph import Part
from kuramotognn.parallel import distribute
from kuramotognn.runs.provenance import provenance

RESULT = Path(__file__).parent / "results" / "scale.json"
DEGREE = 20
"""Mean degree of generated graphs; ogbn-arxiv has 14."""
EXPONENT = 2.5
"""Of the power law of their degrees."""
BLOCK = 1 << 14
"""Rows of features that are drawn at once, each block from a seed of its own: a rank draws its rows and no others."""
CLASSES = 40
MOST_FOR_TWO = 0.6 * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
"""Peak of one process up to which two ranks are tried: each builds the whole graph, which takes more than it keeps."""


@dataclass(frozen=True)
class Job:
    """What to train, and on what."""

    edges: int = 1_000_000
    graph: str = "power-law"
    channels: int = 128
    features: int = 128
    time: float = 8.0
    step: float = 0.1
    epochs: int = 4
    ranks: int = 1
    threads: int = 2
    memory: int = 2 << 30


def power_law_graph(edges: int) -> Graph:
    """About ``edges`` directed edges, both ways, with ends drawn by power-law weights (Chung and Lu's model)."""
    generator = torch.Generator().manual_seed(0)
    count = max(edges // DEGREE, 2)
    weights = torch.arange(1, count + 1, dtype=torch.float64).pow(-1 / (EXPONENT - 1))
    shuffled = weights[torch.randperm(count, generator=generator)].cumsum(0)
    drawn = torch.rand(2, edges // 2, dtype=torch.float64, generator=generator) * shuffled[-1]
    ends = torch.searchsorted(shuffled, drawn).clamp_(max=count - 1)
    return Graph.from_edge_index(torch.cat([ends, ends.flip(0)], dim=1), count, self_loops=True)


def arxiv_graph() -> Graph:
    """The graph of ogbn-arxiv."""
    with gzip.open(data_root() / "ogbn_arxiv" / "raw" / "edge.csv.gz") as file:
        edges = torch.from_numpy(np.loadtxt(file, delimiter=",", dtype=np.int64)).t()
    return Graph.from_edge_index(torch.cat([edges, edges.flip(0)], dim=1), int(edges.max()) + 1, self_loops=True)


def generated_rows(start: int, end: int, width: int) -> torch.Tensor:
    """Rows ``start`` to ``end`` of normal features that do not depend on which rows are asked for."""
    first, last = start // BLOCK, -(-end // BLOCK)
    rows = torch.empty(end - start, width)
    for block in range(first, last):
        drawn = torch.randn(BLOCK, width, generator=torch.Generator().manual_seed(block))
        low, high = max(start, block * BLOCK), min(end, (block + 1) * BLOCK)
        rows[low - start : high - start] = drawn[low - block * BLOCK : high - block * BLOCK]
    return rows


def memory(key: str) -> int:
    """Bytes of this process by the system: ``VmRSS`` now, ``VmHWM`` at most since the last reset."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key))


def work(job: Job) -> dict[str, float]:
    """Train, in this process or rank, and measure."""
    torch.set_num_threads(job.threads)
    graph = arxiv_graph() if job.graph == "ogbn-arxiv" else power_law_graph(job.edges)
    count, rank = graph.num_nodes, dist.get_rank() if job.ranks > 1 else 0
    start, end = count * rank // job.ranks, count * (rank + 1) // job.ranks
    rows = generated_rows(start, end, job.features)
    torch.manual_seed(0)
    solver = Solver("euler", step_size=job.step, memory=job.memory)
    model = KuramotoGNN(job.features, job.channels, CLASSES, time=job.time, solver=solver)
    y = torch.randint(CLASSES, (count,), generator=torch.Generator().manual_seed(1))
    order = torch.randperm(count, generator=torch.Generator().manual_seed(2))
    split = Split(order[: count // 2], order[count // 2 : 3 * count // 4], order[3 * count // 4 :], "generated", 0)
    if job.ranks > 1:
        distribute(model)
    x = rows if job.ranks == 1 else FeatureRows(rows, Part(torch.arange(start, end), count), None)
    before = memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # Resets VmHWM.
    stamps = [time.perf_counter()]
    config = TrainingConfig(epochs=job.epochs, patience=job.epochs)
    result = fit(model, x, graph, y, split, config=config, on_epoch=lambda _: stamps.append(time.perf_counter()))
    seconds = [later - earlier for earlier, later in pairwise(stamps[1:])]  # The first warms up.
    return {
        "nodes": count,
        "edges": graph.num_edges,
        "seconds_per_epoch": statistics.median(seconds),
        "bytes_before": before,
        "bytes_peak": memory("VmHWM"),
        "last_loss": result.history[-1].train_loss,
    }


def measure(job: Job) -> dict[str, object]:
    """Run a job in processes of its own."""
    port = _free_port()
    command = [sys.executable, "-m", "benchmarks.scale", "--worker", json.dumps(asdict(job))]
    processes = []
    for rank in range(job.ranks):
        variables = {"RANK": str(rank), "WORLD_SIZE": str(job.ranks), "MASTER_ADDR": "127.0.0.1"}
        variables |= {"MASTER_PORT": str(port), "OMP_NUM_THREADS": str(job.threads)}
        processes.append(subprocess.Popen(command, env=os.environ | variables, stdout=subprocess.PIPE, text=True))
    found = [json.loads(process.communicate()[0].splitlines()[-1]) for process in processes]
    record = {**asdict(job), **found[0], "bytes_peak_per_rank": [each["bytes_peak"] for each in found]}
    print(
        f"{job.graph}, {record['edges']} edges, T = {job.time:g}, {job.ranks} ranks of {job.threads} threads: "
        f"{record['seconds_per_epoch']:.2f} s an epoch, {max(each['bytes_peak'] for each in found) / 1e9:.2f} GB",
        flush=True,
    )
    return record


def both_ways(job: Job) -> list[dict[str, object]]:
    """One process of two threads, and two ranks of one; the former alone where two on this machine would not fit."""
    one = measure(replace(job, ranks=1, threads=2))
    if float(str(one["bytes_peak"])) > MOST_FOR_TWO:
        return [one]
    found = [one, measure(replace(job, ranks=2, threads=1))]
    first, second = (each["last_loss"] for each in found)
    if abs(first - second) > 1e-3 * abs(first):  # type: ignore[operator]
        raise SystemExit(f"one process and two ranks do not train alike: losses {first} and {second}")
    return found


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def main() -> None:
    """Measure the sections that are named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", help="edges, linearity, arxiv; all unless named")
    parser.add_argument("--edges", type=int, nargs="+", default=[1_000_000, 10_000_000, 40_000_000])
    parser.add_argument("--channels", type=int, default=128)
    parser.add_argument("--time", type=float, default=8.0)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--out", type=Path, default=RESULT)
    parser.add_argument("--worker", type=json.loads, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        job = Job(**options.worker)
        if job.ranks > 1:
            dist.init_process_group("gloo")
        print(json.dumps(work(job)))
        return
    sections = options.sections or ["edges", "linearity", "arxiv"]
    base = Job(channels=options.channels, time=options.time, epochs=options.epochs)
    found: dict[str, list[dict[str, object]]] = {}
    if "edges" in sections:
        found["edges"] = [each for count in options.edges for each in both_ways(replace(base, edges=count))]
    if "arxiv" in sections:
        found["arxiv"] = both_ways(replace(base, graph="ogbn-arxiv"))
    if "linearity" in sections:
        most = min(options.edges)
        # Little enough that every size recomputes from checkpoints: a flow that keeps everything is a third faster.
        base = replace(base, memory=64 << 20)
        depths = [replace(base, edges=most, time=options.time / part) for part in (8, 4, 2, 1)]
        sizes = [replace(base, edges=most // part) for part in (8, 4, 2, 1)]
        found["linearity"] = [measure(job) for job in (*depths, *sizes)]
    known = json.loads(options.out.read_text(encoding="utf-8")) if options.out.is_file() else {}
    options.out.write_text(json.dumps(known | found | {"provenance": provenance()}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
