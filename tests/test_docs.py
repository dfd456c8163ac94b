"""Links of README and docs lead somewhere, commands exist with their flags, and Python blocks compile or run."""

import ast
import re
import shlex
from pathlib import Path

import pytest

from kuramotognn.cli.app import make_app

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page: Path, language: str) -> list[str]:
    text = page.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)


def commands(page: Path) -> list[list[str]]:
    """The command lines of kuramotognn in a page's shell blocks, without comments."""
    lines = [line for block in blocks(page, "sh") for line in block.replace("\\\n", " ").splitlines()]
    parts = [part for line in lines for part in re.split(r"&&|\|", line)]
    split = [shlex.split(part, comments=True) for part in parts]
    return [tokens[1:] for tokens in split if tokens[:1] == ["kuramotognn"]]


COMMANDS = [(page, tokens) for page in PAGES for tokens in commands(page)]


@pytest.mark.parametrize(("page", "tokens"), COMMANDS, ids=lambda value: value.stem if isinstance(value, Path) else "")
def test_commands_exist_with_their_flags(page: Path, tokens: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    rest = [token for token in tokens if token != "--offline"]
    for flag in ("--data-root", "--config"):  # A flag of all commands, and a file that would be read.
        if flag in rest:
            place = rest.index(flag)
            del rest[place : place + 2]
    make_app(rest).parse_args(rest, exit_on_error=False, print_error=False)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([\w./:-]+)(?:#[^)]*)?\)", text):
        if not target.startswith(("http://", "https://")):
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_python_blocks_import_what_exists(page: Path) -> None:
    for block in blocks(page, "python"):
        imports = [node for node in ast.parse(block).body if isinstance(node, ast.Import | ast.ImportFrom)]
        exec(compile(ast.Module(imports, []), str(page), "exec"), {})


def test_the_lines_of_the_readme_run(capsys: pytest.CaptureFixture[str]) -> None:
    (block,) = blocks(ROOT / "README.md", "python")
    exec(compile(block, "README.md", "exec"), {})
    assert "test accuracy" in capsys.readouterr().out
