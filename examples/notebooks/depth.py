# %% [markdown]
# # How deep can you go?
#
# Depth is the integration time T of a flow, or the number of layers. We train four models at several depths on one split of
# Cora and look at the test accuracy. One split and few epochs: a picture of the effect, not a result. The committed
# [results](../../docs/results.md) have more splits and searched settings.

# %%
import matplotlib.pyplot as plt
import torch

from kuramotognn import GCN, GRAND, KuramotoGNN, Solver, TrainingConfig, fit, load_dataset, random_per_class

cora = load_dataset("cora").largest_component()
split = random_per_class(cora.y, seed=0)
config = TrainingConfig(epochs=60, learning_rate=0.01, weight_decay=0.01, clip_norm=5.0)

# %% [markdown]
# An Euler step of 0.5 at T = 32 makes 64 evaluations of the right-hand side, each over all edges. The gradient is exact.

# %%
DEPTHS = (1, 2, 4, 8, 16, 32)


def flow_of(model: type, **options: object) -> object:
    def make(depth: int) -> torch.nn.Module:
        solver = Solver("euler", step_size=0.5)
        return model(cora.num_features, 32, cora.num_classes, time=float(depth), solver=solver, **options)

    return make


makers = {
    "KuramotoGNN": flow_of(KuramotoGNN),
    "GRAND-l": flow_of(GRAND, source="initial"),
    "GRAND-l without X(0)": flow_of(GRAND, source="none"),
    "GCN": lambda depth: GCN(cora.num_features, 32, max(2, depth), cora.num_classes),
}


def test_accuracy(model: torch.nn.Module) -> float:
    return fit(model, cora.x, cora.edge_index, cora.y, split, config=config).test_accuracy


# %%
found = {}
for name, make in makers.items():
    torch.manual_seed(0)
    found[name] = [100 * test_accuracy(make(depth)) for depth in DEPTHS]
    print(f"{name:22s}" + "".join(f"{value:7.1f}" for value in found[name]))

# %%
# Picture: Test accuracy against depth for four models: GCN drops at 8 layers, the flows do not
figure, axes = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
for name, values in found.items():
    axes.plot(DEPTHS, values, marker="o", label=name)
axes.set(xlabel="depth: T, or layers", ylabel="test accuracy in %", xscale="log")
axes.set_xticks(DEPTHS, [str(depth) for depth in DEPTHS])
_ = axes.legend()
