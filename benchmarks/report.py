"""The results as one Markdown page and a picture."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from kuramotognn.plots.style import save_figure


def write_report(folder: Path) -> None:
    """Write README.md (and growth.svg) from the JSON files that are there."""
    parts = ["# Measurements", "", "Written by `make bench`; the JSON files beside this page hold every number."]
    for name, section in SECTIONS.items():
        path = folder / f"{name}.json"
        if path.exists():
            record = json.loads(path.read_text(encoding="utf-8"))
            parts += ["", *section(record["result"], folder), "", _provenance(record["provenance"])]
    (folder / "README.md").write_text("\n".join(parts) + "\n", encoding="utf-8")


def _provenance(facts: dict[str, Any]) -> str:
    machine = facts["machine"]
    commit = (facts["commit"] or "unknown")[:12]
    changed = " with changes" if str(facts["commit"]).endswith("+changes") else ""
    return (
        f"*{machine['threads']} threads of {machine['processors']} processors ({machine['architecture']}), "
        f"torch {facts['packages']['torch']}, commit {commit}{changed}.*"
    )


def _table(head: list[str], rows: list[list[str]]) -> list[str]:
    return ["| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows)]


def _ratio(row: dict[str, Any], digits: int = 1) -> str:
    low, high = row["ratio_range"]
    return f"{row['ratio']:.{digits}f}× [{low:.{digits}f}, {high:.{digits}f}]"


def _flow(result: dict[str, Any], _: Path) -> list[str]:
    rows = []
    for name, work in result.items():
        timings = work["timings"]
        peers = [f"{timings[peer]['seconds']:.3f} s, {_ratio(timings[peer])}" for peer in list(timings)[1:]]
        size = f"{name} ({work['nodes']} nodes, {work['edges']} edges, d={work['channels']}, {work['steps']} steps)"
        rows.append([size, f"{timings['fused']['seconds']:.3f} s", *peers, _parity(work["parity"])])
    head = ["flow, forward + backward", "fused", "per-edge messages", "three products", "our torch path", "error"]
    text = (
        "Error: the largest difference of the state or a gradient, relative to its largest number, against the "
        "per-edge definition in float64; in brackets the error of that definition itself in float32. Where "
        "float64 would take too long or too much memory, against the per-edge definition in float32."
    )
    return ["## Flow: forward and backward, euler 0.1, float32", "", *_table(head, rows), "", text]


def _parity(parity: dict[str, Any]) -> str:
    errors = parity["errors"]
    own = f" [{errors['per-edge']:.0e}]" if parity["against"] == "float64" else ""
    return f"{errors['fused']:.0e}{own}"


def _forward(result: dict[str, Any], _: Path) -> list[str]:
    rows = []
    for name, work in result["graphs"].items():
        field, stepping = work["field"], work["forward"]
        rows.append(
            [
                name,
                f"{1e3 * field['fused']['seconds']:.2f} ms",
                _ratio(field["per-edge"]),
                _ratio(field["three products"]),
                f"{1e3 * stepping['fused']['seconds'] / work['forward_steps']:.2f} ms",
                _ratio(stepping["per-edge"]),
                _ratio(stepping["three products"]),
                f"{1e3 * work['roofline']['seconds']:.2f} ms",
                f"{100 * work['roofline_share_of_field']:.0f} % / {100 * work['roofline_share_of_step']:.0f} %",
                f"{1e3 * work['sparse_product']:.2f} ms",
            ]
        )
    head = ["", "one field", "per-edge", "three products", "one step", "per-edge", "three products"]
    head += ["roofline", "share (field / step)", "one sparse product"]
    peak, bandwidth = result["fma_peak"] / 1e9, result["copy_bandwidth"] / 1e9
    return [
        "## One right-hand side and forward steps, without a gradient",
        "",
        f"Roofline: {peak:.0f} GFLOP/s of a dense product, {bandwidth:.0f} GB/s copy (read + write).",
        "",
        *_table(head, rows),
        "",
        "The roofline reads each operand once from memory. A right-hand side must read a neighbour's row for every "
        "edge; *one sparse product* is our kernel's time for `A [sin X | cos X]`, which reads the same rows.",
    ]


def _epoch(result: dict[str, Any], _: Path) -> list[str]:
    rows = [[name, f"{1e3 * row['seconds']:.1f} ms", _ratio(row)] for name, row in result["timings"].items()]
    title = f"## A whole epoch on Cora (T = 8, {result['steps']} steps, d = {result['channels']})"
    share = 1 / result["timings"]["its flow alone"]["ratio"]
    return [title, "", *_table(["", "time", "ratio"], rows), "", f"An epoch takes {share:.2f} times its flow alone."]


def _edges(result: dict[str, Any], _: Path) -> list[str]:
    rows = [
        [name, *(f"{1e3 * row['seconds']:.2f} ms" for row in timings.values()), _ratio(timings["edge_index"], 2)]
        for name, timings in result.items()
    ]
    head = ["forward + backward, d = 64", "Graph", "edge_index", "edge_index / Graph"]
    return ["## An edge_index at every call beside a Graph built once, on Cora", "", *_table(head, rows)]


def _depth(result: dict[str, Any], _: Path) -> list[str]:
    rows = [[name, f"{row['seconds']:.2f} s", _ratio(row, 2)] for name, row in result["hundred_steps"].items()]
    deep = result["thousand_steps"]
    again = deep["timings"]["deep"]
    return [
        "## Depth on PubMed, d = 128",
        "",
        *_table(["100 steps, forward + backward", "time", "ratio"], rows),
        "",
        f"1000 steps: {again['seconds']:.1f} s, {_ratio(again, 2)} twenty runs of 50 steps with everything kept; "
        f"{deep['first_seconds']:.1f} s the first time, in memory not touched before; "
        f"{deep['bytes_above_data'] / 1e9:.2f} GB above the data. (Kept, they would take 20 GB.)",
    ]


def _growth(result: dict[str, Any], folder: Path) -> list[str]:
    figure = Figure(figsize=(10, 2.8), layout="constrained")
    for axes, (name, points) in zip(figure.subplots(1, 4), result.items(), strict=True):
        values = [point["value"] for point in points]
        seconds = [point["seconds"] for point in points]
        axes.loglog(values, seconds, "o-", color="black", linewidth=1.2, markersize=4)
        middle = len(values) // 2
        linear = [seconds[middle] * value / values[middle] for value in values]
        axes.loglog(values, linear, ":", color="grey", label="linear")
        axes.set(xlabel=name, ylabel="seconds" if name == "nodes" else "")
        axes.grid(alpha=0.3, which="both")
        axes.legend(frameon=False)
    save_figure(figure, folder / "growth.svg")
    text = "Random graph; 10,000 nodes, degree 10, 64 channels, 20 steps, one of them varied at a time."
    return ["## How the cost grows", "", text, "", "![seconds against nodes, degree, channels and steps](growth.svg)"]


def _locality(result: dict[str, Any], _: Path) -> list[str]:
    orders = list(next(iter(result.values())))
    rows = [[name, *(_ratio(row) for row in timings.values())] for name, timings in result.items()]
    return ["## Order of the nodes (time relative to the order of the data)", "", *_table(["", *orders], rows)]


def _older(result: dict[str, Any], _: Path) -> list[str]:
    rows = [
        [name, *(f"{1e3 * row['seconds']:.2f} ms" for row in timings.values()), _ratio(timings["C++"], 2)]
        for name, timings in result.items()
    ]
    return [
        "## Against the kernels of commit 3ea1a84, which numba compiled",
        "",
        *_table(["forward + backward", "numba", "C++", "C++ / numba"], rows),
    ]


def _first_gradient(result: dict[str, Any], _: Path) -> list[str]:
    text = (
        f"After `import torch` ({result['import torch']:.1f} s) a fresh process has its first gradient in "
        f"{result['first gradient after it']:.1f} s (median of {result['repeats']})."
    )
    return ["## From import to the first gradient", "", text]


SECTIONS = {
    "flow": _flow,
    "forward": _forward,
    "epoch": _epoch,
    "edges": _edges,
    "depth": _depth,
    "growth": _growth,
    "locality": _locality,
    "older": _older,
    "first_gradient": _first_gradient,
}
