"""Text of users and files, made fit to print."""

from __future__ import annotations

LONGEST = 300
"""Characters of a text that are shown."""


def printable(text: object, longest: int = LONGEST) -> str:
    """Text in one line: control characters are escaped, what is too long is cut."""
    raw = str(text)
    cut = raw if len(raw) <= longest else f"{raw[:longest]}… ({len(raw)} characters)"
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in cut)
