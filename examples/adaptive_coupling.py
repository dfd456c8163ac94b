"""Adaptive couplings separate two groups: couplings inside a group stay, couplings between the groups decay.

Two groups with different natural frequencies share one complete graph. With fixed couplings all nodes synchronise. With
adaptive couplings those between the groups, whose phases differ, decay, and each group keeps its own frequency.
"""

import torch

from kuramotognn import Graph, RandomWalk, Solver, integrate
from kuramotognn.fields import AdaptiveKuramotoDynamics

NODES, COUPLING, TIME = 20, 2.2, 30.0


def main() -> None:
    generator = torch.Generator().manual_seed(0)
    group = torch.arange(NODES) % 2
    edges = torch.combinations(torch.arange(NODES)).t()
    graph = Graph.from_edge_index(torch.cat([edges, edges.flip(0)], dim=1), NODES, dtype=torch.float64)
    omega = torch.where(group == 0, -1.0, 1.0)[:, None].double()
    x0 = 0.3 * torch.randn(NODES, 1, dtype=torch.float64, generator=generator) + 0.5 * omega
    inside = group[graph.pattern.row] == group[graph.pattern.col]
    a, late = RandomWalk()(x0, graph), torch.linspace(TIME / 2, TIME, 31).tolist()
    print("rate ε   mean coupling inside   between   frequency of group 0, group 1")
    for rate in (0.0, 0.1, 0.5, 2.0):
        dynamics = AdaptiveKuramotoDynamics(graph.pattern, a, omega, COUPLING, rate)
        solver = Solver("rk4", step_size=0.25)
        states = integrate(dynamics, dynamics.start(x0), TIME, solver, save_at=late).ys
        kept = dynamics.couplings(states).mean(dim=0) / a
        phases = dynamics.nodes(states).squeeze(-1)
        frequency = (phases[-1] - phases[0]) / (late[-1] - late[0])
        groups = [float(frequency[group == number].mean()) for number in (0, 1)]
        print(
            f"{rate:6.1f} {float(kept[inside].mean()):22.2f} {float(kept[~inside].mean()):9.2f}"
            f" {groups[0]:20.2f}, {groups[1]:.2f}"
        )


if __name__ == "__main__":
    main()
