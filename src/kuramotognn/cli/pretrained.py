"""The models that come with the library."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from kuramotognn.cli.output import PLAIN, Output
from kuramotognn.cli.terminal import make_console, say

if TYPE_CHECKING:
    from kuramotognn.runs.exported import Pretrained


def pretrained(name: str | None = None, *, out: Path | None = None, output: Output = PLAIN) -> None:
    """List the models that come with the library, show the card of one, or copy it as a run folder.

    Parameters
    ----------
    name
        The model to show, or a folder that `kuramotognn export` wrote.
    out
        Copy it into this folder, for commands that take a run: evaluate, predict, diagnose, explore.
    """
    from kuramotognn.runs.exported import load_pretrained, pretrained_names

    if name is None:
        if out is not None:
            raise ValueError(f"name the model to copy to {str(out)!r}: {', '.join(pretrained_names())}")
        _list([load_pretrained(each) for each in pretrained_names()], output)
        return
    model = load_pretrained(name)
    if out is not None:
        if out.exists():
            raise ValueError(f"{str(out)!r} exists; name another folder")
        shutil.copytree(model.folder, out)
    if output.json:
        print(json.dumps(_facts(model) | ({"folder": str(out)} if out else {}), indent=2))
    elif out is not None:
        say(f"copied {model.name} to {out}")
    else:
        make_console().print(model.card.rstrip() or f"{model.name} has no model card")


def _list(models: list[Pretrained], output: Output) -> None:
    facts = [_facts(model) for model in models]
    if output.json:
        print(json.dumps(facts, indent=2))
    elif output.quiet:
        print("\n".join(str(each["name"]) for each in facts))
    else:
        table = Table(title="Pretrained models, with accuracy on test nodes")
        for heading in ("name", "data", "split", "accuracy, %", "MB"):
            table.add_column(heading, justify="left" if heading in ("name", "data", "split") else "right", no_wrap=True)
        for each in facts:
            split = f"{each['protocol']} {each['split']}"
            numbers = (f"{100 * each['test_accuracy']:.2f}", f"{each['bytes'] / 1e6:.2f}")
            table.add_row(each["name"], each["dataset"], split, *numbers)
        make_console().print(table)


def _facts(model: Pretrained) -> dict[str, Any]:
    from kuramotognn.runs.exported import files_of

    return {
        "name": model.name,
        "model": model.config.model.name,
        "dataset": model.config.dataset,
        "protocol": model.result.protocol,
        "split": model.result.split,
        "test_accuracy": model.result.test_accuracy,
        "parameters": sum(each.numel() for each in model.model.parameters()),
        "bytes": sum(path.stat().st_size for path in files_of(model.folder)),
        "folder": str(model.folder),
    }
