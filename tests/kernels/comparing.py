"""What tests of kernels compare: random operands, errors, bits."""

from collections.abc import Callable

import pytest
import torch
from hypothesis import strategies as st
from torch import Tensor

from kuramotognn import Graph

TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-4}
DTYPES = pytest.mark.parametrize("dtype", list(TOLERANCE), ids=str)
CHANNELS = st.sampled_from([1, 2, 3, 8, 15, 16, 17, 24, 31, 37, 41])


def normal(seed: int, *shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def uniform(seed: int, *shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def leaves(*tensors: Tensor, dtype: torch.dtype | None = None) -> list[Tensor]:
    return [tensor.detach().to(dtype or tensor.dtype).clone().requires_grad_() for tensor in tensors]


def random_graph(num_nodes: int, num_edges: int, dtype: torch.dtype) -> Graph:
    """Directed and weighted, with self-loops and rows of very different lengths."""
    generator = torch.Generator().manual_seed(7)
    source = torch.randint(num_nodes, (num_edges,), generator=generator)
    target = (num_nodes * torch.rand(num_edges, generator=generator).square()).long()
    return Graph.from_edge_index(torch.stack([source, target]), num_nodes, uniform(8, num_edges, dtype=dtype))


def assert_near(actual: Tensor, expected: Tensor, tolerance: float, terms: float = 1.0) -> None:
    """Relative to the largest number expected, or to the ``terms`` whose sum it is, where they may cancel."""
    assert actual.shape == expected.shape
    scale = max(float(expected.abs().max()) if expected.numel() else 0.0, terms)
    torch.testing.assert_close(actual.double(), expected, atol=tolerance * scale, rtol=0.0)


def all_near(actual: list[Tensor], expected: list[Tensor], tolerance: float, terms: float = 1.0) -> None:
    for ours, theirs in zip(actual, expected, strict=True):
        assert_near(ours, theirs, tolerance, terms)


def assert_same_bits(actual: list[Tensor], expected: list[Tensor]) -> None:
    assert [ours.equal(theirs) for ours, theirs in zip(actual, expected, strict=True)] == [True] * len(expected)


def with_gradients(y: Tensor, inputs: list[Tensor], upstream: Tensor) -> list[Tensor]:
    gradients = torch.autograd.grad(y, inputs, upstream.to(y.dtype), materialize_grads=True)
    return [y.detach(), *gradients]


def assert_bits_never_change(run: Callable[[], list[Tensor]], set_threads: Callable[[int], None]) -> list[Tensor]:
    """With one thread and with two, both twice; returns the results."""
    set_threads(1)
    first = run()
    for threads in (2, 2, 1):
        set_threads(threads)
        assert_same_bits(run(), first)
    return first
