"""Negative couplings between two groups keep their phases half a turn apart.

Thirty oscillators on a random graph. Couplings inside a group are positive, couplings between groups are negative. With
positive couplings only, all oscillators synchronise; with signed ones each group synchronises, opposite to the other.
"""

import math

import torch
from torch import Tensor

from kuramotognn import Graph, Solver, integrate
from kuramotognn.fields import CoupledDynamics, Couplings

NODES = 30


def mean_phasor(x: Tensor) -> Tensor:
    """The order parameter: its length measures synchrony, its angle is the mean phase."""
    return torch.polar(torch.ones_like(x), x).mean()


def main() -> None:
    generator = torch.Generator().manual_seed(0)
    group = torch.arange(NODES) % 2
    ends = torch.randint(NODES, (2, 150), generator=generator)
    ends = ends[:, ends[0] != ends[1]]
    graph = Graph.from_edge_index(torch.cat([ends, ends.flip(0)], dim=1), NODES, dtype=torch.float64)
    pattern = graph.pattern
    share = 1 / pattern.sum_rows(graph.weight)
    sign = torch.where(group[pattern.row] == group[pattern.col], 1.0, -1.0).double()
    x0 = 2 * math.pi * torch.rand(NODES, 1, dtype=torch.float64, generator=generator)
    print("couplings          all   group 0  group 1  between groups / π")
    for name, signs in (("attractive", torch.ones_like(sign)), ("signed", sign)):
        a = signs * pattern.of_row(share)
        dynamics = CoupledDynamics(Couplings(pattern, a), torch.zeros_like(x0), 2.0)
        final = integrate(dynamics, x0, 30.0, Solver("rk4", step_size=0.25)).final
        groups = [mean_phasor(final[group == number]) for number in (0, 1)]
        apart = float((groups[0] / groups[1]).angle().abs()) / math.pi
        print(
            f"{name:12s} {float(mean_phasor(final).abs()):9.2f} {float(groups[0].abs()):8.2f}"
            f" {float(groups[1].abs()):8.2f} {apart:19.2f}"
        )


if __name__ == "__main__":
    main()
