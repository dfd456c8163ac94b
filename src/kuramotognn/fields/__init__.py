"""Right-hand sides: what a solver integrates."""

from kuramotognn.fields.base import DelayedDynamics, Dynamics, Field, SecondOrderDynamics
from kuramotognn.fields.coupling import Adjacency, Attention, RandomWalk, SignedAttention, SymmetricWalk
from kuramotognn.fields.diffusion import Diffusion, DiffusionDynamics, Source, TimeVaryingDiffusionDynamics
from kuramotognn.fields.kuramoto import Interaction, Kuramoto, KuramotoDynamics, PhaseField
from kuramotognn.fields.oscillator import (
    DampedOscillatorDynamics,
    DampedOscillators,
    SecondOrderKuramoto,
    SecondOrderKuramotoDynamics,
)
from kuramotognn.fields.variants import (
    AdaptiveKuramoto,
    AdaptiveKuramotoDynamics,
    DelayedKuramoto,
    DelayedKuramotoDynamics,
    ResidualKuramoto,
    ResidualKuramotoDynamics,
    Sakaguchi,
    SakaguchiDynamics,
    TimeVaryingKuramoto,
    TimeVaryingKuramotoDynamics,
)

__all__ = [
    "AdaptiveKuramoto",
    "AdaptiveKuramotoDynamics",
    "Adjacency",
    "Attention",
    "DampedOscillatorDynamics",
    "DampedOscillators",
    "DelayedDynamics",
    "DelayedKuramoto",
    "DelayedKuramotoDynamics",
    "Diffusion",
    "DiffusionDynamics",
    "Dynamics",
    "Field",
    "Interaction",
    "Kuramoto",
    "KuramotoDynamics",
    "PhaseField",
    "RandomWalk",
    "ResidualKuramoto",
    "ResidualKuramotoDynamics",
    "Sakaguchi",
    "SakaguchiDynamics",
    "SecondOrderDynamics",
    "SecondOrderKuramoto",
    "SecondOrderKuramotoDynamics",
    "SignedAttention",
    "Source",
    "SymmetricWalk",
    "TimeVaryingDiffusionDynamics",
    "TimeVaryingKuramoto",
    "TimeVaryingKuramotoDynamics",
]
