"""A delay decides at which rhythm a ring of identical oscillators agrees, and whether it agrees at all.

In phase they turn at a root Ω of Ω = ω − K sin(Ω τ), which holds where cos(Ω τ) > 0 (Yeung and Strogatz, 1999).
"""

import math

import torch
from torch import Tensor

from kuramotognn import Graph, RandomWalk, Solver, integrate
from kuramotognn.fields import DelayedKuramotoDynamics

OMEGA, COUPLING, TIME = 1.5, 0.5, 60.0


def order(x: Tensor) -> float:
    """|mean of e^{ix}|: 1 in phase, near 0 when spread over the circle."""
    return float(torch.polar(torch.ones_like(x), x).mean().abs())


def main() -> None:
    here = torch.arange(12)
    edges = torch.cat([torch.stack([here, here.roll(shift)]) for shift in (-1, 1)], dim=1)
    graph = Graph.from_edge_index(edges, 12, dtype=torch.float64)
    x0 = 0.3 * torch.randn(12, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    a, omega = RandomWalk()(x0, graph), torch.full_like(x0, OMEGA)
    print("delay τ   order   frequency Ω   ω − K sin(Ω τ)   cos(Ω τ)")
    for delay in (0.2, 0.6, 1.0, 2.0, 4.0):
        dynamics = DelayedKuramotoDynamics(graph.pattern, a, omega, COUPLING, delay)
        before, after = integrate(dynamics, x0, TIME, Solver("rk4", step_size=0.2), save_at=[TIME - 1, TIME]).ys
        found = float((after - before).mean())
        predicted, stable = OMEGA - COUPLING * math.sin(found * delay), math.cos(found * delay)
        print(f"{delay:7.1f} {order(after):7.2f} {found:13.3f} {predicted:16.3f} {stable:10.2f}")


if __name__ == "__main__":
    main()
