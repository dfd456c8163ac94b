# %% [markdown]
# # The Kuramoto transition with 100,000 oscillators
#
# Oscillators with different natural frequencies, coupled all to all with strength K. Below a critical strength $K_c$ they run
# each at its own pace; above it a part of them locks, and the order parameter r grows. For infinitely many oscillators
# Kuramoto's theory gives $K_c = 2 / (\pi g(0))$, where g is the density of the frequencies.

# %%
import matplotlib.pyplot as plt
import numpy as np

from kuramotognn.simulate import Frequencies, Oscillators, critical_coupling, simulate, transition

frequencies = Frequencies("normal", width=0.5)
print(f"critical coupling {critical_coupling(frequencies):.4f}")

# %% [markdown]
# Eleven coupling strengths, each simulated to t = 50 with the method rk4. All to all costs O(N) in this library: every
# oscillator needs the mean field only.

# %%
swept = transition(Oscillators(100_000, frequencies=frequencies), np.linspace(0.4, 1.4, 11), time=50.0, step=0.1)
swept.table

# %%
# Picture: Order parameter against coupling strength: simulated points lie on the theoretical curve, which leaves zero at K_c
figure, axes = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
axes.plot(swept.couplings, swept.theory, label="theory, N → ∞")
axes.errorbar(swept.couplings, swept.order, yerr=swept.spread, fmt="o", label="100,000 oscillators")
axes.axvline(swept.critical, linestyle=":", color="0.4", label="K_c")
axes.set(xlabel="coupling strength K", ylabel="order parameter r")
_ = axes.legend()

# %% [markdown]
# Below $K_c$ the order parameter is not zero but of size $1/\sqrt{N}$. Near $K_c$ it relaxes slowly, so the points there
# are the least exact.
#
# ## Who locks?
#
# In the locked state oscillators with $|\omega| \le K r$ have the common frequency; the others drift.

# %%
run = simulate(Oscillators(100_000, coupling=1.0, frequencies=frequencies), 100.0, step=0.1, dtype="float32")
locked = np.abs(run.mean_frequencies) < 0.02
edge = 1.0 * run.mean_order
print(f"r = {run.mean_order:.3f}; locked: {100 * locked.mean():.1f} % of all")
print(f"of these within |ω| ≤ K r: {100 * np.mean(np.abs(run.frequencies[locked]) <= edge + 0.02):.1f} %")

# %%
# Picture: Mean frequency against natural frequency: a flat step in the middle, where oscillators are locked
figure, axes = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
shown = slice(0, 4000)
axes.plot(run.frequencies[shown], run.mean_frequencies[shown], ".", markersize=2)
axes.axvspan(-edge, edge, alpha=0.15, label="|ω| ≤ K r")
axes.set(xlabel="natural frequency ω", ylabel="mean frequency")
_ = axes.legend()
