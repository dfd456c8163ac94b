"""Oscillators on a small-world network: synchrony grows with the share of rewired edges.

Run it with ``python examples/synchronisation.py``; it draws ``synchronisation.png`` and ``synchronisation.gif``.
"""

import numpy as np

from kuramotognn.plots.simulation_plots import animate, draw_order
from kuramotognn.simulate import Frequencies, Oscillators, simulate, small_world


def main() -> None:
    frequencies = Frequencies("normal", width=0.3)
    print("rewired    mean order r")
    for probability in (0.0, 0.05, 0.2, 1.0):
        ring = small_world(300, 6, probability, np.random.default_rng(0))
        run = simulate(Oscillators(graph=ring, coupling=0.5, frequencies=frequencies), 100.0)
        print(f"{probability:9.2f}  {run.mean_order:.3f}")
    ring = small_world(60, 4, 0.2, np.random.default_rng(1))
    run = simulate(Oscillators(graph=ring, frequencies=frequencies), 20.0, samples=80, keep_phases=True)
    draw_order(run, "synchronisation.png")
    animate(run, "synchronisation.gif", graph=ring)


if __name__ == "__main__":
    main()
