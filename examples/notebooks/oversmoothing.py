# %% [markdown]
# # Over-smoothing in one picture
#
# A graph network over-smooths when the features of all nodes converge, exponentially in its depth. Here we measure it for
# three models on Cora, with untrained weights: a deep GCN of PyG, GRAND without its source X(0), and KuramotoGNN.

# %%
import matplotlib.pyplot as plt
import torch
from torch_geometric.nn import GCN

from kuramotognn import GRAND, KuramotoGNN, Solver, is_oversmoothing, load_dataset, oversmoothing_profile

cora = load_dataset("cora").largest_component()
data = cora.to_data()  # PyG's Data
data

# %% [markdown]
# The GCN has 64 layers. The other two integrate an equation to time T = 100 in Euler steps of 0.5, which makes 200 steps:
#
# - GRAND without X(0): $\dot x = (A - I)\,x$, a diffusion;
# - KuramotoGNN: $\dot x_i = \omega_i + K \sum_j a_{ij} \sin(x_j - x_i)$ with $\omega = x(0)$.

# %%
torch.manual_seed(0)
size = (cora.num_features, 64, cora.num_classes)
deep = {"time": 100.0, "adjacency": "random-walk", "solver": Solver("euler", step_size=0.5)}
models = {
    "GCN, 64 layers": GCN(cora.num_features, 64, num_layers=64),
    "GRAND without X(0)": GRAND(*size, source="none", **deep),
    "KuramotoGNN": KuramotoGNN(*size, **deep),
}
measured = ("pairwise-distance", "dirichlet-normalised")
profiles = {name: oversmoothing_profile(model, data, measures=measured) for name, model in models.items()}

# %% [markdown]
# The mean distance between two nodes, divided by its first value, against depth. The scale is logarithmic: a straight line
# that falls is over-smoothing.

# %%
# Picture: Distance between nodes against depth: GCN falls as a straight line, GRAND without X(0) falls and levels off, KuramotoGNN rises
figure, axes = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
for name, profile in profiles.items():
    distance = profile.measures["pairwise-distance"]
    share = [value / distance[0] for value in distance[: len(distance) - (profile.unit == "layer")]]
    axes.semilogy([depth / profile.depth[-1] for depth in profile.depth[: len(share)]], share, label=name)
axes.set(xlabel="depth, as a share of the whole", ylabel="mean distance / its first value")
_ = axes.legend()

# %% [markdown]
# `is_oversmoothing` says which law the distances follow. It fits four laws and takes the simplest that explains them.

# %%
verdicts = {name: is_oversmoothing(profile) for name, profile in profiles.items()}
for name, decay in verdicts.items():
    print(f"{name:20s} {decay.describe(profiles[name].unit)}")

# %% [markdown]
# The GCN loses the differences exponentially. GRAND without X(0) loses more than half of them at once and then slowly:
# diffusion between the weakly connected parts of Cora takes longer than T = 100. In KuramotoGNN every node keeps a natural
# frequency of its own, and distances grow.
#
# Next: [the measures and the test](../../docs/diagnostics.md).
