"""The arithmetic below the fields: compiled kernels on CPUs, torch on every device; :func:`set_backend` chooses.

Each operation has a folder. Its ``reference`` reads like the equation and runs anywhere; its ``operator`` does the same
by the compiled kernels, many times faster.
"""

from kuramotognn.kernels.attention.operator import attention, projected_attention
from kuramotognn.kernels.attention.reference import row_softmax
from kuramotognn.kernels.backend import Backend, backend_in_use, set_backend, use_backend
from kuramotognn.kernels.flow.reference import kuramoto_local_order, kuramoto_per_edge
from kuramotognn.kernels.flow.system import CoupledSystem
from kuramotognn.kernels.sparse.operator import affine, spmm
from kuramotognn.kernels.sparse.reference import row_normalise

__all__ = [
    "Backend",
    "CoupledSystem",
    "affine",
    "attention",
    "backend_in_use",
    "kuramoto_local_order",
    "kuramoto_per_edge",
    "projected_attention",
    "row_normalise",
    "row_softmax",
    "set_backend",
    "spmm",
    "use_backend",
]
