"""Links of README and docs lead somewhere, and their commands and Python blocks run."""

import re
import shlex
import shutil
import subprocess
import webbrowser
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
import torch

from kuramotognn import load_dataset
from kuramotognn.cli import main
from kuramotognn.cli.app import make_app

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
NOT_RUN = {
    "pip install": "changes the environment; make release-check installs",
    "kuramotognn tune": "a search of hours; tests/sweeps/test_tuning.py",
    "kuramotognn train --config studies/": "needs what the search found",
    "kuramotognn reproduce main-accuracy": "hours; tests/sweeps/test_reproduce.py",
    "kuramotognn train --dataset citeseer": "downloads; tests/data/test_public.py",
    "kuramotognn train --dataset photo": "reads files of the user; tests/data/test_public.py",
    "kuramotognn train --dataset cora --device cuda": "needs a GPU",
    "kuramotognn export runs/mine --card --out my-citeseer": "the run is of citeseer, which is downloaded",
    "kuramotognn explore --dataset cora --time 32 --gif": "a minute; tests/explore/test_page.py",
    "kuramotognn simulate --oscillators 1000000": "a minute; tests/simulate/test_cli.py",
    "kuramotognn theory": "a minute; tests/theory/test_theory.py",
    "kuramotognn train --dataset ogbn-arxiv": "downloads; tests/data/test_public.py",
    "kuramotognn train --dataset pubmed": "downloads; tests/test_batches.py",
    "kuramotognn train --nodes big --batch": "the graph at hand has fewer nodes than parts; tests/test_batches.py",
    "kuramotognn reproduce depth --datasets cora --splits 2 --cluster": "needs Ray; tests/sweeps/test_cluster.py",
    "make": "sets up an environment; test_make_targets_and_scripts_exist",
    ".venv/bin/pre-commit": "changes the checkout",
    "torchrun": "starts processes; tests/parallel/test_launch.py",
    "jq": "not ours",
}
"""How lines begin that no test runs, and why; they are parsed."""
HALF_A_MINUTE = ("diagnostics", "explore", "simulator")
"""Pages that `make test-slow` runs."""
PYTHON_NOT_RUN = {
    "experiments": "starts processes that import the script",
    "scale": "needs a process group; tests/parallel/test_channels.py",
}


def blocks(page: Path, language: str) -> list[str]:
    text = page.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)


def in_text(page: Path) -> list[str]:
    """Code between single backticks."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    return re.findall(r"`([^`\n]+)`", text)


def lines(page: Path) -> Iterator[str]:
    """The commands of a page's shell blocks, without comments."""
    for block in blocks(page, "sh"):
        for line in block.replace("\\\n", " ").splitlines():
            for part in re.split(r"&&|\|", line):
                if words := shlex.split(part, comments=True):
                    yield shlex.join(words)


PYTHON_PAGES = [page for page in PAGES if blocks(page, "python") and page.stem not in PYTHON_NOT_RUN]
COMMANDS = [(page, line) for page in PAGES for line in lines(page)]
IN_TEXT = [(page, code) for page in PAGES for code in in_text(page)]


def is_run(line: str) -> bool:
    return not line.startswith(tuple(NOT_RUN))


def each(pages: Iterable[Path]) -> list[Any]:
    """Parameters of a test, those that take long marked as slow."""
    marks = {True: [pytest.mark.slow], False: []}
    return [pytest.param(page, id=page.stem, marks=marks[page.stem in HALF_A_MINUTE]) for page in pages]


