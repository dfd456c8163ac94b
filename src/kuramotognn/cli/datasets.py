"""List the public data sets."""

from __future__ import annotations

import json
from typing import Any

from rich.box import SIMPLE
from rich.table import Table

from kuramotognn.cli.output import PLAIN, Output
from kuramotognn.cli.terminal import make_console
from kuramotognn.printable import printable

SIZES = ("nodes", "edges", "features", "classes")


def datasets(*, output: Output = PLAIN) -> None:
    """List the public data sets: size, homophily, protocols, the paper's statistics, and which are present.

    What a data set holds is computed when it is first seen and remembered in the data root. Sizes are those of the
    graph that the default protocol uses; edges are pairs of nodes; homophily is the share of edges within a class.
    """
    from kuramotognn.data.facts import describe_datasets
    from kuramotognn.data.raw_files import data_root

    rows = describe_datasets()
    if output.json:
        print(json.dumps(rows, indent=2))
        return
    if output.quiet:
        print(" ".join(row["name"] for row in rows if row["present"]))
        return
    table = Table(
        title=f"Data sets in {printable(data_root())}",
        caption="second line: default protocol, the paper's own statistics (→ one-way edges)",
        box=SIMPLE,
        padding=(0, 1, 0, 0),
    )
    for name in ("data set", "here", *SIZES, "homophily"):
        table.add_column(name, justify="left" if name == "data set" else "right", no_wrap=True)
    for row in rows:
        table.add_row(*_cells(row))
    make_console().print(table)


def _cells(row: dict[str, Any]) -> list[str]:
    ours, paper = row["ours"] or {}, row["paper"] or {}
    sizes = [f"{_number(ours.get(key))}\n{_number(paper.get(key))}" for key in SIZES]
    if paper.get("directed"):
        sizes[1] += " →"
    homophily = f"{ours['edge_homophily']:.3f}" if ours else "–"
    name = f"{row['name']}\n  {row['protocols'][0]}"
    return [name, "yes" if row["present"] else "no", *sizes, homophily]


def _number(value: int | None) -> str:
    return "–" if value is None else str(value)
