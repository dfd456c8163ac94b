"""Text on a terminal: nothing that comes from a user or a file is read as markup or as a control sequence."""

from __future__ import annotations

from rich.console import Console


def make_console(*, stderr: bool = False, quiet: bool = False) -> Console:
    """A console that prints text as it is: no markup, no emoji codes, no colours for numbers."""
    return Console(stderr=stderr, quiet=quiet, markup=False, emoji=False, highlight=False)
