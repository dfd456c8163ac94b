"""A phase lag lowers the frequency of synchronised oscillators; beyond π/2 they do not synchronise.

Forty identical oscillators on a random graph start with similar phases. The synchronised frequency is ω − K sin λ.
"""

import math

import torch
from torch import Tensor

from kuramotognn import Couplings, Graph, RandomWalk, Sakaguchi, Solver, integrate

OMEGA, COUPLING, TIME = 0.3, 1.0, 20.0


def order(x: Tensor) -> float:
    """The order parameter: 1 if all phases are equal, near 0 if they are spread over the circle."""
    return float(torch.polar(torch.ones_like(x), x).mean().abs())


def main() -> None:
    generator = torch.Generator().manual_seed(0)
    ends = torch.randint(40, (2, 160), generator=generator)
    graph = Graph.from_edge_index(torch.cat([ends, ends.flip(0)], dim=1), 40, dtype=torch.float64)
    x0 = 0.2 * torch.randn(40, 1, dtype=torch.float64, generator=generator)
    couplings, omega = Couplings.of(RandomWalk(), x0, graph), torch.full_like(x0, OMEGA)
    print("lag λ   order   frequency   ω − K sin λ")
    for lag in (0.0, 0.4, 0.8, 1.2, 2.0):
        dynamics = Sakaguchi(lag)(omega, couplings, COUPLING)
        before, after = integrate(dynamics, x0, TIME, Solver("rk4", step_size=0.2), save_at=[TIME - 1, TIME]).ys
        predicted = OMEGA - COUPLING * math.sin(lag)
        print(f"{lag:5.1f} {order(after):7.2f} {float((after - before).mean()):11.3f} {predicted:13.3f}")


if __name__ == "__main__":
    main()
