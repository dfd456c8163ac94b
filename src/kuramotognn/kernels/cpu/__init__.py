"""Fused kernels for CPUs: numba on numpy arrays, compiled on first use and cached on disk."""

from kuramotognn.kernels.cpu.attention import attention, attention_vjp
from kuramotognn.kernels.cpu.chance import kept_or_not, thinned
from kuramotognn.kernels.cpu.dense import transposed
from kuramotognn.kernels.cpu.field import rhs, rhs_vjp
from kuramotognn.kernels.cpu.flow import flow_backward, flow_forward, integrate_tiles, pull_back_tiles
from kuramotognn.kernels.cpu.layout import AHEAD, Layout, balanced_chunks
from kuramotognn.kernels.cpu.plan import FlowPlan, plan_flow
from kuramotognn.kernels.cpu.sparse import affine, affine_vjp, sampled_product, spmm, spmm_transposed
from kuramotognn.kernels.cpu.workspace import workspace


def was_compiled() -> bool:
    """Whether this process had to compile the flow's kernels because the disk cache did not hold them."""
    return any(function.stats.cache_misses for function in (integrate_tiles, pull_back_tiles))


__all__ = [
    "AHEAD",
    "FlowPlan",
    "Layout",
    "affine",
    "affine_vjp",
    "attention",
    "attention_vjp",
    "balanced_chunks",
    "flow_backward",
    "flow_forward",
    "kept_or_not",
    "plan_flow",
    "rhs",
    "rhs_vjp",
    "sampled_product",
    "spmm",
    "spmm_transposed",
    "thinned",
    "transposed",
    "was_compiled",
    "workspace",
]
