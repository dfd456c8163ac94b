"""The paper's statements as experiments one can run: each with its place, a tolerance, and counter-examples."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kuramotognn.checks import check_choice
from kuramotognn.kernels import use_backend
from kuramotognn.theory import (
    frequencies,
    gradient_bound,
    growth,
    linearisation,
    local_order,
    phases,
    vanishing_gradients,
)
from kuramotognn.theory.base import Check, Finding, Statement

__all__ = ["STATEMENTS", "Check", "Examined", "Finding", "Statement", "examine"]

#: The statements, in the order of the paper.
STATEMENTS: dict[str, Statement] = {
    module.STATEMENT.name: module.STATEMENT
    for module in (
        linearisation,
        phases,
        frequencies,
        gradient_bound,
        vanishing_gradients,
        local_order,
        growth,
    )
}


@dataclass(frozen=True)
class Examined:
    """A statement and what running it gave."""

    statement: Statement
    finding: Finding
    seconds: float

    @property
    def expected(self) -> bool:
        """Whether everything that should hold does, and everything known to fail as written does fail."""
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
    """The statements of these names, or all."""
    for name in names:
        check_choice("statement", name, STATEMENTS)
    return [STATEMENTS[name] for name in names or STATEMENTS]


def examine(statement: Statement) -> Examined:
    """Run a statement's experiment, in float64 and with the kernels that read like the equations."""
    start = time.perf_counter()
    with use_backend("torch"):
        finding = statement.run()
    return Examined(statement, finding, time.perf_counter() - start)
