"""Hooks of the documentation site: pages that are not in docs/, and links that lead out of it."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page
from tools.docs_site import command_line, notebooks, results_page

ROOT = Path(__file__).parents[2]
#: Pages of the site that stay where readers of the repository look for them.
OUTSIDE = (
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    *(f"benchmarks/results/{page}.md" for page in ("README", "simulate", "scale", "batches", "defaults")),
)
SORTABLE = ROOT / "src" / "kuramotognn" / "reports" / "sortable.js"
LINK = re.compile(r"(?<=\]\()([^)#\s:]+)(?=[#)])")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what is made or kept outside docs/."""
    files.append(File.generated(config, "assets/sortable.js", abs_src_path=str(SORTABLE)))
    files.append(File.generated(config, "reference/cli.md", content=command_line.page()))
    for path, content in notebooks.pages(ROOT / "examples" / "notebooks"):
        files.append(File.generated(config, f"tutorials/{path}", content=content))
    pages = {page: (ROOT / page).read_text(encoding="utf-8") for page in OUTSIDE}
    for page in pages:
        files.append(File.generated(config, page, abs_src_path=str(ROOT / page)))
    pages |= {f"docs/{file.src_uri}": file.content_string for file in files.documentation_pages() if file.src_dir}
    for page, text in pages.items():
        for target in _targets(page, text):
            _add(files, config, target)
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Tables that can be sorted on the page of results, and links that fit the site."""
    if page.file.src_uri == "results.md":
        markdown = results_page.page(markdown)
    return LINK.sub(lambda found: _rewritten(found[1], page.file.src_uri), markdown)


def on_page_content(html: str, page: Page, **_: object) -> str:
    """Tables of results can be sorted."""
    return f'<div class="sortable">{html}</div>' if page.file.src_uri == "results.md" else html


def _targets(page: str, text: str) -> Iterator[str]:
    """Files and folders of the repository, outside docs/, that a page links to."""
    for link in LINK.findall(text):
        target = posixpath.normpath(posixpath.join(posixpath.dirname(page), link))
        if not target.startswith(("docs/", "..")) and (ROOT / target).exists():
            yield target


def _add(files: Files, config: MkDocsConfig, target: str) -> None:
    """Put a file of the repository on the site; a folder becomes a page that shows or lists its files."""
    uri, path = _on_site(target), ROOT / target
    if uri in files.src_uris:
        return
    if path.is_dir():
        members = sorted(each for each in path.rglob("*") if each.is_file())
        lines = [f"# {target}", ""]
        for each in members:
            name = each.relative_to(path).as_posix()
            if each.suffix == ".toml":
                lines += [f"## {name}", "", "```toml", each.read_text(encoding="utf-8").rstrip(), "```", ""]
            else:
                lines.append(f"- [{name}]({path.name}/{name})")
                _add(files, config, each.relative_to(ROOT).as_posix())
        files.append(File.generated(config, uri, content="\n".join(lines), inclusion=InclusionLevel.NOT_IN_NAV))
    else:
        files.append(File.generated(config, uri, abs_src_path=str(path), inclusion=InclusionLevel.NOT_IN_NAV))


def _on_site(target: str) -> str:
    """Where a file of the repository is on the site."""
    path = PurePosixPath(target)
    if target == "README.md":
        return "index.md"
    if path.parent == PurePosixPath("examples/notebooks"):
        return f"tutorials/{path.stem}.md"
    if (ROOT / target).is_dir():
        return f"{target}.md"
    return target.removeprefix("docs/")


def _rewritten(link: str, src_uri: str) -> str:
    """A link of a page, as it reads in the repository, for the site."""
    page = src_uri if src_uri in OUTSIDE else f"docs/{src_uri}"
    target = posixpath.normpath(posixpath.join(posixpath.dirname(page), link))
    if not (ROOT / target).exists():
        return link
    return posixpath.relpath(_on_site(target), posixpath.dirname(src_uri) or ".")
