# %% [markdown]
# # KuramotoGNN inside ordinary PyG code
#
# The models take what PyG's models take: `model(x, edge_index, edge_weight=None)`. This notebook trains one in a loop of
# your own, puts its flow between other layers, and runs it on a batch of graphs.

# %%
import torch
import torch.nn.functional as F
from torch import nn
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GCNConv, global_mean_pool

from kuramotognn import KuramotoConv, KuramotoGNN, load_dataset, random_per_class

cora = load_dataset("cora").largest_component()
data = cora.to_data()
split = random_per_class(data.y, seed=0)
data

# %% [markdown]
# ## A training loop of your own
#
# Nothing below is special to this library. The model that validates best is kept; the test nodes are used once.


# %%
def accuracy(model: nn.Module, nodes: torch.Tensor) -> float:
    model.eval()
    with torch.no_grad():
        right = model(data.x, data.edge_index)[nodes].argmax(dim=1) == data.y[nodes]
    return float(right.float().mean())


def train(model: nn.Module, epochs: int = 60) -> float:
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=0.01)
    best, best_state = 0.0, model.state_dict()
    for _ in range(epochs):
        model.train()
        optimiser.zero_grad()
        logits = model(data.x, data.edge_index)
        F.cross_entropy(logits[split.train], data.y[split.train]).backward()
        optimiser.step()
        if (now := accuracy(model, split.validation)) > best:
            best, best_state = now, {name: value.clone() for name, value in model.state_dict().items()}
    model.load_state_dict(best_state)
    return accuracy(model, split.test)


torch.manual_seed(0)
whole = KuramotoGNN(data.num_features, 32, cora.num_classes, time=8.0)
print(f"KuramotoGNN: test accuracy {100 * train(whole):.1f} %")

# %% [markdown]
# ## A flow as a layer
#
# `KuramotoConv` is the flow alone: phases in, phases after time T out, of the same width. It stands beside other layers.


# %%
class Mixed(nn.Module):
    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.first = GCNConv(in_channels, 32)
        self.flow = KuramotoConv(32, time=4.0)
        self.last = nn.Linear(32, out_channels)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        x = F.dropout(x, 0.5, self.training)
        x = self.flow(self.first(x, edge_index).tanh(), edge_index)
        return self.last(F.dropout(x, 0.5, self.training))


torch.manual_seed(0)
mixed = Mixed(data.num_features, cora.num_classes)
print(f"GCN layer, flow, linear: test accuracy {100 * train(mixed):.1f} %")

# %% [markdown]
# ## Look inside
#
# The couplings that the attention gave, with their edges, as PyG's attention layers return them:

# %%
with torch.no_grad():
    logits, (edges, couplings) = whole(data.x, data.edge_index, return_attention_weights=True)
strongest = couplings.argmax()
print(f"{edges.size(1)} couplings; the strongest is {float(couplings[strongest]):.2f}")
print(f"the couplings of node 0 sum to {float(couplings[edges[1] == 0].sum()):.3f}")

# %% [markdown]
# ## Batches of graphs
#
# PyG's `DataLoader` joins graphs into one graph with several components, which is all that a flow needs: the graphs of a
# batch do not influence each other. Pooling gives one vector for each graph.


# %%
def ring(nodes: int) -> Data:
    here = torch.arange(nodes)
    edges = torch.stack([here, here.roll(1)])
    return Data(x=torch.randn(nodes, 16), edge_index=torch.cat([edges, edges.flip(0)], dim=1))


torch.manual_seed(0)
flow = KuramotoConv(16, time=4.0)
graphs = [ring(nodes) for nodes in (5, 8, 13)]
batch = next(iter(DataLoader(graphs, batch_size=3)))
with torch.no_grad():
    together = global_mean_pool(flow(batch.x, batch.edge_index), batch.batch)
    alone = torch.stack([flow(graph.x, graph.edge_index).mean(dim=0) for graph in graphs])
print(f"{batch.num_graphs} graphs, one vector each: {list(together.shape)}")
print(f"largest difference to the graphs alone: {float((together - alone).abs().max()):.1e}")
