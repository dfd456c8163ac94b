"""The application that commands register with, and how every command speaks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from cyclopts import App, Parameter

from kuramotognn._version import __version__

app = App(
    name="kuramotognn",
    version=__version__,
    help="Graph neural networks as coupled oscillators: train, evaluate and predict.",
    help_format="plaintext",
)


@Parameter(name="*")
@dataclass(frozen=True)
class Output:
    """How a command speaks."""

    quiet: Annotated[bool, Parameter(negative="", help="Print one line with the result, and errors.")] = False
    json: Annotated[bool, Parameter(negative="", help="Print the result as JSON and nothing else.")] = False

    @property
    def talkative(self) -> bool:
        """Whether progress and explanations are wanted."""
        return not (self.quiet or self.json)


PLAIN = Output()
