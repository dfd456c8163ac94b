"""Models that drop into PyTorch Geometric code."""

from kuramotognn.models.continuous import ContinuousGNN, Encoder
from kuramotognn.models.grand import GRAND
from kuramotognn.models.kuramoto import KuramotoConv, KuramotoGNN
from kuramotognn.models.registry import MODELS
from kuramotognn.models.settings import ModelInfo, ModelSettings

__all__ = ["GRAND", "MODELS", "ContinuousGNN", "Encoder", "KuramotoConv", "KuramotoGNN", "ModelInfo", "ModelSettings"]
