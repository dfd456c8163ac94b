"""The paper's statements, run and tabulated."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from kuramotognn.atomic_write import write_atomically
from kuramotognn.cli.output import PLAIN, Output
from kuramotognn.cli.terminal import make_console, say
from kuramotognn.errors import CheckError

if TYPE_CHECKING:
    from kuramotognn.theory import Examined


def theory(*names: str, out: Path | None = None, output: Output = PLAIN) -> None:
    """Check the paper's statements numerically: what holds, what fails as written, and what holds instead.

    Exit code 1 when a check that should hold does not.

    Parameters
    ----------
    names
        Statements to check (default: all): linearisation, phase-synchronisation, frequency-synchronisation,
        gradient-bound, vanishing-gradients, local-order, growth.
    out
        Folder for a figure of each statement and theory.json with all numbers.
    """
    from kuramotognn.plots.panels import draw
    from kuramotognn.runs.provenance import provenance
    from kuramotognn.theory import examine, statements

    chosen = statements(names)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
    examined = []
    for statement in chosen:
        result = examine(statement)
        examined.append(result)
        if output.verbose:
            _show(result)
        if out is not None:
            draw(result.finding.panels, out / f"{statement.name}.svg")
    record = {"statements": [result.as_dict() for result in examined], "provenance": provenance()}
    if out is not None:
        write_atomically(out / "theory.json", json.dumps(record, indent=1) + "\n")
    checks = [check for result in examined for check in result.finding.checks]
    failed = [result.statement.name for result in examined if not result.expected]
    if output.json:
        print(json.dumps(record, indent=1))
    else:
        refuted = sum(check.as_written for check in checks)
        seconds = sum(result.seconds for result in examined)
        print(
            f"{len(checks) - refuted} checks of what should hold, {refuted} counter-examples to what does not hold as "
            f"written; {'all as expected' if not failed else 'unexpected: ' + ', '.join(failed)}; {seconds:.0f} s"
        )
        if out is not None:
            say(f"saved figures and theory.json in {out}")
    if failed:
        raise CheckError(f"checks of {', '.join(failed)} did not come out as they should")


def _show(result: Examined) -> None:
    statement = result.statement
    console = make_console()
    table = Table(title=f"{statement.name} · {statement.place}", title_justify="left", show_lines=True)
    table.add_column("check", ratio=1)
    table.add_column("measured", justify="right", no_wrap=True)
    table.add_column("tolerance", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for check in result.finding.checks:
        style = "bold red" if not check.expected else "yellow" if check.as_written else "green"
        verdict = Text(check.verdict, style)
        table.add_row(check.claim, f"{check.measured:.3g}", f"{check.relation} {check.tolerance:.3g}", verdict)
    console.print(Text.assemble(("The paper:", "bold"), f" {statement.says}"))
    console.print(table)
    console.print(Text.assemble(("Found:", "bold"), f" {statement.verdict}\n"))
