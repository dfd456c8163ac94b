"""Write docs/models.md from the registry of models: `python tools/write_models.py`."""

from __future__ import annotations

from pathlib import Path

from kuramotognn.models.registry import MODELS
from kuramotognn.models.settings import ModelInfo

PAGE = Path(__file__).parent.parent / "docs" / "models.md"

INTRODUCTION = """\
# Models

Written by `python tools/write_models.py` from the registry; `kuramotognn models` prints it, `kuramotognn models NAME`
tells about one model. A model is chosen by one word, `kuramotognn train --model grand-l`, or by its constructor in
Python. Its settings are the constructor's keywords, `--model.time 8`, or `time = 8` in the table `[model]` of a file.

All take the same inputs: dense or sparse features, weighted edges, batches of graphs, isolated nodes. In the equations
`A` holds the couplings `a_ij` (attention, rows sum to one), `x(0)` is the encoder's output, `N` counts nodes, `E`
edges, `d` channels. Flows are decoded by an affine map; models without a flow ignore the solver.

An isolated node has no couplings: it keeps its natural frequency in the Kuramoto models and decays in the GRAND models,
whose equations have `α(A − I)x`.

The sources of `grand++` are the training nodes and no others: `fit` tells the model which they are, and they are saved
with its parameters. No label enters, only the nodes' encoded features. It is therefore a model of one fixed graph.
"""


def page() -> str:
    """The whole page."""
    return "\n".join([INTRODUCTION, _overview(), *(_section(info) for info in MODELS.values())])


def _overview() -> str:
    rows = [f"| [{info.name}](#{_anchor(info.name)}) | {info.equation} | {info.use} |" for info in MODELS.values()]
    return "\n".join(["| model | equation | when to use it |", "|---|---|---|", *rows, ""])


def _section(info: ModelInfo) -> str:
    facts = {
        "Equation": f"`{info.equation}`",
        "Python": f"`{info.python()}`",
        "Reference": info.reference,
        "Cost": info.cost,
        "Use": info.use,
        "Fused kernels": info.fused,
    }
    settings = [f"| `{each.name}` | {each.default} | {each.description} |" for each in info.parameters()]
    return "\n".join(
        [
            f"## {info.name}",
            "",
            *(f"- {name}: {fact}" for name, fact in facts.items()),
            "",
            "| setting | default | what |",
            "|---|---|---|",
            *settings,
            "",
        ]
    )


def _anchor(name: str) -> str:
    """What GitHub makes of a heading: lower case, letters, digits and hyphens."""
    return "".join(letter for letter in name.lower() if letter.isalnum() or letter == "-")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
