"""Attraction and repulsion: two camps that agree inside and oppose each other.

Thirty oscillators on a random graph; edges inside a camp attract, edges between camps have a negative weight and repel.
With all edges attractive everyone agrees; with signs each camp agrees with itself, half a turn away from the other.
"""

import math

import torch
from torch import Tensor

from kuramotognn import Graph, KuramotoDynamics, Solver, integrate

NODES = 30


def mean_phasor(x: Tensor) -> Tensor:
    """Its length says how far oscillators agree, its angle on what."""
    return torch.polar(torch.ones_like(x), x).mean()


def main() -> None:
    generator = torch.Generator().manual_seed(0)
    camp = torch.arange(NODES) % 2
    ends = torch.randint(NODES, (2, 150), generator=generator)
    ends = ends[:, ends[0] != ends[1]]
    graph = Graph.from_edge_index(torch.cat([ends, ends.flip(0)], dim=1), NODES, dtype=torch.float64)
    pattern = graph.pattern
    share = 1 / pattern.sum_rows(graph.weight)
    sign = torch.where(camp[pattern.row] == camp[pattern.col], 1.0, -1.0).double()
    x0 = 2 * math.pi * torch.rand(NODES, 1, dtype=torch.float64, generator=generator)
    print("couplings     everyone   camp 0   camp 1   between camps / π")
    for name, signs in (("attractive", torch.ones_like(sign)), ("signed", sign)):
        a = signs * pattern.of_row(share)
        dynamics = KuramotoDynamics(pattern, a, torch.zeros_like(x0), 2.0)
        final = integrate(dynamics, x0, 30.0, Solver("rk4", step_size=0.25)).final
        camps = [mean_phasor(final[camp == number]) for number in (0, 1)]
        apart = float((camps[0] / camps[1]).angle().abs()) / math.pi
        print(
            f"{name:12s} {float(mean_phasor(final).abs()):9.2f} {float(camps[0].abs()):8.2f}"
            f" {float(camps[1].abs()):8.2f} {apart:19.2f}"
        )


if __name__ == "__main__":
    main()
