"""Right-hand sides: what a solver integrates."""

from kuramotognn.fields.base import Dynamics, Field
from kuramotognn.fields.coupling import Adjacency, Attention, RandomWalk
from kuramotognn.fields.diffusion import Diffusion, DiffusionDynamics, Source, TimeVaryingDiffusionDynamics
from kuramotognn.fields.kuramoto import Interaction, Kuramoto, KuramotoDynamics

__all__ = [
    "Adjacency",
    "Attention",
    "Diffusion",
    "DiffusionDynamics",
    "Dynamics",
    "Field",
    "Interaction",
    "Kuramoto",
    "KuramotoDynamics",
    "RandomWalk",
    "Source",
    "TimeVaryingDiffusionDynamics",
]
