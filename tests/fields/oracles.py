"""The equations in dense NumPy, edge by edge, and SciPy's solver: what the fields are compared with."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

from kuramotognn import Attention, Graph, SignedAttention

Array = NDArray[np.float64]
Velocity = Callable[[Array], Array]


def graph20(*, signed: bool = False) -> Graph:
    """Twenty nodes, random directed weighted edges, some self-loops; node 19 hears nobody."""
    generator = torch.Generator().manual_seed(5)
    edges = torch.randint(20, (2, 70), generator=generator)
    edges = edges[:, edges[1] != 19]
    weight = 0.2 + torch.rand(edges.size(1), generator=generator, dtype=torch.float64)
    if signed:
        weight = torch.where(torch.arange(len(weight)) % 3 == 0, -weight, weight)
    return Graph.from_edge_index(edges, 20, weight)


def start(num_nodes: int = 20, channels: int = 2, seed: int = 0) -> torch.Tensor:
    return torch.randn(num_nodes, channels, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def matrix(graph: Graph, values: torch.Tensor | None = None) -> Array:
    dense = np.zeros((graph.num_nodes, graph.num_nodes))
    dense[graph.pattern.row.numpy(), graph.pattern.col.numpy()] = (graph.weight if values is None else values).detach()
    return dense


def walk(w: Array) -> Array:
    total = w.sum(axis=1, keepdims=True)
    return w / np.where(total == 0, 1.0, total)


def symmetric(w: Array) -> Array:
    """GCN's matrix: self-loops of weight one where there is none."""
    w = w + np.diag((np.diag(w) == 0).astype(float))
    degree = w.sum(axis=1)
    return w / np.sqrt(degree[:, None] * degree[None])


def attention(module: Attention, w: Array, x: Array) -> Array:
    k, q, b = (t.detach().numpy() for t in (module.key.weight, module.query.weight, module.key.bias))
    width = module.width // module.heads
    keys, queries = (part.reshape(len(x), module.heads, width) for part in (x @ k.T + b, x @ q.T))
    scores = np.einsum("ihk,jhk->hij", keys, queries) / np.sqrt(width)
    return np.stack([walk(w * np.exp(s)) for s in scores]).mean(axis=0)


def signed_attention(module: SignedAttention, w: Array, x: Array) -> Array:
    p, q = module.listener.weight.detach().numpy(), module.speaker.weight.detach().numpy()
    kappa = np.tanh(module.bias.item() + (x @ p.T) @ (x @ q.T).T / np.sqrt(module.attention.width))
    return attention(module.attention, np.abs(w), x) * np.sign(w) * kappa


def sines(a: Array, others: Array, own: Array) -> Array:
    """Σ_j a_ij sin(p_j − q_i), as written."""
    return np.einsum("ij,ijc->ic", a, np.sin(others[None] - own[:, None]))


def solve(velocity: Velocity, state: Array, time: float) -> Array:
    """SciPy's answer; the state may have any shape."""
    solution = solve_ivp(
        lambda t, z: velocity(z.reshape(state.shape)).ravel(),
        (0, time),
        state.ravel(),
        method="DOP853",
        rtol=1e-11,
        atol=1e-12,
    )
    return solution.y[:, -1].reshape(state.shape)
