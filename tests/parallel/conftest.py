from collections.abc import Iterator

import pytest

from tests.parallel.processes import Processes


@pytest.fixture(scope="session")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    """Two ranks, started once for all tests."""
    processes = Processes(2, tmp_path_factory.mktemp("two"))
    yield processes
    processes.end()


@pytest.fixture(scope="session")
def four(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    """Four ranks, started once for all tests."""
    processes = Processes(4, tmp_path_factory.mktemp("four"))
    yield processes
    processes.end()
