"""The page: one HTML file with data, style and script in it, which fetches nothing."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

import numpy as np
from jinja2 import Environment
from markupsafe import Markup
from torch import Tensor

from kuramotognn._version import __version__
from kuramotognn.data import NodeDataset
from kuramotognn.explore.graph_layout import Layout
from kuramotognn.explore.palette import NO_CLASS, class_colours, phase_colours
from kuramotognn.explore.recording import ACCURACY, LABELS, PARTS, Recording
from kuramotognn.plots.style import LINES

SCRIPTS = ("model.js", "draw.js", "charts.js", "controls.js")
"""In the order in which they are needed; they make up one script."""
LOGARITHMIC = ("dirichlet", "phase-energy", "frequency-spread")
INT16 = 32767


def to_page(dataset: NodeDataset, layout: Layout, recordings: Sequence[Recording]) -> str:
    """The page of one or more models on a graph. All text is escaped; the page allows no script but its own."""
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.policies["json.dumps_kwargs"] = {"sort_keys": False, "allow_nan": False, "separators": (",", ":")}
    script = "\n".join(_read(name) for name in SCRIPTS)
    shown = {"dataset": dataset, "layout": layout, "recordings": recordings}
    return environment.from_string(_read("explore.html.j2")).render(
        shown,
        data=page_data(dataset, layout, recordings),
        labels=LABELS,
        accuracy=ACCURACY,
        version=__version__,
        style=Markup(_read("explore.css")),
        script=Markup(f"\n{script}\n"),
        script_hash=base64.b64encode(hashlib.sha256(f"\n{script}\n".encode()).digest()).decode(),
    )


def page_data(dataset: NodeDataset, layout: Layout, recordings: Sequence[Recording]) -> dict[str, Any]:
    """What the script reads: plain JSON, with arrays as base64."""
    shown = layout.nodes.tolist()
    return {
        "classes": list(dataset.class_names),
        "classColours": class_colours(dataset.num_classes),
        "noClass": NO_CLASS,
        "phaseColours": phase_colours(),
        "lines": [line["color"] for line in LINES],
        "parts": list(PARTS),
        "ids": [str(dataset.node_ids[node]) for node in shown],
        "label": packed(dataset.y.cpu()[layout.nodes], "int16"),
        "positions": packed(layout.positions * 65535, "uint16"),
        "edges": packed(layout.edges.t(), "uint16"),
        "charts": [{"key": key, "label": text, "log": key in LOGARITHMIC} for key, text in LABELS.items()],
        "models": [_model_data(recording) for recording in recordings],
    }


def _model_data(recording: Recording) -> dict[str, Any]:
    largest = float(recording.phases.abs().max().clamp(min=1e-9))
    return {
        "title": recording.title,
        "times": _short(recording.times),
        "channels": list(recording.channels),
        "unit": largest / INT16,
        "phases": packed(recording.phases / largest * INT16, "int16"),
        "order": [[_short((z.real.item(), z.imag.item())) for z in row] for row in recording.order],
        "predictions": packed(recording.predictions, "uint16" if recording.predictions.max() > 255 else "uint8"),
        "parts": packed(recording.parts, "uint8"),
        "measures": {name: _short(values) for name, values in recording.measures.items()},
    }


def packed(values: Tensor, kind: str) -> dict[str, str]:
    """Little-endian integers in base64, rounded, with the name of their array type in JavaScript."""
    array = np.rint(values.double().numpy()).astype(np.dtype(kind).newbyteorder("<"))
    name = {"int16": "Int16Array", "uint16": "Uint16Array", "uint8": "Uint8Array"}[kind]
    return {"type": name, "data": base64.b64encode(array.tobytes()).decode()}


def _short(values: Sequence[float]) -> list[float]:
    return [float(f"{value:.6g}") for value in values]


def _read(name: str) -> str:
    return files("kuramotognn.explore").joinpath(name).read_text(encoding="utf-8")
