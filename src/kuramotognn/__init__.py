"""Graph neural networks as coupled oscillators: KuramotoGNN in PyTorch, exact and fast."""

from kuramotognn._version import __version__
from kuramotognn.data import NodeDataset, Split, load_dataset, random_per_class
from kuramotognn.diagnostics import Decay, Profile, is_oversmoothing, oversmoothing_profile
from kuramotognn.features import SparseFeatures, normalise_features
from kuramotognn.fields import (
    Attention,
    Diffusion,
    DiffusionDynamics,
    Dynamics,
    Field,
    Kuramoto,
    KuramotoDynamics,
    RandomWalk,
)
from kuramotognn.graph import Graph, largest_component
from kuramotognn.kernels import backend_in_use, set_backend, use_backend
from kuramotognn.models import GRAND, MODELS, ContinuousGNN, KuramotoConv, KuramotoGNN, ModelInfo, ModelSettings
from kuramotognn.solve import Solution, Solver, SolverError, integrate
from kuramotognn.training import EpochMetrics, TrainingConfig, TrainResult, fit, predict

# Listed in the order in which data flows.
__all__ = [  # noqa: RUF022
    "__version__",
    "load_dataset",
    "NodeDataset",
    "random_per_class",
    "Split",
    "normalise_features",
    "SparseFeatures",
    "largest_component",
    "Graph",
    "set_backend",
    "use_backend",
    "backend_in_use",
    "Field",
    "Dynamics",
    "Attention",
    "RandomWalk",
    "Kuramoto",
    "KuramotoDynamics",
    "Diffusion",
    "DiffusionDynamics",
    "Solver",
    "integrate",
    "Solution",
    "SolverError",
    "ContinuousGNN",
    "KuramotoConv",
    "KuramotoGNN",
    "GRAND",
    "ModelSettings",
    "ModelInfo",
    "MODELS",
    "TrainingConfig",
    "fit",
    "EpochMetrics",
    "TrainResult",
    "predict",
    "oversmoothing_profile",
    "Profile",
    "is_oversmoothing",
    "Decay",
]
