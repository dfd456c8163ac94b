"""Read a user's graph and show how its files were interpreted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from rich.console import Console
from rich.text import Text

from kuramotognn.cli.flags import file_flags
from kuramotognn.cli.output import PLAIN, Output
from kuramotognn.cli.terminal import make_console
from kuramotognn.printable import printable

if TYPE_CHECKING:
    from kuramotognn.data import GraphSummary

Files: Any = file_flags()
NO_FILES: Mapping[str, Any] = MappingProxyType({})
FEW = 12
"""Columns and classes that are listed one by one."""


def check(
    *,
    files: Files = NO_FILES,
    directed: Annotated[bool, Parameter(negative="", help="Keep edges one-way.")] = False,
    output: Output = PLAIN,
) -> None:
    """Read a graph of your own and say what was understood, without training."""
    from kuramotognn.data import GraphFiles, read_graph

    if "nodes" not in files:
        raise ValueError("a graph of your own needs --nodes, and --edges unless they are in the same file")
    understood = read_graph(GraphFiles(**files), directed=directed)[1]
    if output.json:
        print(json.dumps(asdict(understood), indent=2))
    elif output.quiet:
        print(f"{understood.nodes} nodes, {understood.edges} edges, {len(understood.classes)} classes")
    else:
        show_summary(understood, make_console())


def show_summary(summary: GraphSummary, console: Console) -> None:
    """Print what was understood of the files."""
    for topic, words in _lines(summary):
        console.print(Text.assemble((f"{printable(topic):>11}", "bold"), f"  {words}"))
    for sentence in summary.warnings:
        console.print(Text.assemble((f"{'warning':>11}", "yellow"), f"  {printable(sentence)}"))


def _lines(known: GraphSummary) -> list[tuple[str, str]]:
    kinds: dict[str, list[str]] = {}
    for name, kind in known.columns.items():
        kinds.setdefault(kind.split(",")[0], []).append(f"{name} ({kind.split(', ')[1]})" if "," in kind else name)
    lines = [("format", each) for each in known.formats]
    lines.append(("nodes", f"{known.nodes}, {known.isolated} of them without an edge"))
    lines += [(kind, _some(names)) for kind, names in kinds.items()]
    if known.matrix:
        lines.append(("matrix", known.matrix))
    if known.classes:
        labelled = sum(known.classes.values())
        balance = [f"{name} {count} ({100 * count / labelled:.0f} %)" for name, count in known.classes.items()]
        lines.append(("classes", f"{len(balance)}: {_some(balance)}"))
    lines.append(("unlabelled", f"{known.unlabelled} nodes to predict"))
    if known.unknown:
        taken = _some([f"{name} {count}" for name, count in known.unknown.items()])
        lines.append(("unknown", f"{taken}: labels that are taken as unknown; --unknown none takes them as classes"))
    if known.parts:
        sizes = ", ".join(f"{part} {count}" for part, count in known.parts.items())
        lines.append(("splits", f"{known.splits} given (protocol own-split): {sizes}"))
    kind = "one-way" if known.directed else "undirected"
    edges = f"{known.edges} rows, {kind}; {known.repeated} repeated, {known.loops} loops, {known.dropped} dropped"
    lines.append(("edges", edges))
    if known.weights:
        lines.append(("weights", f"from {known.weights[0]:g} to {known.weights[1]:g}"))
    return lines


def _some(words: list[str]) -> str:
    more = len(words) - FEW
    return ", ".join(printable(word, 60) for word in words[:FEW]) + (f" and {more} more" if more > 0 else "")
