"""The model card of an exported model: data, split, accuracy, how it was trained, limits."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined

from kuramotognn.config.model_settings import takes_solver
from kuramotognn.config.resolve import flatten
from kuramotognn.documents import parse_json, read_document
from kuramotognn.models.lookup import find_model
from kuramotognn.printable import printable
from kuramotognn.runs.task import Task
from kuramotognn.train_result import TrainResult

MOST_CLASSES = 40
"""Names of classes that a card lists."""
PARTS = {
    "random-per-class": "{per_class} nodes of each class train, the rest of {development} drawn nodes validate, all "
    "others test",
    "planetoid-public": "the fixed public split",
    "geom-gcn": "one of the ten given splits",
    "heterophilous": "one of the ten given splits",
    "ogb-time": "the given split by year",
    "fraction": "{train_share:.0%} of each class train, {validation_share:.0%} validate, the rest tests",
    "k-fold": "{folds} parts, of which one tests and one validates",
    "own-split": "the split that came with the data",
}
"""How the protocols divide the nodes, with settings of the data."""


def model_card(name: str, task: Task, result: TrainResult, record: Path, note: str = "") -> str:
    """A model card in Markdown.

    Args:
        name: of the exported model.
        task: its data and settings.
        result: what training found.
        record: the result file of the split, which has versions, commit and machine.
        note: a paragraph to add.
    """
    config, dataset = task.config, task.dataset
    info = find_model(config.model.name)
    shown = {"model", "training", *(["solver"] if takes_solver(info) else [])}
    settings = config.model_dump(mode="json", exclude_none=True, include=shown)
    environment = Environment(
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True, undefined=StrictUndefined
    )
    environment.filters |= {"plain": plain, "percent": lambda share: f"{100 * share:.2f} %"}
    template = files("kuramotognn.runs").joinpath("model_card.md.j2").read_text(encoding="utf-8")
    return environment.from_string(template).render(
        name=name,
        info=info,
        config=config,
        dataset=dataset,
        features=task.x.shape[1],
        classes=[plain(each) for each in dataset.class_names[:MOST_CLASSES]],
        parts=PARTS[result.protocol].format(**config.data.model_dump()),
        result=result,
        measures=result.test_measures,
        settings={key: value for key, value in flatten(settings) if key != "model.name"},
        provenance=_provenance(record),
        backend=task.backend,
        note=plain(note, longest=5000),
    )


def plain(text: object, longest: int = 300) -> str:
    """Text that Markdown shows as it is."""
    shown = printable(text, longest).replace("&", "&amp;").replace("<", "&lt;")
    return re.sub(r"([\\`*_\[\]|])", r"\\\1", shown)


def _provenance(record: Path) -> dict[str, Any]:
    """Where the run was made, as words."""
    found = parse_json(read_document(record)).get("provenance") or {}
    commit = str(found.get("commit") or "unknown")
    packages, machine = found.get("packages") or {}, found.get("machine") or {}
    return {
        "kuramotognn": plain(found.get("kuramotognn", "unknown")),
        "commit": plain(commit[:12] + ("+changes" if commit.endswith("+changes") else "")),
        "python": plain(found.get("python", "unknown")),
        "torch": plain(packages.get("torch", "unknown")),
        "machine": plain(f"{machine.get('system', 'unknown')} {machine.get('architecture', '')}".strip()),
    }
