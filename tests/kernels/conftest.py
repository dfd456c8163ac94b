"""Threads and instruction sets for tests of kernels."""

import os
from collections.abc import Callable, Iterator

import pytest
import torch

from kuramotognn.kernels import library


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
