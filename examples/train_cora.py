"""Train KuramotoGNN on the embedded Cora, and use Kuramoto layers in your own model."""

import torch
from torch import Tensor, nn

from kuramotognn import (
    Graph,
    KuramotoConv,
    KuramotoGNN,
    Solver,
    TrainingConfig,
    fit,
    load_dataset,
    random_per_class,
)


class TwoFlows(nn.Module):
    """A PyG-style model with two Kuramoto layers of different depth."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.encoder = nn.Linear(in_channels, 32)
        self.shallow, self.deep = KuramotoConv(32, time=1.0), KuramotoConv(32, time=4.0, adjacency="random-walk")
        self.decoder = nn.Linear(32, out_channels)

    def forward(self, x: Tensor, edges: Graph) -> Tensor:
        x = self.encoder(torch.nn.functional.dropout(x, 0.5, self.training))
        x = self.deep(torch.tanh(self.shallow(x, edges)), edges)
        return self.decoder(x)


def main() -> None:
    cora = load_dataset("cora").largest_component()
    graph = Graph.from_edge_index(cora.edge_index, cora.num_nodes, self_loops=True)
    split = random_per_class(cora.y, seed=0)
    config = TrainingConfig(learning_rate=0.01, weight_decay=0.05, epochs=60)

    torch.manual_seed(0)
    model = KuramotoGNN(
        cora.num_features, 64, 7, time=8.0, input_dropout=0.5, dropout=0.3, solver=Solver("euler", step_size=0.5)
    )
    result = fit(model, cora.x, graph, cora.y, split, config=config)
    print(f"KuramotoGNN: test accuracy {100 * result.test_accuracy:.1f} %, {result.seconds:.1f} s")

    own = TwoFlows(cora.num_features, cora.num_classes)
    result = fit(own, cora.x.to_dense(), graph, cora.y, split, config=config)
    print(f"two flows:   test accuracy {100 * result.test_accuracy:.1f} %, {result.seconds:.1f} s")


if __name__ == "__main__":
    main()
