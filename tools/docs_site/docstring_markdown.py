"""Docstrings as Markdown: equations, cross-references and links are written as Sphinx and PyG write them."""

from __future__ import annotations

import re
import textwrap
from typing import Any

import griffe


class MarkdownDocstrings(griffe.Extension):
    """Translates every docstring once, before it is parsed."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called for each module, class, function and attribute."""
        if obj.docstring:
            obj.docstring.value = to_markdown(obj.docstring.value)


def to_markdown(text: str) -> str:
    """Translate the reStructuredText that docstrings of this library use."""
    text = re.sub(r"^( *)\.\. math::\n((?:\1 +.*\n?|\s*\n)+)", _equation, text, flags=re.MULTILINE)
    text = re.sub(r":math:`([^`]+)`", lambda found: f"${' '.join(found[1].split())}$", text)
    text = re.sub(r":(?:class|func|meth|data|attr|mod):`([^`]+)`", _reference, text)
    text = re.sub(
        r"`([^`<]+?)\s*<(https?://[^>]+)>`_+", lambda found: f"[{' '.join(found[1].split())}]({found[2]})", text
    )
    return re.sub(r"``([^`]+)``", r"`\1`", text)


def _equation(found: re.Match[str]) -> str:
    body = textwrap.dedent(found[2]).strip()
    lines = ["", "$$", *body.splitlines(), "$$", "", ""]
    return "\n".join(found[1] + line if line else line for line in lines)


def _reference(found: re.Match[str]) -> str:
    """The last part of a dotted name, as code; a link would need the name's full path, which docstrings shorten."""
    return f"`{found[1].lstrip('~').rpartition('.')[2]}`"
