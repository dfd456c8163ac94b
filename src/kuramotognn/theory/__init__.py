"""Numerical checks of the paper's statements, with tolerances and counter-examples."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kuramotognn.checks import check_choice
from kuramotognn.kernels import use_backend
from kuramotognn.theory import (
    frequency_synchronisation,
    gradient_bound,
    growth,
    linearisation,
    local_order,
    phase_synchronisation,
    vanishing_gradients,
)
from kuramotognn.theory.statement import Check, Finding, Statement

__all__ = ["STATEMENTS", "Check", "Examined", "Finding", "Statement", "examine"]

#: The statements, in the order of the paper.
STATEMENTS: dict[str, Statement] = {
    module.STATEMENT.name: module.STATEMENT
    for module in (
        linearisation,
        phase_synchronisation,
        frequency_synchronisation,
        gradient_bound,
        vanishing_gradients,
        local_order,
        growth,
    )
}


@dataclass(frozen=True)
class Examined:
    """A statement and the result of its experiment."""

    statement: Statement
    finding: Finding
    seconds: float

    @property
    def expected(self) -> bool:
        """Whether all checks have the expected outcome."""
        return all(check.expected for check in self.finding.checks)

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "name": self.statement.name,
            "place": self.statement.place,
            "says": self.statement.says,
            "verdict": self.statement.verdict,
            "expected": self.expected,
            "checks": [check.as_dict() for check in self.finding.checks],
            "panels": [panel.as_dict() for panel in self.finding.panels],
            "seconds": round(self.seconds, 2),
        }


def statements(names: Sequence[str] = ()) -> list[Statement]:
    """The statements with these names, or all."""
    for name in names:
        check_choice("statement", name, STATEMENTS)
    return [STATEMENTS[name] for name in names or STATEMENTS]


def examine(statement: Statement) -> Examined:
    """Run the experiment of a statement with the reference kernels."""
    start = time.perf_counter()
    with use_backend("torch"):
        finding = statement.run()
    return Examined(statement, finding, time.perf_counter() - start)
