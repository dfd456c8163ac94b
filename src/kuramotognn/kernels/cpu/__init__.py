"""Fused kernels for CPUs: numba on numpy arrays, compiled on first use and cached on disk."""

from kuramotognn.kernels.cpu.attention import attention, attention_vjp
from kuramotognn.kernels.cpu.flow import FlowPlan, flow_backward, flow_forward, plan_flow, rhs, rhs_vjp
from kuramotognn.kernels.cpu.lanes import lanes
from kuramotognn.kernels.cpu.layout import Layout, balanced_chunks
from kuramotognn.kernels.cpu.sparse import sampled_product, spmm, spmm_transposed
from kuramotognn.kernels.cpu.workspace import workspace

__all__ = [
    "FlowPlan",
    "Layout",
    "attention",
    "attention_vjp",
    "balanced_chunks",
    "flow_backward",
    "flow_forward",
    "lanes",
    "plan_flow",
    "rhs",
    "rhs_vjp",
    "sampled_product",
    "spmm",
    "spmm_transposed",
    "workspace",
]
