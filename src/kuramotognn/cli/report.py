"""Write the report on experiments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from kuramotognn.cli.output import PLAIN, Output
from kuramotognn.cli.reproduce import FOLDER
from kuramotognn.cli.terminal import say


def report(
    *experiments: str,
    source: Annotated[list[Path] | None, Parameter(name="--from", negative="")] = None,
    out: Path = Path("report"),
    tuned: Annotated[list[Path] | None, Parameter(negative="")] = None,
    pack: Path | None = None,
    open_page: Annotated[bool, Parameter(name="--open", negative="")] = False,
    output: Output = PLAIN,
) -> None:
    """Write the results of experiments beside the paper's: one HTML page, Markdown, and CSV and LaTeX for each table.

    Parameters
    ----------
    experiments
        Which ones (default: all that have results).
    source
        Folders of results (default: runs/experiments).
    out
        Folder to write to.
    tuned
        The files that were given to `kuramotognn reproduce --tuned`.
    pack
        Folder to put the results themselves into, one file for each experiment.
    open_page
        Open the page in a browser.
    """
    from kuramotognn.reports.report_files import write_report
    from kuramotognn.sweeps import catalogue

    sources = source or [FOLDER]
    for folder in sources:
        if not folder.is_dir():
            raise ValueError(f"there is no folder {str(folder)!r} with results; `kuramotognn reproduce` makes them")
    chosen = [catalogue.find_experiment(name) for name in experiments] or list(catalogue.experiments().values())
    written = write_report(chosen, sources, out, catalogue.read_tuned(tuned or ()), pack)
    if output.json:
        print(json.dumps({"page": str(written.page), "experiments": written.experiments, "runs": written.runs}))
    else:
        say(f"{len(written.experiments)} experiments, {written.runs} runs: {written.page}")
    if open_page:
        import webbrowser

        webbrowser.open(written.page.resolve().as_uri())
