"""The delay determines whether a ring of identical oscillators synchronises, and at which frequency.

The synchronised frequency is a root of Ω = ω − K sin(Ω τ); it is stable if cos(Ω τ) > 0 (Yeung and Strogatz, 1999).
"""

import math

import torch
from torch import Tensor

from kuramotognn import Couplings, DelayedKuramoto, Graph, RandomWalk, Solver, integrate

OMEGA, COUPLING, TIME = 1.5, 0.5, 60.0


def order(x: Tensor) -> float:
    """The order parameter: 1 if all phases are equal, near 0 if they are spread over the circle."""
    return float(torch.polar(torch.ones_like(x), x).mean().abs())


def main() -> None:
    here = torch.arange(12)
    edges = torch.cat([torch.stack([here, here.roll(shift)]) for shift in (-1, 1)], dim=1)
    graph = Graph.from_edge_index(edges, 12, dtype=torch.float64)
    x0 = 0.3 * torch.randn(12, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    couplings, omega = Couplings.of(RandomWalk(), x0, graph), torch.full_like(x0, OMEGA)
    print("delay τ   order   frequency Ω   ω − K sin(Ω τ)   cos(Ω τ)")
    for delay in (0.2, 0.6, 1.0, 2.0, 4.0):
        dynamics = DelayedKuramoto(delay)(omega, couplings, COUPLING)
        before, after = integrate(dynamics, x0, TIME, Solver("rk4", step_size=0.2), save_at=[TIME - 1, TIME]).ys
        found = float((after - before).mean())
        predicted, stable = OMEGA - COUPLING * math.sin(found * delay), math.cos(found * delay)
        print(f"{delay:7.1f} {order(after):7.2f} {found:13.3f} {predicted:16.3f} {stable:10.2f}")


if __name__ == "__main__":
    main()
