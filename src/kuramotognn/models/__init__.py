"""Models that drop into PyTorch Geometric code."""

from kuramotognn.models.continuous import ContinuousGNN, Encoder
from kuramotognn.models.discrete import GAT, GCN, GCNII, DiscreteGNN, GraphSAGE
from kuramotognn.models.grand import GRAND
from kuramotognn.models.kuramoto import KuramotoConv, KuramotoGNN
from kuramotognn.models.registry import MODELS
from kuramotognn.models.settings import ModelInfo, ModelSettings

__all__ = [
    "GAT",
    "GCN",
    "GCNII",
    "GRAND",
    "MODELS",
    "ContinuousGNN",
    "DiscreteGNN",
    "Encoder",
    "GraphSAGE",
    "KuramotoConv",
    "KuramotoGNN",
    "ModelInfo",
    "ModelSettings",
]
