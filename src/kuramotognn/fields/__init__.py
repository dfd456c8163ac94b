"""Right-hand sides: what a solver integrates."""

from kuramotognn.fields.attention import Attention, Normalise, Score, SignedAttention, Squash, WeightInit
from kuramotognn.fields.base import (
    CoupledDynamics,
    DelayedDynamics,
    Dynamics,
    Field,
    FunctionDynamics,
    Gradient,
    SecondOrderDynamics,
    Velocity,
)
from kuramotognn.fields.coupling import Adjacency, Couplings, RandomWalk, SymmetricWalk
from kuramotognn.fields.diffusion import Diffusion, Source
from kuramotognn.fields.kuramoto import Equation, Interaction, Kuramoto, PhaseField
from kuramotognn.fields.kuramoto_variants import (
    AdaptiveKuramoto,
    AdaptiveKuramotoDynamics,
    DelayedKuramoto,
    ResidualKuramoto,
    Sakaguchi,
    SecondOrderKuramoto,
)
from kuramotognn.fields.oscillator import DampedOscillators, OscillatorSource, Residual

__all__ = [
    "AdaptiveKuramoto",
    "AdaptiveKuramotoDynamics",
    "Adjacency",
    "Attention",
    "CoupledDynamics",
    "Couplings",
    "DampedOscillators",
    "DelayedDynamics",
    "DelayedKuramoto",
    "Diffusion",
    "Dynamics",
    "Equation",
    "Field",
    "FunctionDynamics",
    "Gradient",
    "Interaction",
    "Kuramoto",
    "Normalise",
    "OscillatorSource",
    "PhaseField",
    "RandomWalk",
    "Residual",
    "ResidualKuramoto",
    "Sakaguchi",
    "Score",
    "SecondOrderDynamics",
    "SecondOrderKuramoto",
    "SignedAttention",
    "Source",
    "Squash",
    "SymmetricWalk",
    "Velocity",
    "WeightInit",
]
