# %% [markdown]
# # Fit coupling strengths to data by gradient
#
# Flows are differentiable in everything: initial phases, natural frequencies, couplings. So a network of oscillators can be
# fitted to recordings. We simulate a network with known couplings, add noise, and find the couplings again from the
# recordings alone.

# %%
import math

import matplotlib.pyplot as plt
import torch

from kuramotognn import CoupledDynamics, Couplings, Graph, Solver, integrate

generator = torch.Generator().manual_seed(0)
NODES, RECORDINGS, NOISE = 30, 20, 0.02
ends = torch.combinations(torch.arange(NODES))
ends = ends[torch.rand(len(ends), generator=generator) < 0.15].t()
graph = Graph.from_edge_index(torch.cat([ends, ends.flip(0)], dim=1), NODES, dtype=torch.float64)
pattern = graph.pattern
edges = pattern.col.numel()
print(f"{NODES} oscillators, {edges} couplings (each direction has its own)")

# %% [markdown]
# The true couplings lie between 0 and 1. Channels of the state are recordings of the same network from different initial
# phases; one call integrates them all.

# %%
true_couplings = torch.rand(edges, dtype=torch.float64, generator=generator)
true_omega = 0.5 * torch.randn(NODES, 1, dtype=torch.float64, generator=generator)
x0 = 2 * math.pi * torch.rand(NODES, RECORDINGS, dtype=torch.float64, generator=generator)
times, solver = [0.25 * step for step in range(1, 17)], Solver("rk4", step_size=0.125)


def recordings(couplings: torch.Tensor, omega: torch.Tensor) -> torch.Tensor:
    dynamics = CoupledDynamics(Couplings(pattern, couplings), omega.expand(-1, RECORDINGS), 1.0)
    return integrate(dynamics, x0, times[-1], solver, save_at=times).ys


clean = recordings(true_couplings, true_omega)
observed = clean + NOISE * torch.randn(clean.shape, dtype=torch.float64, generator=generator)
list(observed.shape)  # times, oscillators, recordings

# %% [markdown]
# Now pretend that couplings and frequencies are unknown. The loss compares angles, so full turns do not matter. Its gradient
# is the exact gradient of the steps. Over a long time the loss has many local minima, so the fit begins with the first two
# times and takes in later ones step by step.

# %%
couplings = torch.full((edges,), 0.5, dtype=torch.float64, requires_grad=True)
omega = torch.zeros(NODES, 1, dtype=torch.float64, requires_grad=True)
optimiser = torch.optim.Adam([couplings, omega], lr=0.02)
losses = []
for step in range(300):
    optimiser.zero_grad()
    horizon = 2 + step // 15
    loss = (1 - torch.cos(recordings(couplings, omega) - observed))[:horizon].mean()
    loss.backward()
    optimiser.step()
    losses.append(float(loss.detach()))
error = float((couplings.detach() - true_couplings).abs().mean())
print(f"loss {losses[0]:.4f} → {losses[-1]:.6f}; noise alone would give {NOISE**2 / 2:.6f}")
print(f"mean error of a coupling {error:.4f}, of a frequency {float((omega.detach() - true_omega).abs().mean()):.4f}")

# %%
# Picture: Left: the loss against steps, with the level of the noise. Right: fitted couplings against true ones, close to the diagonal
figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.6), layout="constrained")
left.semilogy(losses)
left.axhline(NOISE**2 / 2, linestyle=":", color="0.4", label="noise")
left.set(xlabel="step", ylabel="loss")
left.legend()
right.plot([0, 1], [0, 1], linestyle=":", color="0.4")
right.plot(true_couplings, couplings.detach(), ".")
_ = right.set(xlabel="true coupling", ylabel="fitted coupling", aspect="equal")

# %% [markdown]
# The same works for phase lags (`Sakaguchi`), for delays, and for couplings that a network computes from features.
