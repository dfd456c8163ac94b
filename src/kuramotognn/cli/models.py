"""What models there are."""

from __future__ import annotations

import json

from rich.console import Console
from rich.table import Table
from rich.text import Text

from kuramotognn.cli.base import PLAIN, Output, app
from kuramotognn.models.registry import MODELS, find_model
from kuramotognn.models.settings import ModelInfo


@app.command
def models(name: str | None = None, *, output: Output = PLAIN) -> None:
    """List the models, or tell everything about one.

    Parameters
    ----------
    name
        The model to tell about.
    """
    chosen = list(MODELS.values()) if name is None else [find_model(name)]
    if output.json:
        facts = [info.facts() for info in chosen]
        print(json.dumps(facts if name is None else facts[0], indent=2, ensure_ascii=False))
    elif output.quiet:
        print("\n".join(info.name for info in chosen))
    elif name is None:
        Console().print(_overview(chosen))
    else:
        Console().print(_facts(chosen[0]), _settings(chosen[0]))


def _overview(chosen: list[ModelInfo]) -> Table:
    """Two columns, so that a terminal of 80 characters shows whole words."""
    table = Table("name", "equation, when to use it, cost, what is fused, reference", title="Models", show_lines=True)
    table.columns[0].no_wrap = True
    for info in chosen:
        details = f"\ncost: {info.cost}\nfused: {info.fused}\n{info.reference}"
        table.add_row(info.name, Text.assemble(f"{info.equation}\n{info.use}", (details, "dim")))
    return table


def _facts(info: ModelInfo) -> Table:
    table = Table(title=info.name, show_header=False)
    for key in ("equation", "python", "reference", "cost", "use", "fused"):
        table.add_row(key, str(info.facts()[key]))
    return table


def _settings(info: ModelInfo) -> Table:
    table = Table("setting", "default", "what", title="Settings")
    for setting in info.parameters():
        table.add_row(f"--model.{setting.name.replace('_', '-')}", setting.default, setting.description)
    return table
