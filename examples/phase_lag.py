"""A phase lag slows a synchronised crowd down and, beyond π/2, drives it apart.

Forty identical oscillators on a random graph start close to each other. In phase they turn at ω − K sin λ.
"""

import math

import torch
from torch import Tensor

from kuramotognn import Graph, RandomWalk, Solver, integrate
from kuramotognn.fields import SakaguchiDynamics

OMEGA, COUPLING, TIME = 0.3, 1.0, 20.0


def order(x: Tensor) -> float:
    """|mean of e^{ix}|: 1 in phase, near 0 when spread over the circle."""
    return float(torch.polar(torch.ones_like(x), x).mean().abs())


def main() -> None:
    generator = torch.Generator().manual_seed(0)
    ends = torch.randint(40, (2, 160), generator=generator)
    graph = Graph.from_edge_index(torch.cat([ends, ends.flip(0)], dim=1), 40, dtype=torch.float64)
    x0 = 0.2 * torch.randn(40, 1, dtype=torch.float64, generator=generator)
    a, omega = RandomWalk()(x0, graph), torch.full_like(x0, OMEGA)
    print("lag λ   order   frequency   ω − K sin λ")
    for lag in (0.0, 0.4, 0.8, 1.2, 2.0):
        dynamics = SakaguchiDynamics(graph.pattern, a, omega, COUPLING, lag)
        before, after = integrate(dynamics, x0, TIME, Solver("rk4", step_size=0.2), save_at=[TIME - 1, TIME]).ys
        predicted = OMEGA - COUPLING * math.sin(lag)
        print(f"{lag:5.1f} {order(after):7.2f} {float((after - before).mean()):11.3f} {predicted:13.3f}")


if __name__ == "__main__":
    main()
