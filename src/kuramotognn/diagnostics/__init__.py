"""Diagnostics of over-smoothing: measures of a state, along a trajectory, and over the layers of any PyG model."""

from kuramotognn.diagnostics.decay import Decay, fit_decay
from kuramotognn.diagnostics.measures import (
    ClassSeparation,
    class_separation,
    dirichlet_energy,
    effective_rank,
    frequency_spread,
    local_order_parameter,
    mean_average_distance,
    mean_pairwise_distance,
    mean_squared_distance,
    numerical_rank,
    order_parameter,
    phase_energy,
    rayleigh_quotient,
    sample_pairs,
)
from kuramotognn.diagnostics.profile import (
    MEASURES,
    Measure,
    Profile,
    is_oversmoothing,
    oversmoothing_profile,
    trajectory_profile,
)

__all__ = [
    "MEASURES",
    "ClassSeparation",
    "Decay",
    "Measure",
    "Profile",
    "class_separation",
    "dirichlet_energy",
    "effective_rank",
    "fit_decay",
    "frequency_spread",
    "is_oversmoothing",
    "local_order_parameter",
    "mean_average_distance",
    "mean_pairwise_distance",
    "mean_squared_distance",
    "numerical_rank",
    "order_parameter",
    "oversmoothing_profile",
    "phase_energy",
    "rayleigh_quotient",
    "sample_pairs",
    "trajectory_profile",
]
