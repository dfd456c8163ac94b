"""Statistics of the data sets: computed from the files present, cached in the data root, shown beside the paper's."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from kuramotognn._version import __version__
from kuramotognn.atomic_write import write_atomically
from kuramotognn.data.file_bytes import read_regular
from kuramotognn.data.public_datasets import DATASETS, DatasetInfo, load_dataset
from kuramotognn.data.raw_files import data_root

CACHE = "facts.json"
LARGEST_CACHE = 1 << 20


def describe_datasets(root: Path | None = None) -> list[dict[str, Any]]:
    """One record per data set; ``ours`` is None where files are missing."""
    folder = root or data_root()
    cached = _read_cache(folder)
    entries = {info.name: _entry(info, folder, cached.get(info.name)) for info in DATASETS.values()}
    found = {name: entry for name, entry in entries.items() if entry is not None}
    if any(cached.get(name) != entry for name, entry in found.items()) and folder.is_dir():
        with suppress(OSError):  # Without write permission the statistics are computed again next time.
            write_atomically(folder / CACHE, json.dumps(found, indent=1))
    return [
        {
            "name": name,
            "description": info.description,
            "present": name in found,
            "protocols": list(info.protocols),
            "ours": found[name]["facts"] if name in found else None,
            "paper": asdict(info.paper) if info.paper else None,
        }
        for name, info in DATASETS.items()
    ]


def _entry(info: DatasetInfo, root: Path, cached: Any) -> dict[str, Any] | None:
    """The statistics of a data set and a stamp of its files; ``cached`` if the stamp has not changed."""
    if not (info.embedded or info.is_present(root)):
        return None
    files = [] if info.embedded else [(root / file.path).stat() for file in info.raw]
    stamp = [__version__, *([file.st_size, file.st_mtime_ns] for file in files)]
    if isinstance(cached, dict) and cached.get("stamp") == stamp and isinstance(cached.get("facts"), dict):
        return cached
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


def _read_cache(root: Path) -> dict[str, Any]:
    try:
        cached = json.loads(read_regular(root / CACHE, LARGEST_CACHE))
    except (ValueError, RecursionError):
        return {}
    return cached if isinstance(cached, dict) else {}
