"""Write results/oversmoothing-cora.json: how alike nodes become with depth, in deep models on Cora.

    python tools/oversmoothing_cora.py

Weights as they are drawn (five seeds), largest component, rows of features scaled to sum one. Layered models have 64
layers of 64 channels and are torch_geometric's own; flows run to T = 100 with Euler steps of 0.1, as in the paper.
"""

import json
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GAT, GCN, GCN2Conv, GraphSAGE

from kuramotognn import GRAND, KuramotoGNN, Solver, is_oversmoothing, load_dataset, normalise_features
from kuramotognn import oversmoothing_profile as profile_of
from kuramotognn.runs.provenance import provenance

OUT = Path(__file__).parent.parent / "results" / "oversmoothing-cora.json"
SEEDS, LAYERS, CHANNELS, TIME = range(5), 64, 64, 100.0
EULER = Solver("euler", step_size=0.1)
MEASURES = ("pairwise-distance", "dirichlet", "dirichlet-normalised", "rayleigh", "mad", "effective-rank")


class GCNII(nn.Module):
    """torch_geometric's GCN2Conv layers between two affine maps, with the settings of its authors."""

    def __init__(self, in_channels: int, hidden_channels: int, num_layers: int, out_channels: int) -> None:
        super().__init__()
        self.encoder = nn.Linear(in_channels, hidden_channels)
        self.layers = nn.ModuleList(
            GCN2Conv(hidden_channels, alpha=0.1, theta=0.5, layer=layer + 1) for layer in range(num_layers)
        )
        self.decoder = nn.Linear(hidden_channels, out_channels)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Logits of every node."""
        first = x = self.encoder(x).relu()
        for layer in self.layers:
            x = layer(x, first, edge_index).relu()
        return self.decoder(x)


def main() -> None:
    cora = load_dataset("cora").largest_component()
    x = normalise_features(cora.x, "row-sum").to_dense()
    data = Data(x=x, edge_index=cora.edge_index, y=cora.y)
    sizes = (cora.num_features, CHANNELS, cora.num_classes)

    def layered(kind: Callable[..., nn.Module]) -> Callable[[], nn.Module]:
        return lambda: kind(sizes[0], sizes[1], num_layers=LAYERS, out_channels=sizes[2])

    def flow(kind: Callable[..., nn.Module], **settings: object) -> Callable[[], nn.Module]:
        return lambda: kind(*sizes, time=TIME, solver=EULER, **settings)

    models = {
        "GCN": layered(GCN),
        "GAT": layered(GAT),
        "GraphSAGE": layered(GraphSAGE),
        "GCNII": layered(GCNII),
        "GRAND without X(0)": flow(GRAND, source="none"),
        "KuramotoGNN": flow(KuramotoGNN),
    }
    record = {
        "dataset": "cora, largest component, features scaled to row sums of one",
        "weights": f"as initialised, seeds {list(SEEDS)}",
        "depth": f"{LAYERS} layers of {CHANNELS} channels, or T = {TIME:g} in Euler steps of 0.1",
        "models": {name: [examine(make, data, name, seed) for seed in SEEDS] for name, make in models.items()},
        "provenance": provenance(),
    }
    OUT.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def examine(make: Callable[[], nn.Module], data: Data, name: str, seed: int) -> dict[str, object]:
    torch.manual_seed(seed)
    profile = profile_of(make(), data, measures=MEASURES, name=name)
    decay = {}
    for measure in profile.floor:
        found = is_oversmoothing(profile, measure)
        decay[measure] = {"law": found.law, "rate": found.rate, "standard_error": found.standard_error}
    kept = profile.as_dict()
    for part in ("measures", "floor"):
        kept[part] = {key: [float(f"{value:.6g}") for value in values] for key, values in kept[part].items()}
    return kept | {"seed": seed, "decay": decay}


if __name__ == "__main__":
    main()
