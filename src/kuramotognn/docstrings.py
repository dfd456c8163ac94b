"""Descriptions of parameters, read from docstrings: they are written once, and shown by help texts, too."""

from __future__ import annotations

import inspect
import re
from functools import cache
from typing import Any


@cache
def argument_texts(owner: Any) -> dict[str, str]:
    """The descriptions of the ``Args:`` (or ``Attributes:``) of a docstring, as plain text."""
    doc = inspect.cleandoc(owner.__doc__ or "")
    texts: dict[str, str] = {}
    for section in re.findall(r"^(?:Args|Attributes):\n((?:[ \t]+.*\n?|\n)+)", doc, flags=re.MULTILINE):
        for name, text in re.findall(r"^ {4}(\w+): (.*(?:\n {5,}.*)*)", section, flags=re.MULTILINE):
            words = " ".join(text.split()).replace("``", "")
            plain = re.sub(r":\w+:`~?([^`]*)`", r"\1", words)
            texts[name] = plain[:1].upper() + plain[1:]
    return texts
