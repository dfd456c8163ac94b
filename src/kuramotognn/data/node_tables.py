"""The columns of a table of nodes: ids, features and given splits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import torch

from kuramotognn.data.columns import Category, ColumnEncoder, Columns
from kuramotognn.data.data_error import DataError
from kuramotognn.data.graph_files import GraphFiles
from kuramotognn.data.graph_summary import GraphSummary
from kuramotognn.data.splits import Split
from kuramotognn.data.table_files import Table, positions
from kuramotognn.features import Features
from kuramotognn.typing import Labels

NUMERIC_SHARE = 0.5
"""A text column is numeric if a larger share of its cells are numbers; the other cells are then errors."""
MAX_CATEGORIES = 100
PARTS = {"train": "train", "validation": "validation", "val": "validation", "valid": "validation", "test": "test"}


def read_ids(table: Table, name: str) -> pl.Series:
    """The ids of nodes, all different."""
    ids = table.texts(name, "ids; name it with --id")
    empty = ids.is_null().arg_true()
    if empty.len():
        raise DataError(f"{table.place(int(empty[0]), name)}: the id is empty; every node needs one")
    repeated = (~ids.is_first_distinct()).arg_true()
    if repeated.len():
        row = int(repeated[0])
        first = int((ids == ids[row]).arg_true()[0]) + table.first_row
        raise DataError(f"{table.place(row, name)}: id {ids[row]!r} was used in row {first} already; ids must differ")
    return ids


def read_columns(
    table: Table, files: GraphFiles, matrix: Features | None, encoder: ColumnEncoder | None, summary: GraphSummary
) -> Columns:
    """The columns of features: numbers and categories; with an encoder those that it needs."""
    roles = {files.id: "id", files.label: "label", files.split_column: "split"}
    summary.columns = {name: role for name, role in roles.items() if name}
    for name in (*files.ignore, *files.categorical):
        table.column(name, "named in --ignore or --categorical")
    names = [name for name in table.frame.columns if name not in roles and name not in files.ignore]
    forced = set(files.categorical)
    if encoder is not None:
        wanted, known = [*encoder.means, *encoder.categories], set(names)
        for name in wanted:
            if name not in known:
                table.column(name, "the model was trained with it")
        names, forced = wanted, forced | set(encoder.categories)
    categories = {name: _category(table, name, forced=True) for name in names if name in forced}
    numbers, values = _numbers(table, [name for name in names if name not in forced], decide=encoder is None)
    chosen = set(numbers)
    others = [name for name in names if name not in forced and name not in chosen]
    categories |= {name: _category(table, name, forced=False) for name in others}
    for name in names:
        kind = f"category, {len(categories[name].names)} values" if name in categories else "number"
        summary.columns[name] = kind
    for name in table.frame.columns:
        summary.columns.setdefault(name, "left out")
    in_order = {name: categories[name] for name in names if name in categories}
    return Columns(torch.from_numpy(values), tuple(numbers), in_order, matrix)


def _numbers(table: Table, names: list[str], *, decide: bool) -> tuple[list[str], npt.NDArray[np.float64]]:
    """The numeric columns among ``names`` (all of them, unless it is to be decided) and their values ``[N, n]``."""
    values, filled, numeric = table.many_numbers(names)
    chosen = (filled == 0) | (numeric > NUMERIC_SHARE * filled) if decide else np.ones(len(names), dtype=bool)
    wrong = np.flatnonzero(chosen & ~np.isfinite(values).all(axis=1))
    if wrong.size:
        table.numbers(names[int(wrong[0])], "a feature")  # Its error names the row.
    return [name for name, one in zip(names, chosen.tolist(), strict=True) if one], np.ascontiguousarray(
        values[chosen].T
    )


def _category(table: Table, name: str, *, forced: bool) -> Category:
    texts = table.texts(name, "categories")
    names = sorted(texts.drop_nulls().unique().to_list())
    if not forced and len(names) > min(MAX_CATEGORIES, max(10, texts.len() // 2)):
        raise DataError(
            f"{table.name}, column {name!r} is text with {len(names)} different values, such as {names[0][:40]!r}; "
            f"leave it out with --ignore {name!r}, take it as categories with --categorical {name!r}, or count its "
            "words and pass them as a matrix with --features"
        )
    return Category(torch.from_numpy(positions(texts, names)), tuple(names))


def column_split(table: Table, name: str, y: Labels, summary: GraphSummary) -> Split:
    """The split in a column of the words train, validation and test."""
    texts = table.texts(name, "parts; name it with --split-column").str.to_lowercase()
    wrong = (texts.is_not_null() & ~texts.is_in(list(PARTS))).arg_true()
    if wrong.len():
        row = int(wrong[0])
        raise DataError(
            f"{table.place(row, name)}: {texts[row]!r} is not a part of a split; write train, validation, test or "
            "nothing"
        )
    part = np.array([PARTS.get(value, "") for value in texts.to_list()])
    summary.parts, summary.splits = dict(Counter(part[part != ""].tolist())), 1
    unlabelled = np.flatnonzero((part != "") & (y.numpy() < 0))
    if unlabelled.size:
        row = int(unlabelled[0])
        place = table.place(row, name)
        raise DataError(f"{place}: a {part[row]} node needs a label; empty the cell to predict the node")
    nodes = {value: torch.from_numpy(np.flatnonzero(part == value)) for value in ("train", "validation", "test")}
    for value, chosen in nodes.items():
        if not chosen.numel():
            raise DataError(f"{table.name}, column {name!r}: no node is {value!r}; all three parts need nodes")
    return Split.of(nodes.values(), "own-split", 0)


def mask_splits(
    place: str, masks: Mapping[str, npt.NDArray[Any]], y: Labels, summary: GraphSummary
) -> tuple[Split, ...]:
    """Splits that a file gives as masks ``[splits, N]`` by part; unlabelled nodes are left out of them."""
    if not masks:
        return ()
    labelled = y.numpy() >= 0
    overlap = np.argwhere(sum(mask.astype(np.int64) for mask in masks.values()) > 1)
    if overlap.size:
        number, node = overlap[0].tolist()
        raise DataError(f"{place}: node {node} is in two parts of split {number}; parts must not overlap")
    without = sum(int((mask & ~labelled).sum()) for mask in masks.values())
    if without:
        summary.warnings.append(f"{without} entries of the masks are for nodes without a label, and are left out")
    kept = {part: mask & labelled for part, mask in masks.items()}
    for part, mask in kept.items():
        if not mask.any(axis=1).all():
            number = int(mask.any(axis=1).argmin())
            raise DataError(f"{place}: split {number} has no labelled {part} node; all three parts need nodes")
    summary.splits = len(kept["train"])
    summary.parts = {part: int(mask[0].sum()) for part, mask in kept.items()}
    return tuple(
        Split.of((torch.from_numpy(np.flatnonzero(mask[number])) for mask in kept.values()), "own-split", number)
        for number in range(summary.splits)
    )
