"""The paper's numbers, beside which ours are put."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from kuramotognn.models.lookup import find_model


@dataclass(frozen=True)
class Published:
    """A number of the paper; ``std`` where it gives one."""

    mean: float
    std: float | None


def published(table: str, *, dataset: str, model: str | None, metric: str, **axes: float) -> Published | None:
    """A number of one of the paper's tables, or None where it has none.

    Args:
        table: its name in ``published.csv``.
        dataset: name of the data set.
        model: name in the registry, or None for facts about data.
        metric: what was measured.
        axes: columns of the file that the table varies: ``T``, ``K``, ``labels_per_class``.
    """
    key = {
        "dataset": dataset,
        "model": title(model.partition("@")[0]) if model else "",
        "metric": METRICS.get(metric, metric),
    }
    for row in published_rows(table):
        if all(row[name] == value for name, value in key.items()) and all(
            row[name] != "" and float(row[name]) == value for name, value in axes.items()
        ):
            return Published(float(row["mean"]), float(row["std"]) if row["std"] else None)
    return None


def title(model: str) -> str:
    """A model's name in print, as the paper writes those that it has; MODEL@PRESET names the preset."""
    name, _, preset = model.partition("@")
    words = PRESETS.get(preset, preset.replace("-", " "))
    return ", ".join(filter(None, [find_model(name).title or name, words]))


#: Presets in print, where this is not their name without hyphens.
PRESETS = {"recipe": "with recipe"}


#: How the paper's file calls what we measure.
METRICS = {"epoch_evaluations": "function_evaluations_per_epoch"}


@cache
def published_rows(table: str) -> tuple[Mapping[str, str], ...]:
    """All numbers of one of the paper's tables, as ``published.csv`` has them."""
    return tuple(row for row in _rows() if row["table"] == table)


def published_tables() -> list[str]:
    """Names of the paper's tables."""
    return list(dict.fromkeys(row["table"] for row in _rows()))


@cache
def _rows() -> tuple[Mapping[str, str], ...]:
    text = files("kuramotognn.reports").joinpath("published.csv").read_text(encoding="utf-8")
    return tuple(csv.DictReader(text.splitlines()))
