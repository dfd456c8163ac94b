"""Models that drop into PyTorch Geometric code."""

from kuramotognn.models.continuous import ContinuousGNN, Encoder
from kuramotognn.models.kuramoto import KuramotoConv, KuramotoGNN
from kuramotognn.models.oscillators import (
    AdaptiveKuramotoGNN,
    DelayedKuramotoGNN,
    GraphCON,
    PhaseGNN,
    ResidualKuramotoGNN,
    SakaguchiGNN,
    SecondOrderKuramotoGNN,
    SignedKuramotoGNN,
    TimeVaryingKuramotoGNN,
)

__all__ = [
    "AdaptiveKuramotoGNN",
    "ContinuousGNN",
    "DelayedKuramotoGNN",
    "Encoder",
    "GraphCON",
    "KuramotoConv",
    "KuramotoGNN",
    "PhaseGNN",
    "ResidualKuramotoGNN",
    "SakaguchiGNN",
    "SecondOrderKuramotoGNN",
    "SignedKuramotoGNN",
    "TimeVaryingKuramotoGNN",
]
