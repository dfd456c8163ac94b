"""Classes of nodes, and labels that mean that the class is not known."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

import numpy as np
import torch

from kuramotognn.data.data_error import DataError
from kuramotognn.data.graph_summary import GraphSummary
from kuramotognn.data.node_dataset import UNLABELLED
from kuramotognn.data.table_files import Table, positions
from kuramotognn.typing import Labels

AUTO, NONE = "auto", "none"
"""Words of ``GraphFiles.unknown``: the usual unknown labels, and that there are none."""
UNKNOWN = ("nan", "?", "unknown")
LABEL_NAMES = ("label", "labels", "class")
"""Columns that hold classes by their name."""


def label_column(columns: Sequence[str]) -> str | None:
    """The column that holds classes by its name, if there is just one."""
    found = [name for name in columns if name.strip().lower() in LABEL_NAMES]
    return found[0] if len(found) == 1 else None


def read_labels(
    table: Table, name: str | None, unknown: Collection[str], summary: GraphSummary, *, needed: bool
) -> tuple[Labels, tuple[str, ...]]:
    """The class of each node, and the names of classes."""
    if name is None:
        summary.unlabelled = summary.nodes
        return torch.full((summary.nodes,), UNLABELLED), ()
    texts = table.texts(name, "labels; name it with --label")
    names = sorted(texts.drop_nulls().unique().to_list())
    hidden = set(unknown_labels(names, unknown))
    counted = texts.filter(texts.is_in(sorted(hidden))).value_counts(sort=True)
    summary.unknown = dict(counted.iter_rows())
    names = [each for each in names if each not in hidden]
    if all(re.fullmatch("-?[0-9]{1,17}", value) for value in names):
        names.sort(key=int)
    codes = positions(texts, names)
    summary.unlabelled = int((codes < 0).sum())
    counts = np.bincount(codes[codes >= 0], minlength=len(names)).tolist()
    summary.classes = dict(zip(names, counts, strict=True))
    if needed:
        _check_classes(f"{table.name}, column {name!r}", summary)
    return torch.from_numpy(codes), tuple(names)


def unknown_labels(names: Sequence[str], unknown: Collection[str]) -> list[str]:
    """The labels that mean unknown: those in ``unknown``, and for ``auto`` the usual ones."""
    found = [name for name in names if name in unknown and name not in (AUTO, NONE)]
    if AUTO in unknown:
        found += [name for name in names if name.lower() in UNKNOWN]
        known = {name: _whole(name) for name in names if name not in found}
        minus, others = [name for name, value in known.items() if value == -1], set(known.values()) - {-1}
        # −1 beside 1 alone are two classes; beside 0, 1, … it stands for none.
        if 0 in others and all(value is not None and value >= 0 for value in others):
            found += minus
    return found


def _whole(text: str) -> int | None:
    match = re.fullmatch(r"(-?[0-9]{1,17})(\.0*)?", text)
    return int(match[1]) if match else None


def label_candidates(table: Table, names: Sequence[str]) -> list[str]:
    """Columns with few different values, which may be classes."""
    few = max(20, table.frame.height // 50)
    shown = (name for name in names[:1000] if 2 <= table.frame[name].n_unique() <= few)
    return [name for name, _ in zip(shown, range(5), strict=False)]


def _check_classes(place: str, summary: GraphSummary) -> None:
    names = list(summary.classes)
    if not names:
        raise DataError(f"{place}: no node has a label, so there is nothing to learn from; label some nodes")
    if len(names) == 1:
        summary.warnings.append(f"all labelled nodes have the class {names[0]!r}: there is nothing to learn")
    if len(names) > max(20, summary.nodes // 2):
        raise DataError(
            f"{place} has {len(names)} different labels for {summary.nodes} nodes, as a measurement or a name would; "
            "choose a column of classes"
        )
    if small := [name for name, count in summary.classes.items() if count < 3]:
        count = f"{summary.classes[small[0]]} labelled node(s)"
        summary.warnings.append(f"class {small[0]!r} has {count}; drawn splits need at least 3 of each class")
