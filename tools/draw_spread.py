"""Draw docs/images/spread.svg: how far apart node features stay along the flow, on Cora.

    python tools/draw_spread.py

Random initial phases, random-walk couplings, K = 1. Equal natural frequencies synchronise in phase, GRAND (the linear
equation) likewise: over-smoothing. With ω = x(0), as in KuramotoGNN, nodes stay apart.
"""

from pathlib import Path

import torch
from matplotlib.figure import Figure

from kuramotognn import Graph, RandomWalk, Solver, integrate, load_dataset
from kuramotognn.fields import CoupledDynamics, Couplings
from kuramotognn.plots.style import save_figure

OUT = Path(__file__).parent.parent / "docs" / "images" / "spread.svg"
TIME, CHANNELS = 100.0, 16


def main() -> None:
    cora = load_dataset("cora").largest_component()
    graph = Graph.from_edge_index(cora.edge_index, cora.num_nodes)
    x0 = torch.rand(cora.num_nodes, CHANNELS, generator=torch.Generator().manual_seed(0)) - 0.5
    a = RandomWalk()(x0, graph)
    times = [0.0, *(TIME * (k + 1) / 100 for k in range(100))]

    def flow(omega: torch.Tensor, scale: float) -> list[float]:
        dynamics = CoupledDynamics(Couplings(graph.pattern, a), scale * omega, 1.0)
        states = integrate(dynamics, scale * x0, TIME, Solver("rk4", step_size=0.25), save_at=times).ys / scale
        return states.std(dim=1).mean(dim=1).tolist()

    lines = {
        "KuramotoGNN: ω = x(0)": (flow(x0, 1.0), "-"),
        "equal ω: phase synchronisation": (flow(torch.zeros_like(x0), 1.0), "--"),
        # Phases so small that sin x = x in float32: the paper's linearisation, GRAND.
        "GRAND (linearised, no source)": (flow(torch.zeros_like(x0), 1e-4), ":"),
    }
    figure = Figure(figsize=(7.2, 3.4), layout="constrained")
    axes = figure.subplots()
    for name, (spread, style) in lines.items():
        axes.semilogy(times, spread, style, label=name, linewidth=2)
    axes.set(xlabel="time t (depth)", ylabel="spread of node features\n(std over nodes)")
    axes.set_title("Cora, random initial phases, K = 1", fontsize=10)
    axes.grid(alpha=0.3, which="both")
    axes.legend(frameon=False)
    save_figure(figure, OUT)


if __name__ == "__main__":
    main()
