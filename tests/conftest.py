"""Random graphs, threads and instruction sets for tests, and the raw public data where it is at hand."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from kuramotognn import Graph
from kuramotognn.cli import main
from kuramotognn.kernels import library

settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
settings.load_profile("default")


@st.composite
def graphs(draw: st.DrawFn, max_nodes: int = 9, weighted: bool = True) -> Graph:
    """Directed graphs in float64 with self-loops, repeated edges, empty rows; one node or no edge included."""
    num_nodes = draw(st.integers(1, max_nodes))
    node = st.integers(0, num_nodes - 1)
    edges = draw(st.lists(st.tuples(node, node), max_size=25))
    edge_index = torch.tensor(edges, dtype=torch.long).reshape(-1, 2).t()
    weight = None
    if weighted and draw(st.booleans()):
        values = draw(st.lists(st.floats(0.0, 3.0), min_size=len(edges), max_size=len(edges)))
        weight = torch.tensor(values, dtype=torch.float64)
    return Graph.from_edge_index(edge_index, num_nodes, weight, dtype=torch.float64)


def ring(num_nodes: int, dtype: torch.dtype = torch.float64) -> Graph:
    """Each node coupled to the next, both ways."""
    here = torch.arange(num_nodes)
    there = here.roll(-1)
    return Graph.from_edge_index(
        torch.stack([torch.cat([here, there]), torch.cat([there, here])]), num_nodes, dtype=dtype
    )


@pytest.fixture
def assert_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[list[str], str], None]:
    """Checks that a command line is refused with one sentence and exit code 2, and leaves no file behind."""

    def check(arguments: list[str], sentence: str) -> None:
        monkeypatch.chdir(tmp_path)
        assert main(arguments) == 2
        error = capsys.readouterr().err
        assert sentence in error
        assert error.startswith("kuramotognn: ")
        assert error.count("\n") == 1
        assert not list(tmp_path.iterdir()), "nothing is left behind"

    return check


Refused = Callable[[list[str], str], None]


@pytest.fixture(scope="session")
def shared_datasets() -> Path:
    """Raw files of public data sets, beside the checkout."""
    folder = Path(__file__).parent.parent.parent / "shared" / "datasets"
    if not folder.is_dir():
        pytest.skip("raw public data sets are not at hand (looked for shared/datasets beside the checkout)")
    return folder


@pytest.fixture(scope="session")
def raw_root(shared_datasets: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data root of our own whose data sets are links to the shared ones, which stay untouched."""
    root = tmp_path_factory.mktemp("data-root")
    for folder in shared_datasets.iterdir():
        if folder.is_dir():
            for file in folder.rglob("*"):
                if file.is_file():
                    link = root / file.relative_to(shared_datasets)
                    link.parent.mkdir(parents=True, exist_ok=True)
                    link.symlink_to(file)
    return root


@pytest.fixture
def set_threads() -> Iterator[Callable[[int], None]]:
    """To change the number of threads, which is as before after the test."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.fixture(scope="module", params=library.instruction_sets())
def isa(request: pytest.FixtureRequest) -> Iterator[str]:
    """Every instruction set that the processor has, in turn."""
    before = os.environ.get(library.ISA)
    os.environ[library.ISA] = request.param
    library.kernels.cache_clear()
    assert library.kernels().isa == request.param
    yield request.param
    os.environ.pop(library.ISA) if before is None else os.environ.update({library.ISA: before})
    library.kernels.cache_clear()
