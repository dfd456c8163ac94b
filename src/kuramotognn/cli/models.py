"""List the models."""

from __future__ import annotations

import inspect
import json
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from kuramotognn.cli.output import PLAIN, Output
from kuramotognn.cli.terminal import make_console

if TYPE_CHECKING:
    from kuramotognn.models import ModelInfo

FACTS = ("formula", "reference", "cost", "use", "fused")


def models(name: str | None = None, *, output: Output = PLAIN) -> None:
    """List the models, or show everything about one.

    Parameters
    ----------
    name
        The model to show: a name, or FILE.py:CLASS.
    """
    from kuramotognn.models.lookup import find_model
    from kuramotognn.models.registry import MODELS

    chosen = list(MODELS.values()) if name is None else [find_model(name)]
    if output.json:
        found = [facts(info) for info in chosen]
        print(json.dumps(found if name is None else found[0], indent=2, ensure_ascii=False))
    elif output.quiet:
        print("\n".join(info.name for info in chosen))
    elif name is None:
        make_console().print(_overview(chosen))
    else:
        make_console().print(_facts_table(chosen[0]), _settings_table(chosen[0]))


def facts(info: ModelInfo) -> dict[str, Any]:
    """All facts about a model, as JSON can hold them."""
    from kuramotognn.config.model_settings import REQUIRED, settings_of
    from kuramotognn.config.resolve import presets_of

    settings = [
        {
            "name": name,
            "default": "" if each.default in (None, REQUIRED) else str(each.default),
            "what": each.description,
        }
        for name, each in settings_of(info).items()
    ]
    found = {"name": info.name, **{fact: getattr(info, fact) for fact in FACTS}}
    return found | {"python": constructor(info), "settings": settings, "presets": presets_of(info.name)}


def constructor(info: ModelInfo) -> str:
    """The Python call that makes the model."""
    from kuramotognn.config.model_settings import constructor_parameters

    sizes = ("in_channels", "hidden_channels", "num_layers", "out_channels")
    required = [name for _, name, _ in constructor_parameters(info.make) if name in sizes]
    own = [f"{name}={value!r}" for name, value in info.fixed.items()]
    if info.equation is not None and info.equation.__name__ != "Kuramoto":
        channels = "hidden_channels" if "channels" in inspect.signature(info.equation).parameters else ""
        own.append(f"equation={info.equation.__name__}({channels})")
    return f"{getattr(info.make, '__name__', info.make)}({', '.join([*required, *own])})"


def _overview(chosen: list[ModelInfo]) -> Table:
    """Two columns, so that a terminal of 80 characters shows whole words."""
    table = Table("name", "equation, when to use it, cost, what is fused, reference", title="Models", show_lines=True)
    table.columns[0].no_wrap = True
    for info in chosen:
        details = f"\ncost: {info.cost}\nfused: {info.fused}\n{info.reference}"
        table.add_row(info.name, Text.assemble(f"{info.formula}\n{info.use}", (details, "dim")))
    return table


def _facts_table(info: ModelInfo) -> Table:
    table = Table(title=info.name, show_header=False)
    found = facts(info)
    for key in ("formula", "python", "reference", "cost", "use", "fused"):
        table.add_row("equation" if key == "formula" else key, Text(str(found[key])))
    for name, datasets in found["presets"].items():
        table.add_row("preset", f"--preset {name}: {', '.join(datasets)}")
    return table


def _settings_table(info: ModelInfo) -> Table:
    table = Table("setting", "default", "what", title="Settings")
    for setting in facts(info)["settings"]:
        table.add_row(f"--model.{setting['name'].replace('_', '-')}", setting["default"], Text(setting["what"]))
    return table
