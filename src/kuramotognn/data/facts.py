"""What the data sets hold: computed from the files that are there, remembered beside them, next to the paper's word."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from kuramotognn._version import __version__
from kuramotognn.data.datasets import DATASETS, DatasetInfo, load_dataset
from kuramotognn.data.files import data_root
from kuramotognn.files import write_atomically

REMEMBERED = "facts.json"


def describe_datasets(root: Path | None = None) -> list[dict[str, Any]]:
    """A row a data set; ``ours`` is None where files are absent."""
    folder = root or data_root()
    known = _recall(folder)
    facts = {info.name: _facts(info, folder, known) for info in DATASETS.values()}
    found = {name: fact for name, fact in facts.items() if fact is not None}
    if any(known.get(name) != fact for name, fact in found.items()) and folder.is_dir():
        with suppress(OSError):  # A root that cannot be written to is slower, not wrong.
            write_atomically(folder / REMEMBERED, json.dumps(found, indent=1))
    return [
        {
            "name": name,
            "description": info.description,
            "present": facts[name] is not None,
            "protocols": list(info.protocols),
            "ours": fact["facts"] if (fact := facts[name]) else None,
            "paper": asdict(info.paper) if info.paper else None,
        }
        for name, info in DATASETS.items()
    ]


def _facts(info: DatasetInfo, root: Path, known: dict[str, Any]) -> dict[str, Any] | None:
    if not (info.embedded or info.is_present(root)):
        return None
    files = [] if info.embedded else [(root / file.path).stat() for file in info.raw]
    stamp = [__version__, *([file.st_size, file.st_mtime_ns] for file in files)]
    entry = known.get(info.name)
    if isinstance(entry, dict) and entry.get("stamp") == stamp and isinstance(entry.get("facts"), dict):
        return entry
    dataset = load_dataset(info.name, root=root, download=False)
    if info.default == "random-per-class":
        dataset = dataset.largest_component()
    facts = {
        "nodes": dataset.num_nodes,
        "edges": dataset.num_pairs(),
        "features": dataset.num_features,
        "classes": dataset.num_classes,
        "edge_homophily": round(dataset.edge_homophily(), 4),
    }
    return {"stamp": stamp, "facts": facts}


def _recall(root: Path) -> dict[str, Any]:
    try:
        known = json.loads((root / REMEMBERED).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}
