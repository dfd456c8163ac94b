"""The tutorials: the notebooks of examples/notebooks with the outputs that are kept in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbconvert import MarkdownExporter

DOWNLOAD = """
!!! note "Run it yourself"
    [Download the notebook]({name}.ipynb), or take it from `examples/notebooks` of the repository, where it is also a
    script: `{name}.py`. The outputs below were written by `make notebooks`.
"""


def pages(folder: Path) -> Iterator[tuple[str, str | bytes]]:
    """Pages, pictures and notebooks: path below the folder of the tutorials, and content."""
    for path in sorted(folder.glob("*.ipynb")):
        text = path.read_text(encoding="utf-8")
        yield path.name, text
        yield from _page(path.stem, text)


def _page(name: str, text: str) -> Iterator[tuple[str, str | bytes]]:
    markdown, resources = MarkdownExporter().from_notebook_node(nbformat.reads(text, as_version=4))
    for picture, content in resources["outputs"].items():
        yield f"{name}/{picture}", content
    # nbconvert names a picture after its format; what it shows stands in the cell that drew it.
    captions = iter(re.findall(r"^# Picture: (.*)$", markdown, flags=re.MULTILINE))
    markdown = re.sub(r"!\[png\]\(([^)]*)\)", lambda found: f"![{next(captions)}]({name}/{found[1]})", markdown)
    title, _, rest = markdown.strip().partition("\n")
    yield f"{name}.md", f"{title}\n{DOWNLOAD.format(name=name)}\n{rest}\n"
