"""Models that drop into PyTorch Geometric code."""

from kuramotognn.models.continuous import ContinuousGNN, Encoder, GraphFlow
from kuramotognn.models.discrete import GAT, GCN, GCNII, DiscreteGNN, GraphSAGE
from kuramotognn.models.grand import GRAND
from kuramotognn.models.graphcon import GraphCON
from kuramotognn.models.kuramotognn import KuramotoConv, KuramotoGNN
from kuramotognn.models.registry import MODELS, ModelInfo

__all__ = [
    "GAT",
    "GCN",
    "GCNII",
    "GRAND",
    "MODELS",
    "ContinuousGNN",
    "DiscreteGNN",
    "Encoder",
    "GraphCON",
    "GraphFlow",
    "GraphSAGE",
    "KuramotoConv",
    "KuramotoGNN",
    "ModelInfo",
]
