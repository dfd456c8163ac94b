"""Imports point one way, file names are unique, and a help text does not load torch, as docs/architecture.md says."""

import ast
import re
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path
from pkgutil import resolve_name

import pytest

from kuramotognn.cli.app import COMMANDS, WITH_SETTINGS

PACKAGE = Path(__file__).parent.parent / "src" / "kuramotognn"
#: From the top to the bottom: a part may import what stands below it, and nothing else.
ORDER = [
    *(
        "cli",
        "explore",
        "reports",
        "sweeps",
        "runs",
        "config",
        "theory",
        "plots",
        "diagnostics",
        "simulate",
        "training",
        "train_result",
    ),
    *("batches", "training_config", "parallel", "models"),
    *(
        "solve",
        "solver",
        "fields",
        "partition",
        "data",
        "features",
        "mapped_features",
        "kernels",
        "graph",
        "checkpoints",
        "metrics",
        "environment",
    ),
    *("atomic_write", "documents", "docstrings", "errors", "printable", "checks", "typing", "_version"),
]
WITHOUT_TORCH = [["--help"], ["--version"], *([name, "--help"] for name in COMMANDS if name not in WITH_SETTINGS)]


def imported(path: Path) -> set[str]:
    """The parts of the package that a module imports, at its top or inside a function."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "kuramotognn":
            names = [node.module] if "." in node.module else [f"kuramotognn.{each.name}" for each in node.names]
            found |= {name.split(".")[1] for name in names}
        if isinstance(node, ast.Import):
            found |= {each.name.split(".")[1] for each in node.names if each.name.startswith("kuramotognn.")}
    return found


def part(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


MODULES = [path for path in sorted(PACKAGE.rglob("*.py")) if path.parent != PACKAGE or not path.name.startswith("__")]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_one_way(path: Path) -> None:
    own = ORDER.index(part(path))
    upwards = {name for name in imported(path) if ORDER.index(name) < own}
    assert not upwards, f"{part(path)} imports {upwards}, which stand above it"


def test_graph_imports_typing_alone() -> None:
    assert imported(PACKAGE / "graph.py") <= {"typing"}


def test_no_two_files_have_one_name() -> None:
    """But for the specification and the operator of each operation of the kernels."""
    names = Counter(path.name for path in MODULES if path.name != "__init__.py")
    assert {name for name, count in names.items() if count > 1} == {"operator.py", "reference.py"}


def walks() -> list[list[str]]:
    """The functions that the walks of docs/architecture.md go through."""
    page = (PACKAGE.parent.parent / "docs" / "architecture.md").read_text(encoding="utf-8")
    _, first, second = page.partition("## The equation")[0].split("\nFrom `")
    return [re.findall(r"^\d+\. `([\w.]+)", walk, flags=re.MULTILINE) for walk in (first, second)]


@pytest.mark.parametrize("walk", walks(), ids=["command line", "model"])
def test_walks_are_short_and_their_functions_exist(walk: list[str]) -> None:
    assert 5 < len(walk) <= 10
    for name in walk:
        found = None
        for place in ("kuramotognn", "kuramotognn.models", "kuramotognn.kernels"):
            with suppress(ImportError, AttributeError):
                found = found or resolve_name(f"{place}.{name}")
        assert callable(found), name


@pytest.mark.parametrize("arguments", WITHOUT_TORCH, ids=" ".join)
def test_help_does_not_load_torch(arguments: list[str]) -> None:
    code = "import sys; from kuramotognn.cli import main; main(sys.argv[1:]); sys.exit('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
