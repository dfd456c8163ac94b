"""The page of the command line, from the same help texts that the commands print."""

from __future__ import annotations

from kuramotognn.cli.app import COMMANDS, make_app

HEAD = """# Command line

`kuramotognn COMMAND --help` prints the same. `train` and `tune` take the settings of the model that `--model` names;
below they are those of `kuramotognn`, and [models](../models.md) lists them for every model. Every command also takes
`--data-root FOLDER` and `--offline` (see [data](../data.md)). A mistake is answered in one sentence, with exit code 2.
"""


def page() -> str:
    """All commands with their flags."""
    parts = [HEAD]
    for name in COMMANDS:
        app = make_app([name])[name]
        text = app.generate_docs(heading_level=2, recursive=True, usage_name=f"kuramotognn {name}")
        parts.append(text)
    return "\n".join(parts)
