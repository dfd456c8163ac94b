"""Models that drop into PyTorch Geometric code."""

from kuramotognn.models.continuous import ContinuousGNN, Encoder
from kuramotognn.models.discrete import GAT, GCN, GCNII, DiscreteGNN, GraphSAGE
from kuramotognn.models.grand import GRAND
from kuramotognn.models.graphcon import GraphCON
from kuramotognn.models.kuramoto import KuramotoConv, KuramotoGNN
from kuramotognn.models.oscillators import (
    AdaptiveKuramotoGNN,
    DelayedKuramotoGNN,
    PhaseGNN,
    ResidualKuramotoGNN,
    SakaguchiGNN,
    SecondOrderKuramotoGNN,
    SignedKuramotoGNN,
    TimeVaryingKuramotoGNN,
)
from kuramotognn.models.registry import MODELS
from kuramotognn.models.settings import ModelInfo, ModelSettings

__all__ = [
    "GAT",
    "GCN",
    "GCNII",
    "GRAND",
    "MODELS",
    "AdaptiveKuramotoGNN",
    "ContinuousGNN",
    "DelayedKuramotoGNN",
    "DiscreteGNN",
    "Encoder",
    "GraphCON",
    "GraphSAGE",
    "KuramotoConv",
    "KuramotoGNN",
    "ModelInfo",
    "ModelSettings",
    "PhaseGNN",
    "ResidualKuramotoGNN",
    "SakaguchiGNN",
    "SecondOrderKuramotoGNN",
    "SignedKuramotoGNN",
    "TimeVaryingKuramotoGNN",
]
