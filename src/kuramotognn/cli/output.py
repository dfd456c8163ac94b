"""How much a command prints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter


@Parameter(name="*")
@dataclass(frozen=True)
class Output:
    """How much a command prints."""

    quiet: Annotated[bool, Parameter(negative="", help="Print one line with the result, and errors.")] = False
    json: Annotated[bool, Parameter(negative="", help="Print the result as JSON and nothing else.")] = False

    @property
    def verbose(self) -> bool:
        """Whether progress and explanations are wanted."""
        return not (self.quiet or self.json)


PLAIN = Output()
