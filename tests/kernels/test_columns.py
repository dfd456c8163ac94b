"""Columns of a flow never meet: some of them give, to the last bit, what they give among all of them."""

from __future__ import annotations

import pytest
import torch

from kuramotognn import Graph
from kuramotognn.kernels import CoupledSystem
from kuramotognn.solve import TABLEAUX


@pytest.mark.parametrize("linear", [False, True], ids=["sines", "linear"])
@pytest.mark.parametrize("method", ["euler", "rk4"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("num_nodes", [30, 1500])
def test_columns_of_a_flow_are_independent(num_nodes: int, dtype: torch.dtype, method: str, linear: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    edges = torch.randint(num_nodes, (2, 5 * num_nodes), generator=generator)
    graph = Graph.from_edge_index(edges, num_nodes, dtype=dtype)
    a = torch.rand(graph.num_edges, dtype=dtype, generator=generator) / 5
    x, source, upstream = (torch.randn(num_nodes, 45, dtype=dtype, generator=generator) for _ in range(3))

    def run(columns: slice) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        start, u = (each[:, columns].clone().requires_grad_() for each in (x, source))
        system = CoupledSystem(graph.pattern, a, u, 0.7, linear)
        end = system.flow(start, TABLEAUX[method].coefficients(0.1), 7, 1 << 30)
        return end.detach(), *torch.autograd.grad(end, (start, u), upstream[:, columns].contiguous())

    whole = run(slice(None))
    for columns in (slice(0, 1), slice(1, 24), slice(22, 45)):
        for part, all_columns in zip(run(columns), whole, strict=True):
            assert part.equal(all_columns[:, columns])
