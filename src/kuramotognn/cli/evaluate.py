"""Evaluate the models of a run again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

from kuramotognn.cli.output import PLAIN, Output
from kuramotognn.cli.ranks import run_folder
from kuramotognn.cli.terminal import make_console
from kuramotognn.printable import printable

if TYPE_CHECKING:
    from kuramotognn.runs.stored_run import Evaluation


def evaluate(run: Path, *, output: Output = PLAIN) -> None:
    """Load the models of a run and compute their accuracies again.

    Parameters
    ----------
    run
        Run folder.
    """
    from kuramotognn.runs.stored_run import evaluate_run

    with run_folder(run) as folder:
        evaluations = evaluate_run(folder)
    if output.json:
        print(json.dumps([vars(each) | {"recorded": each.recorded.record()} for each in evaluations], indent=2))
    elif output.quiet:
        tests = [evaluation.test_accuracy for evaluation in evaluations]
        print(f"test accuracy {100 * sum(tests) / len(tests):.2f} over {len(tests)} splits")
    else:
        make_console().print(_table(evaluations))


def _table(evaluations: list[Evaluation]) -> Table:
    table = Table(title=f"{printable(evaluations[0].recorded.protocol, 60)}: accuracy in %, computed again (recorded)")
    for name in ("split", "validation", "test"):
        table.add_column(name, justify="right")
    for evaluation in evaluations:
        recorded = evaluation.recorded
        table.add_row(
            str(recorded.split),
            f"{100 * evaluation.validation_accuracy:.2f} ({100 * recorded.validation_accuracy:.2f})",
            f"{100 * evaluation.test_accuracy:.2f} ({100 * recorded.test_accuracy:.2f})",
        )
    return table
