"""Models that drop into PyTorch Geometric code."""

from kuramotognn.models.continuous import ContinuousGNN, Encoder
from kuramotognn.models.kuramoto import KuramotoConv, KuramotoGNN

__all__ = ["ContinuousGNN", "Encoder", "KuramotoConv", "KuramotoGNN"]
