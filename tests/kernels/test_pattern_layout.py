"""Patterns as the compiled kernels read them."""

import gc
import weakref

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kuramotognn import Graph
from kuramotognn.graph import Pattern
from kuramotognn.kernels.pattern_layout import balanced_chunks, flow_layout, layout, pattern_of
from tests.conftest import graphs, ring
from tests.kernels.comparing import random_graph, uniform


def pointers(degrees: list[int]) -> torch.Tensor:
    return torch.tensor([0, *degrees]).cumsum(0)


@given(st.lists(st.integers(0, 500), max_size=200))
def test_chunks_cover_every_row_once(degrees: list[int]) -> None:
    bounds = balanced_chunks(pointers(degrees))
    assert (bounds[0], bounds[-1], bool((bounds.diff() >= 0).all())) == (0, len(degrees), True)


def test_chunks_have_about_equal_work() -> None:
    degrees = torch.randint(0, 20, (10_000,), generator=torch.Generator().manual_seed(0)).tolist()
    rowptr = pointers(degrees)
    work = rowptr[balanced_chunks(rowptr)].diff().double()
    assert work.max() < 1.2 * work.mean()


def assert_same_pattern(ours: Pattern, theirs: Pattern) -> None:
    for name in ("rowptr", "row", "col", "transposed_rowptr", "transpose"):
        assert getattr(ours, name).equal(getattr(theirs, name)), name


@given(graphs())
def test_a_layout_tells_its_pattern(graph: Graph) -> None:
    assert_same_pattern(pattern_of(layout(graph.pattern)), graph.pattern)


def test_a_rectangular_layout_tells_its_pattern() -> None:
    row, col = (uniform(0, 7, 12) < 0.3).nonzero().t().contiguous()
    pattern = Pattern.from_sorted(row, col, 7, 12)
    assert_same_pattern(pattern_of(layout(pattern)), pattern)


def test_a_renumbered_layout_tells_its_pattern(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kuramotognn.kernels.pattern_layout.REORDER_FROM", 2)
    pattern = random_graph(300, 900, torch.float64).pattern
    assert not flow_layout(pattern).equal(layout(pattern)), "the nodes keep their order"
    assert_same_pattern(pattern_of(flow_layout(pattern)), pattern)


def test_a_layout_is_built_once_and_goes_with_its_pattern() -> None:
    graph = ring(5)
    block = layout(graph.pattern)
    assert layout(graph.pattern) is block
    gone = weakref.ref(graph.pattern)
    del graph
    gc.collect()
    assert gone() is None
