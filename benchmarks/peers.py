"""What others run today: the same flow by per-edge messages, and by the supplement's three sparse products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import MessagePassing
from torchdiffeq import odeint

from benchmarks.workloads import STEP
from kuramotognn.graph import Graph, Pattern
from kuramotognn.kernels.attention.reference import attention_per_edge

FieldFunction = Callable[[Tensor], Tensor]


class SineMessages(MessagePassing):
    """(a) One sine per edge and channel, by PyG's message passing and autograd."""

    def __init__(self) -> None:
        super().__init__(aggr="add")

    def forward(self, x: Tensor, edge_index: Tensor, a: Tensor) -> Tensor:
        return self.propagate(edge_index, x=x, a=a)

    def message(self, x_i: Tensor, x_j: Tensor, a: Tensor) -> Tensor:
        return a[:, None] * torch.sin(x_j - x_i)


class LocalOrder(torch.autograd.Function):
    """(b) R sin(Φ − X) with three torch CSR products; its gradient by hand, on a stored transpose."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, a: Tensor, pattern: Pattern) -> Tensor:
        matrix = csr(pattern, a)
        sin, cos = torch.sin(x), torch.cos(x)
        phi, a_sin, a_cos = matrix @ x, matrix @ sin, matrix @ cos
        radius = torch.sqrt(a_sin * a_sin + a_cos * a_cos)
        ctx.save_for_backward(x, a, phi, a_sin, a_cos, radius)
        ctx.pattern = pattern
        return radius * torch.sin(phi - x)

    @staticmethod
    def backward(ctx: Any, u: Tensor) -> tuple[Tensor, Tensor, None]:
        x, a, phi, a_sin, a_cos, radius = ctx.saved_tensors
        pattern: Pattern = ctx.pattern
        sin, cos = torch.sin(x), torch.cos(x)
        transpose = csr(pattern.transposed, a[pattern.transpose])
        turn = u * radius * torch.cos(phi - x)
        stretch = u * torch.sin(phi - x) / radius.clamp_min(1e-12)
        g_sin, g_cos = stretch * a_sin, stretch * a_cos
        grad_x = transpose @ turn - turn + cos * (transpose @ g_sin) - sin * (transpose @ g_cos)
        grad_a = (
            edge_products(pattern, turn, x) + edge_products(pattern, g_sin, sin) + edge_products(pattern, g_cos, cos)
        )
        return grad_x, grad_a, None


def csr(pattern: Pattern, values: Tensor) -> Tensor:
    """A torch CSR matrix."""
    shape = (pattern.num_rows, pattern.num_cols)
    return torch.sparse_csr_tensor(pattern.rowptr, pattern.col, values, shape, check_invariants=False)


def edge_products(pattern: Pattern, left: Tensor, right: Tensor) -> Tensor:
    """<left_i, right_j> for every edge, in slices that stay in cache."""
    out = left.new_empty(pattern.num_entries)
    for start in range(0, out.numel(), 1 << 14):
        part = slice(start, start + (1 << 14))
        out[part] = torch.einsum("ed,ed->e", left[pattern.row[part]], right[pattern.col[part]])
    return out


def per_edge(graph: Graph, a: Tensor) -> FieldFunction:
    """Peer (a) as a function of the phases."""
    layer, edge_index = SineMessages(), graph.edge_index
    return lambda x: layer(x, edge_index, a)


def three_products(graph: Graph, a: Tensor) -> FieldFunction:
    """Peer (b) as a function of the phases."""
    return lambda x: LocalOrder.apply(x, a, graph.pattern)


def flow(field: FieldFunction, x: Tensor, omega: Tensor, time: float, step: float = STEP) -> Tensor:
    """Euler under torchdiffeq, with autograd's full tape."""
    t = torch.tensor([0.0, time])
    return odeint(lambda _, z: omega + field(z), x, t, method="euler", options={"step_size": step})[-1]


class PeerModel(nn.Module):
    """KuramotoGNN as one would write it with these parts."""

    def __init__(
        self, ours: Any, make_field: Callable[[Graph, Tensor], FieldFunction], step: float, dense: bool
    ) -> None:
        super().__init__()
        self.encoder, self.decoder, self.adjacency = ours.encoder, ours.decoder, ours.field.adjacency
        self.make_field, self.step, self.dense, self.time = make_field, step, dense, ours.time

    def forward(self, x: Any, graph: Graph) -> Tensor:
        if self.dense:
            linear = self.encoder.linear
            x0 = linear(F.dropout(x, self.encoder.dropout, self.training))
        else:
            x0 = self.encoder(x)
        shape = (x0.size(0), self.adjacency.heads, -1)
        key, query = self.adjacency.key(x0).view(shape), self.adjacency.query(x0).view(shape)
        a = attention_per_edge(graph.pattern, key, query, graph.weight)
        return self.decoder(flow(self.make_field(graph, a), x0, x0, self.time, self.step))
