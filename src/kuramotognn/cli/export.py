"""Export the model of a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from kuramotognn.cli.output import PLAIN, Output
from kuramotognn.cli.terminal import say


def export(
    run: Path,
    *,
    out: Path | None = None,
    split: int | None = None,
    card: Annotated[bool, Parameter(negative="")] = False,
    note: str = "",
    output: Output = PLAIN,
) -> None:
    """Write the model of a run into a folder to share: settings, parameters, result and a model card.

    Its accuracy is computed again first and must be the recorded one. The folder loads with load_pretrained, and every
    command that takes a run folder takes it.

    Parameters
    ----------
    run
        Run folder.
    out
        Folder to make; its name is the name of the model (default: RUN-exported).
    split
        Split whose model is exported (default: the first finished one).
    card
        Write a model card, README.md: data, split, accuracy, how it was trained, limits.
    note
        A paragraph for the card, such as the licence or what the model is for.
    """
    from kuramotognn.runs.exported import export_run

    if note and not card:
        raise ValueError("--note is a paragraph of the model card; add --card")
    folder = out or run.with_name(f"{run.resolve().name}-exported")
    found, written = export_run(run, folder, split, card=card, note=note)
    size = sum(path.stat().st_size for path in written)
    if output.json:
        names = [path.relative_to(folder).as_posix() for path in written]
        result = found.recorded
        record = {"folder": str(folder), "split": result.split, "test_accuracy": found.test_accuracy}
        print(json.dumps(record | {"files": names, "bytes": size}, indent=2))
        return
    say(f"wrote {folder} ({size / 1e6:.2f} MB): test accuracy {100 * found.test_accuracy:.2f} %, computed again")
    if output.verbose:
        say(f"load it with kuramotognn.load_pretrained({str(folder)!r})")
