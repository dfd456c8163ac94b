"""The arithmetic below the fields."""

from kuramotognn.kernels.reference import (
    kuramoto_exact,
    kuramoto_local_order,
    kuramoto_per_edge,
    row_normalise,
    row_softmax,
    spmm,
)

__all__ = [
    "kuramoto_exact",
    "kuramoto_local_order",
    "kuramoto_per_edge",
    "row_normalise",
    "row_softmax",
    "spmm",
]
