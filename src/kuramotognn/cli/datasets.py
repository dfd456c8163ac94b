"""What data there is."""

from __future__ import annotations

import json

from rich.console import Console
from rich.table import Table

from kuramotognn.cli.base import PLAIN, Output, app
from kuramotognn.data import DATASETS, load_dataset


@app.command
def datasets(*, output: Output = PLAIN) -> None:
    """List the data sets and their size."""
    rows = [_dataset_facts(name) for name in DATASETS]
    if output.json:
        print(json.dumps(rows, indent=2))
        return
    table = Table(*(str(key) for key in rows[0]), title="Data sets")
    for row in rows:
        table.add_row(*(str(value) for value in row.values()))
    Console().print(table)


def _dataset_facts(name: str) -> dict[str, object]:
    dataset = load_dataset(name)
    component = dataset.largest_component()
    return {
        "name": name,
        "nodes": dataset.num_nodes,
        "edges": dataset.edge_index.size(1) // 2,
        "largest component": f"{component.num_nodes} nodes, {component.edge_index.size(1) // 2} edges",
        "features": dataset.num_features,
        "classes": dataset.num_classes,
        "what": DATASETS[name].description,
    }
