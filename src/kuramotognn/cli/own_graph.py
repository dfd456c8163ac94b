"""One's own graph: what was understood of its files."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console
from rich.markup import escape

from kuramotognn.cli.base import PLAIN, Output, app
from kuramotognn.data import Understood, read_graph
from kuramotognn.experiments.data_config import FilesConfig

FEW = 12
"""Columns and classes that are listed one by one."""


@app.command
def check(
    *,
    files: Annotated[FilesConfig | None, Parameter(name="*")] = None,
    directed: Annotated[bool, Parameter(negative="", help="Keep edges one-way.")] = False,
    output: Output = PLAIN,
) -> None:
    """Read a graph of your own and say what was understood, without training."""
    understood = read_graph((files or FilesConfig()).to_read(directed=directed))[1]
    if output.json:
        print(json.dumps(asdict(understood), indent=2))
    elif output.quiet:
        print(f"{understood.nodes} nodes, {understood.edges} edges, {len(understood.classes)} classes")
    else:
        show_understood(understood, Console(highlight=False))


def show_understood(understood: Understood, console: Console) -> None:
    """Print back what was made of the files."""
    for topic, words in _lines(understood):
        console.print(f"[bold]{topic:>11}[/bold]  {escape(words)}")
    for sentence in understood.warnings:
        console.print(f"[yellow]{'warning':>11}[/yellow]  {escape(sentence)}")


def _lines(known: Understood) -> list[tuple[str, str]]:
    kinds: dict[str, list[str]] = {}
    for name, kind in known.columns.items():
        kinds.setdefault(kind.split(",")[0], []).append(f"{name} ({kind.split(', ')[1]})" if "," in kind else name)
    lines = [("nodes", f"{known.nodes}, {known.isolated} of them without an edge")]
    lines += [(kind, _some(names)) for kind, names in kinds.items()]
    if known.matrix:
        lines.append(("matrix", known.matrix))
    if known.classes:
        labelled = sum(known.classes.values())
        balance = [f"{name} {count} ({100 * count / labelled:.0f} %)" for name, count in known.classes.items()]
        lines.append(("classes", f"{len(balance)}: {_some(balance)}"))
    lines.append(("unlabelled", f"{known.unlabelled} nodes to predict"))
    if known.parts:
        lines.append(("parts", ", ".join(f"{part} {count}" for part, count in known.parts.items())))
    kind = "one-way" if known.directed else "undirected"
    edges = f"{known.edges} rows, {kind}; {known.repeated} repeated, {known.loops} loops, {known.dropped} dropped"
    lines.append(("edges", edges))
    if known.weights:
        lines.append(("weights", f"from {known.weights[0]:g} to {known.weights[1]:g}"))
    return lines


def _some(words: list[str]) -> str:
    more = len(words) - FEW
    return ", ".join(words[:FEW]) + (f" and {more} more" if more > 0 else "")
