"""Text on a terminal: nothing that comes from a user or a file is read as markup or as a control sequence."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from kuramotognn.printable import escaped, printable


class PlainConsole(Console):
    """A console whose text holds no control characters, wherever it came from; its own styles and bars are kept."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """The parts of what is printed, lines apart."""
        for segment in super().render(renderable, options):
            if segment.control or segment.text.isprintable():
                yield segment
            else:
                lines = "\n".join(escaped(line) for line in segment.text.split("\n"))
                yield Segment(lines, segment.style)


def make_console(*, stderr: bool = False, quiet: bool = False) -> Console:
    """A console that prints text as it is: no markup, no emoji codes, no colours for numbers."""
    return PlainConsole(stderr=stderr, quiet=quiet, markup=False, emoji=False, highlight=False)


def say(sentence: str) -> None:
    """Print one line of a result."""
    print(printable(sentence, 2000))
