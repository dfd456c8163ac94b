"""The measurements of benchmarks/scale.py as a page, with a model of the cost: ``python -m benchmarks.scale_page``.

An epoch (training step and validation) with E edges, N nodes, F features, d channels and S steps takes

    seconds = (a + c m) E d S + b N F d,    m = max(0, 1 - C / (128 N)).

A tile of the flow holds 128 bytes a node. As long as it fits the caches an edge costs ``a``; beyond, the share ``m`` of
the neighbours' rows comes from memory and costs ``c`` more. The constants a, b, c >= 0 and the size C of the caches are
fitted to relative errors of the runs of one process. The page says how well they predict each of them, and each of the
power-law graphs of three sizes from all other runs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import nnls

RESULTS = Path(__file__).parent / "results"
BILLION = {"edges": 1e9, "nodes": 5e7, "features": 128, "channels": 128, "time": 8.0, "step": 0.1, "classes": 40}
RANKS = (1, 2, 4, 8, 16, 32, 64)
WIDTH_OF_A_UNIT = 8
"""Channels that are computed together: fewer on a rank take the time of so many."""
TAPE = 2 << 30
PROCESS = 0.4e9
"""Bytes of Python, torch and what else a process loads."""
BYTES_A_SECOND = 1.25e9
"""Of a network of 10 Gbit/s."""
BYTES_OF_A_ROW = 128
"""Sine and cosine of sixteen channels in float32: what a tile of the flow holds of a node."""
CACHES = np.geomspace(1e5, 1e8, 121)


@dataclass(frozen=True)
class CostModel:
    """Seconds of an epoch in one process.

    Attributes:
        constants: of the flow in the caches, of the flow from memory, and of encoder and decoder.
        cache: bytes of a tile that the caches hold.
    """

    constants: tuple[float, float, float]
    cache: float

    def seconds(self, run: Mapping[str, Any]) -> float:
        """What the model predicts for a run."""
        return float(np.dot(self.constants, terms(run, self.cache)))


def terms(run: Mapping[str, Any], cache: float) -> tuple[float, float, float]:
    """What the three constants are multiplied by."""
    flow = run["edges"] * run["channels"] * run["time"] / run["step"]
    missed = max(0.0, 1 - cache / (BYTES_OF_A_ROW * run["nodes"]))
    return flow, flow * missed, run["nodes"] * run["features"] * run["channels"]


def fit_model(runs: Sequence[Mapping[str, Any]]) -> CostModel:
    """The model with the least squares of relative errors."""
    found = []
    for cache in CACHES:
        rows = np.array([np.array(terms(run, cache)) / run["seconds_per_epoch"] for run in runs])
        scale = rows.mean(axis=0)
        scale[scale == 0] = 1.0
        constants, error = nnls(rows / scale, np.ones(len(runs)))
        found.append((error, cache, constants / scale))
    _, cache, (in_caches, from_memory, rest) = min(found, key=lambda each: each[0])
    return CostModel((float(in_caches), float(from_memory), float(rest)), float(cache))


def bytes_of_rank(run: Mapping[str, Any], ranks: int, heads: int = 4) -> float:
    """Memory of a rank by the table of docs/scale.md, the masks of dropout included."""
    nodes, edges, width, features = run["nodes"], run["edges"], run["channels"], run["features"]
    graph, couplings = 60 * edges + 50 * nodes, 4 * edges * (3 + 2 * heads / ranks)
    states = 4 * nodes * (features + 10 * width) / ranks
    tape = min(TAPE, 8 * nodes * run["time"] / run["step"] * width / ranks)
    return float(graph + couplings + states + tape + 12 * nodes * features)


def bytes_sent(run: dict[str, Any], ranks: int) -> float:
    """What a rank sends in an epoch by the table of docs/scale.md, with every node a training node."""
    nodes, edges, width = run["nodes"], run["edges"], run["channels"]
    states, couplings = 4 * 2 * width * nodes * (ranks - 1) / ranks**2, 4 * edges * (ranks - 1) / ranks
    logits = nodes * run["classes"] * (ranks - 1) / ranks
    return float(4 * (1.5 * (states + couplings) + 2 * logits))


def checks(sizes: Sequence[Mapping[str, Any]], single: Sequence[Mapping[str, Any]]) -> list[str]:
    """How time and memory of some runs are predicted where no constant was fitted to them."""
    without = [fit_model([run for run in single if run is not left_out]) for left_out in sizes]
    times = [
        model.seconds(left_out) / left_out["seconds_per_epoch"] for model, left_out in zip(without, sizes, strict=True)
    ]
    bytes_ = [(PROCESS + bytes_of_rank(run, 1)) / run["bytes_peak"] for run in sizes]
    names = ", ".join(f"{run['edges']:.0e}" for run in sizes)
    further = BILLION["edges"] / max(run["edges"] for run in sizes)
    return [
        "",
        f"Checked on the power-law graphs of {names} edges, each left out of the fit: predicted over",
        f"measured time {', '.join(f'{ratio:.2f}' for ratio in times)}. What an edge costs beyond the caches is known",
        f"from the largest graph alone, and a billion edges is {further:.0f} times as many.",
        f"Memory by the formulas of docs/scale.md and {PROCESS / 1e9:g} GB for the process, over the measured peak:",
        f"{', '.join(f'{ratio:.2f}' for ratio in bytes_)}.",
    ]


def page(record: dict[str, Any]) -> str:
    """The whole page."""
    edges, linear, arxiv = record["edges"], record["linearity"], record["arxiv"]
    single = [run for run in (*edges, *linear, *arxiv) if run["ranks"] == 1]
    model = fit_model(single)
    in_caches, from_memory, rest = (1e9 * constant for constant in model.constants)
    lines = [
        "# Large graphs",
        "",
        "Written by `python -m benchmarks.scale_page` from scale.json, which `python -m benchmarks.scale` measures:",
        "seconds of an epoch (training step and validation) of KuramotoGNN, Euler steps of 0.1, float32, generated",
        "features; memory is the peak of a process.",
        "",
        "| graph | nodes | edges | channels | T | processes | s an epoch | GB a process | model, s | ratio |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for run in (*edges, *arxiv, *linear):
        predicted = model.seconds(run)
        how = "1 of 2 threads" if run["ranks"] == 1 else f"{run['ranks']} of 1 thread"
        facts = (run["graph"], run["nodes"], run["edges"], run["channels"], f"{run['time']:g}", how)
        found = (f"{run['seconds_per_epoch']:.2f}", f"{max(run['bytes_peak_per_rank']) / 1e9:.2f}")
        ratio = predicted / run["seconds_per_epoch"]
        said = (f"{predicted:.2f}", f"{ratio:.2f}") if run["ranks"] == 1 else ("", "")
        lines.append("| " + " | ".join(map(str, (*facts, *found, *said))) + " |")
    one, two = arxiv
    lines += [
        "",
        f"Two ranks of one thread take {two['seconds_per_epoch'] / one['seconds_per_epoch']:.2f} times one process "
        "of two threads on the ogbn-arxiv graph.",
        "",
        f"Model: {in_caches:.2f} ns for each edge, channel and step while the flow's tile fits the caches (128 bytes",
        f"a node, {model.cache / 1e6:.0f} MB), up to {from_memory:.2f} ns more beyond;",
        f"{rest:.2f} ns for each node, feature and channel.",
        "The constants are fitted to these very runs, on one shared machine.",
        *checks([run for run in edges if run["ranks"] == 1], single),
        "",
        "## A billion edges, on paper",
        "",
        f"{BILLION['nodes']:.0e} nodes, 128 features and channels, 40 classes, T = 8, channels over ranks,",
        "extrapolated by that model. Machines are as the one measured, with one rank each; the time of computing is",
        "divided by the ranks. Memory and traffic by the formulas of docs/scale.md, with a tape of 2 GiB and logits",
        "of all nodes; sending is at 10 Gbit/s and not hidden behind computing. Below 8 channels a rank nothing is",
        "gained.",
        "",
        "| ranks | minutes an epoch | of these sending | GB sent by a rank | GB of memory a rank |",
        "|---|---|---|---|---|",
    ]
    for ranks in RANKS:
        share = max(BILLION["channels"] / ranks, WIDTH_OF_A_UNIT) / BILLION["channels"]
        in_flow, missed, dense = np.array(model.constants) * terms(BILLION, model.cache)
        seconds = (in_flow + missed) * share + dense / ranks
        sent, kept = bytes_sent(BILLION, ranks), bytes_of_rank(BILLION, ranks)
        sending = sent / BYTES_A_SECOND
        lines.append(
            f"| {ranks} | {(seconds + sending) / 60:.0f} | {sending / 60:.1f} | {sent / 1e9:.0f} | {kept / 1e9:.0f} |"
        )
    lines += ["", f"Commit {str(record['provenance']['commit'])[:12]}.", ""]
    return "\n".join(lines)


if __name__ == "__main__":
    found = json.loads((RESULTS / "scale.json").read_text(encoding="utf-8"))
    (RESULTS / "scale.md").write_text(page(found), encoding="utf-8")
