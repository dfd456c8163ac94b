"""Write docs/models.md from the registry of models: `python tools/write_models.py`."""

from __future__ import annotations

from pathlib import Path

from kuramotognn.cli.models import facts
from kuramotognn.models.registry import MODELS, ModelInfo

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "models.md"
EXAMPLE = ROOT / "examples" / "own_equation.py"

INTRODUCTION = """\
# Models

A model is chosen by one word, `kuramotognn train --model grand-l`, or by its constructor in Python. Its settings are
the constructor's keywords: `--model.time 8` on the command line, `time = 8` in the table `[model]` of a file.
`kuramotognn models NAME` prints what this page says about one model. [As written and as coded](as-coded.md) has the
equation of every option that comes from the authors' codes, and the presets.
[Your own equation](#add-your-own-equation) is one class.

All models take the same inputs: dense or sparse features, weighted edges, batches of graphs, isolated nodes. In the
equations `A` holds the couplings `a_ij` (attention; rows sum to one), `x(0)` is the encoder's output, `N` counts nodes,
`E` edges, `d` channels. A linear decoder turns the final state of a flow into logits.

An isolated node has no couplings. It keeps its natural frequency in the Kuramoto models and decays in the GRAND models,
whose equations have `α(A − I)x`.

The sources of `grand++` are the training nodes, which `fit` sets; they are saved with the parameters. No label enters,
only the encoded features of these nodes. It is therefore a model of one fixed graph.

`python tools/write_models.py` writes this page from the registry and `examples/own_equation.py`.
"""
OWN_EQUATION = """\
## Add your own equation

An equation of the Kuramoto family is one class. Its `forward` gets the natural frequencies, the couplings and the
coupling strength, and returns a function `f(t, x)`:

```python
{example}```

The flow, its gradients, the encoder and the decoder come with it. The parameters of the constructor, with their types,
defaults and descriptions, are the settings. Use it in Python, `KuramotoGNN(1433, 64, 7, equation=SecondHarmonic(0.3))`,
or from the command line without touching the package:

```sh
kuramotognn train --model examples/own_equation.py:SecondHarmonic --model.second 0.3
```

Any torch module works in the same way if it is called as `model(x, edge_index)` and its constructor takes
`in_channels`, `out_channels` and typed parameters. A package adds models by entry points in the group
`kuramotognn.models`. For a model of this library, add the class to `fields` and an entry to
`models/models.toml`.

A model file is a program: only use files that you trust.
"""


def page() -> str:
    """The whole page."""
    own = OWN_EQUATION.format(example=EXAMPLE.read_text(encoding="utf-8"))
    return "\n".join([INTRODUCTION, _overview(), own, *(_section(info) for info in MODELS.values())])


def _overview() -> str:
    rows = [f"| [{info.name}](#{_anchor(info.name)}) | {info.formula} | {info.use} |" for info in MODELS.values()]
    return "\n".join(["| model | equation | when to use it |", "|---|---|---|", *rows, ""])


def _section(info: ModelInfo) -> str:
    told = facts(info)
    lines = {
        "Equation": f"`{info.formula}`",
        "Python": f"`{told['python']}`",
        "Reference": info.reference,
        "Cost": info.cost,
        "Use": info.use,
        "Fused kernels": info.fused,
    }
    settings = [f"| `{each['name']}` | {each['default']} | {each['what']} |" for each in told["settings"]]
    return "\n".join(
        [
            f"## {info.name}",
            "",
            *(f"- {name}: {fact}" for name, fact in lines.items()),
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
