"""Text of users and files, made fit for terminals, pictures and spreadsheets."""

from __future__ import annotations

LONGEST = 300
"""Characters of a text that are shown."""
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What a cell of a spreadsheet begins with when it is computed."""


def printable(text: object, longest: int = LONGEST) -> str:
    """Text in one line: control characters are escaped, what is too long is cut."""
    raw = str(text)
    cut = raw if len(raw) <= longest else f"{raw[:longest]}… ({len(raw)} characters)"
    return escaped(cut)


def escaped(text: str) -> str:
    """Text whose control characters, and others that are not printed as they are, are written as escapes."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)


def plot_text(text: object, longest: int = 16) -> str:
    """Text for a picture: short, and no formula to matplotlib."""
    shown = printable(text)
    return (shown if len(shown) <= longest else f"{shown[: longest - 1]}…").replace("$", r"\$")


def csv_cell(text: str) -> str:
    """Text for a cell of a CSV file, with an apostrophe before what a spreadsheet would compute.

    An apostrophe at the beginning is doubled, so that removing one always gives the text back. Numbers stay as they
    are.
    """
    return f"'{text}" if text.startswith((*FORMULA, "'")) and not _is_number(text) else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text.isascii() and text.strip() == text
