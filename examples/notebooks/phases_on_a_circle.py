# %% [markdown]
# # Phases on a circle: watch a trained network synchronise
#
# The state of a node in KuramotoGNN is a vector of phases. We train a network on Cora and follow one channel of it from t = 0
# to T: every node is a point on a circle. `kuramotognn explore` plays the same as a film in the browser.

# %%
import matplotlib.pyplot as plt
import numpy as np
import torch

from kuramotognn import Graph, KuramotoGNN, Solver, TrainingConfig, fit, load_dataset, random_per_class
from kuramotognn.diagnostics import trajectory_profile

cora = load_dataset("cora").largest_component()
graph = Graph.from_edge_index(cora.edge_index, cora.num_nodes)
torch.manual_seed(0)
model = KuramotoGNN(cora.num_features, 32, cora.num_classes, time=16.0, solver=Solver("euler", step_size=0.5))
config = TrainingConfig(epochs=60, weight_decay=0.01, clip_norm=5.0)
result = fit(model, cora.x, graph, cora.y, random_per_class(cora.y, seed=0), config=config)
print(f"test accuracy {100 * result.test_accuracy:.1f} %")

# %% [markdown]
# `flow` gives the states along the way. Of the 32 channels we take the one in which the classes lie farthest apart at T.

# %%
model.eval()
times = [0.5 * step for step in range(33)]
with torch.no_grad():
    solution = model.flow(cora.x, graph, save_at=times)
phasors = torch.polar(torch.ones_like(solution.final), solution.final)
means = torch.stack([phasors[cora.y == label].mean(dim=0) for label in range(cora.num_classes)])
channel = int((means - means.mean(dim=0)).abs().square().sum(dim=0).argmax())
phases = solution.ys[:, :, channel].numpy()

# %%
# Picture: Nodes on four circles at t = 0, 4, 8 and 16: at first all at one angle, at the end spread, classes at different angles
figure, panels = plt.subplots(1, 4, figsize=(10, 3.0), layout="constrained")
shown = np.random.default_rng(0).permutation(cora.num_nodes)
for axes, t in zip(panels, (0.0, 4.0, 8.0, 16.0), strict=True):
    angle = phases[times.index(t)][shown]
    radius = 1 + 0.06 * cora.y.numpy()[shown]  # One ring for each class.
    axes.scatter(radius * np.cos(angle), radius * np.sin(angle), c=cora.y.numpy()[shown], cmap="tab10", s=3)
    arrow = np.exp(1j * angle).mean()
    axes.annotate("", (arrow.real, arrow.imag), (0, 0), arrowprops={"arrowstyle": "->"})
    axes.set(title=f"t = {t:g}, r = {abs(arrow):.2f}", aspect="equal", xlim=(-1.6, 1.6), ylim=(-1.6, 1.6))
    axes.set_axis_off()

# %% [markdown]
# The arrow is the order parameter $r\,e^{i\psi} = \frac{1}{N} \sum_j e^{i x_j}$: its length is 1 when all phases agree. The
# encoder puts all nodes near one angle. Frequencies differ, so nodes drift apart, and the coupling holds neighbours together.

# %%
profile = trajectory_profile(solution, graph, measures=["order", "local-order", "frequency-spread"])
for name, values in profile.measures.items():
    print(f"{name:18s} t = 0: {values[0]:.3f}   t = T: {values[-1]:.3f}")

# %%
# Picture: Order parameter, local order parameter and frequency spread against time
figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.0), layout="constrained")
for name in ("order", "local-order"):
    left.plot(profile.depth, profile.measures[name], label=name)
left.set(xlabel="t", ylabel="order parameter", ylim=(0, 1.02))
left.legend()
right.plot(profile.depth, profile.measures["frequency-spread"])
_ = right.set(xlabel="t", ylabel="largest difference of velocities", ylim=(0, None))

# %% [markdown]
# Neighbours agree (the local order parameter stays high) while the whole graph does not. The largest difference of
# velocities does not fall: at this coupling strength and time some nodes are not locked. To see it move:
#
#     kuramotognn explore --dataset cora --time 32