@pytest.mark.parametrize(
    ("page", "line"),
    [(page, line) for page, line in COMMANDS + IN_TEXT if line.startswith("kuramotognn ") and "…" not in line],
    ids=lambda value: value.stem if isinstance(value, Path) else "",
)
def test_commands_exist_with_their_flags(page: Path, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    rest = [token for token in shlex.split(line)[1:] if token != "--offline"]
    for flag in ("--data-root", "--config"):  # A flag of all commands, and a file that would be read.
        if flag in rest:
            place = rest.index(flag)
            del rest[place : place + 2]
    make_app(rest).parse_args(rest, exit_on_error=False, print_error=False)


def test_lines_that_are_not_run_are_there() -> None:
    for start in NOT_RUN:
        assert any(line.startswith(start) for _, line in COMMANDS), start


def test_make_targets_and_scripts_exist() -> None:
    targets = re.findall(r"^([a-z -]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    known = {name for names in targets for name in names.split()}
    for _, line in COMMANDS + IN_TEXT:
        if found := re.fullmatch(r"make ([a-z-]+)", line):
            assert found[1] in known, line
        if found := re.match(r"python (?:-m (benchmarks[.\w]+)|(\S+\.py))", line):
            path = f"{found[1].replace('.', '/')}.py" if found[1] else found[2]
            assert (ROOT / path).exists(), line


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_no_command_escapes_these_tests(page: Path) -> None:
    """Blocks are shell or Python, or a bash script that is parsed; commands do not stand in indented blocks."""
    text = page.read_text(encoding="utf-8")
    languages = re.findall(r"^```(\S*)\n.*?^```", text, flags=re.DOTALL | re.MULTILINE)
    assert set(languages) <= {"sh", "python", "bash"}
    for script in blocks(page, "bash"):
        subprocess.run(["bash", "-n"], input=script, text=True, check=True)
        for line in re.findall(r"kuramotognn ([^'\n]+)", script):
            make_app(shlex.split(line)).parse_args(shlex.split(line), exit_on_error=False, print_error=False)
    outside = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    assert not re.findall(r"^ {4,}(?:\$ )?(?:kuramotognn|make|pip|python) .*", outside, flags=re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([\w./:-]+)(?:#[^)]*)?\)", text):
        if not target.startswith(("http://", "https://")):
            assert (page.parent / target).exists(), target


def two_epochs(resolve: Callable[..., Any]) -> Callable[..., Any]:
    return lambda flags, *rest: resolve({**flags, "training.epochs": 2, "training.patience": 2}, *rest)


def karate_club() -> nx.Graph:
    """Zachary's club with a feature: how many friends a member has."""
    graph = nx.karate_club_graph()
    nx.set_node_attributes(graph, dict(graph.degree), "friends")
    return graph


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the pages name: a graph of one's own in several forms, runs, results, a model."""
    folder = tmp_path_factory.mktemp("desk")
    rng = np.random.default_rng(0)
    papers = [f"p{k}" for k in range(60)]
    cites = [f"{papers[k]},{papers[(7 * k + 1) % 60]}" for k in range(60)]
    topics = [f"{paper},{2000 + k},{'ab'[k % 2]}" for k, paper in enumerate(papers)]
    (folder / "papers.csv").write_text("\n".join(["paper_id,year,topic", *topics]))
    (folder / "cites.csv").write_text("\n".join(["from,to", *cites]))
    (folder / "new.csv").write_text("paper_id,year\nn1,2003\nn2,2004\n")
    (folder / "new_cites.csv").write_text("from,to\nn1,p1\nn2,p2\n")
    for name, rows in (("words", 60), ("new_words", 2)):
        words = scipy.sparse.csr_matrix(rng.integers(0, 2, (rows, 20)).astype(float))
        scipy.sparse.save_npz(folder / f"{name}.npz", words)
    ends = np.array([[k, (7 * k + 1) % 60] for k in range(60)])
    parts = ("train_masks", "val_masks", "test_masks")
    masks = {name: np.tile(np.arange(60) % 3 == k, (10, 1)) for k, name in enumerate(parts)}
    ratings = {"node_features": rng.normal(size=(60, 8)), "node_labels": np.arange(60) % 2, "edges": ends}
    np.save(folder / "features.npy", rng.normal(size=(60, 8)).astype(np.float32))
    np.savez(folder / "amazon_ratings.npz", **ratings, **masks)
    nx.write_graphml(karate_club(), folder / "club.graphml")
    (folder / "edges.csv").write_text("\n".join(["source,target", *(f"{a},{b}" for a, b in ends)]))
    (folder / "omega.txt").write_text("\n".join(str(value) for value in rng.normal(size=60)))
    (folder / "my_model.py").write_text("from torch_geometric.nn import GCN as MyGNN\n")
    shutil.copytree(ROOT / "examples", folder / "examples", ignore=shutil.ignore_patterns("notebooks"))
    (folder / "runs" / "experiments").mkdir(parents=True)
    shutil.copy(ROOT / "results" / "runs" / "dataset-statistics.jsonl", folder / "runs" / "experiments")
    for name, model in (("mine", "kuramotognn"), ("other", "grand-l"), ("kuramoto", "kuramotognn"), ("gcn", "gcn")):
        quick = ["--training.epochs", "2", "--splits", "1", "--quiet"]
        assert main(["train", "--model", model, "--out", str(folder / "runs" / name), *quick]) == 0
    return folder


@pytest.mark.parametrize("page", each(page for page in PAGES if any(map(is_run, lines(page)))))
def test_commands_run(page: Path, desk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the order of the page; training takes two epochs, and no browser is opened."""
    work = tmp_path / "work"
    shutil.copytree(desk, work)
    monkeypatch.chdir(work)
    monkeypatch.setattr(webbrowser, "open", lambda _: True)
    for module in ("kuramotognn.cli.train", "kuramotognn.explore.sources"):
        monkeypatch.setattr(f"{module}.resolve", two_epochs(__import__(module, fromlist=["resolve"]).resolve))
    for line in filter(is_run, lines(page)):
        if "--out runs/mine" in line:
            shutil.rmtree("runs/mine")
        assert main(shlex.split(line)[1:]) == 0, line


@pytest.mark.parametrize("page", each(PYTHON_PAGES))
def test_python_blocks_run(page: Path, desk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = tmp_path / "work"
    shutil.copytree(desk, work)
    monkeypatch.chdir(work)
    data = load_dataset("cora").largest_component().to_data()
    names: dict[str, Any] = {"__name__": "page", "data": data, "graph": karate_club()}
    names |= {"adjacency": scipy.sparse.eye(6, k=1).tocsr(), "x": torch.randn(6, 3), "y": torch.arange(6) % 2}
    for block in blocks(page, "python"):
        exec(compile(block, str(page), "exec"), names)
