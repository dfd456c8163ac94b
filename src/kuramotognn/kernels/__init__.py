"""The arithmetic below the fields: one door to the fused kernels and to torch.

:mod:`~kuramotognn.kernels.reference` reads like the equations and runs on any device;
:mod:`~kuramotognn.kernels.fused` does the same on CPUs, many times faster. :func:`set_backend` chooses.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from kuramotognn.checks import check_shape
from kuramotognn.graph import Pattern
from kuramotognn.kernels import reference
from kuramotognn.kernels.backend import Backend, backend_in_use, runs_fused, set_backend, use_backend
from kuramotognn.kernels.reference import kuramoto_local_order, kuramoto_per_edge, row_normalise, row_softmax
from kuramotognn.typing import EdgeWeight, Nodes

__all__ = [
    "Backend",
    "CoupledSystem",
    "affine",
    "attention",
    "backend_in_use",
    "kuramoto_local_order",
    "kuramoto_per_edge",
    "row_normalise",
    "row_softmax",
    "runs_fused",
    "set_backend",
    "spmm",
    "thin",
    "use_backend",
    "warm_up",
]

LARGEST_INDEX = 2**31 - 1


@dataclass(frozen=True, eq=False)
class CoupledSystem:
    r""":math:`\dot x_i = u_i + K \sum_j a_{ij} \sin(x_j-x_i)` or :math:`u_i + \alpha (\sum_j a_{ij} x_j - x_i)`.

    What Kuramoto fields and linear diffusion have in common, and what the fused kernels know how to integrate.

    Attributes:
        pattern: the graph's pattern.
        a: ``[E]`` couplings.
        drive: ``[N, d]`` the constant term ``u``.
        strength: the factor ``K`` or ``α``; a tensor ``[]`` when it is learnt.
        linear: linear coupling instead of sines.
    """

    pattern: Pattern
    a: EdgeWeight
    drive: Nodes
    strength: float | Tensor
    linear: bool = False

    def __call__(self, x: Nodes) -> Nodes:
        """The velocity at ``x``."""
        if self.fits(x):
            from kuramotognn.kernels.fused import field as fused_field

            value: Nodes = fused_field(*self._operands(x), self.linear)[0]
            return value
        interaction = reference.diffusion if self.linear else reference.kuramoto_exact
        return self.drive + self.strength * interaction(self.pattern, self.a, x)

    def fits(self, x: Nodes) -> bool:
        """Whether the fused kernels can take this system: on CPU, of one type, indices within 32 bits."""
        self.check(x)
        return x.dtype == self.a.dtype == self.drive.dtype and runs_fused(x) and _indices_fit(self.pattern)

    def check(self, x: Nodes) -> None:
        """Refuse operands that do not belong together: compiled code would read past their ends."""
        if x.dim() != 2 or x.size(0) != self.pattern.num_rows or self.pattern.num_rows != self.pattern.num_cols:
            raise ValueError(f"the state must have shape [{self.pattern.num_rows}, d], got {list(x.shape)}")
        check_shape("the couplings", self.a, (self.pattern.num_entries,))
        check_shape("the constant term", self.drive, tuple(x.shape))

    def flow(self, x0: Nodes, coefficients: list[float], steps: int, memory: int) -> Nodes:
        """The state after fixed steps, by the fused integrator.

        Args:
            x0: ``[N, d]`` the state to start from.
            coefficients: ``[S · S]`` step-sized Runge–Kutta table: row ``s`` weighs the slopes in the state after
                stage ``s``, the last row in the next step's state.
            steps: how many steps to take.
            memory: bytes that the stored trajectory may take; beyond that states are recomputed.
        """
        from kuramotognn.kernels.fused import flow as fused_flow

        operands = self._operands(x0)
        keep = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in operands[1:])
        end: Nodes = fused_flow(*operands, self.linear, coefficients, steps, memory, keep)[0]
        return end

    def _operands(self, x: Nodes) -> tuple[list[Tensor], Tensor, Tensor, Tensor, Tensor]:
        strength = torch.as_tensor(self.strength, dtype=x.dtype)
        return self.pattern.flow_layout, self.a, x, self.drive, strength


def attention(
    pattern: Pattern, x: Nodes, key: Tensor, query: Tensor, bias: Tensor, weight: EdgeWeight, heads: int
) -> EdgeWeight:
    r"""Scaled dot-product attention over each row's entries, averaged over heads.

    Args:
        pattern: who listens to whom.
        x: ``[N, d]`` states.
        key: ``[H · d_k, d]`` makes the keys, with which a node listens.
        query: ``[H · d_k, d]`` makes the queries, by which it is listened to.
        bias: ``[H · d_k]`` of the keys; one of the queries would shift all scores of a row alike.
        weight: ``[E]`` non-negative factors of the exponentials; an edge of weight zero is absent.
        heads: the number ``H``.
    """
    check_shape("the states", x, (pattern.num_rows, key.size(1)))
    check_shape("the query", query, tuple(key.shape))
    check_shape("the bias", bias, tuple(key.shape[:1]))
    check_shape("weights", weight, (pattern.num_entries,))
    same_type = x.dtype == key.dtype == query.dtype == bias.dtype == weight.dtype
    if same_type and runs_fused(x) and _indices_fit(pattern):
        from kuramotognn.kernels.fused import attention as fused_attention

        a: EdgeWeight = fused_attention(pattern.layout, x, key, query, bias, weight, heads)[0]
        return a
    shape = (x.size(0), heads, key.size(0) // heads)
    keys, queries = F.linear(x, key, bias).view(shape), F.linear(x, query).view(shape)
    return reference.attention_per_edge(pattern, keys, queries, weight)


def spmm(pattern: Pattern, values: Tensor, dense: Tensor) -> Tensor:
    """Sparse × dense: ``[num_rows, num_cols] @ [num_cols, d]``, with gradients for the values and the dense factor."""
    check_shape("values", values, (pattern.num_entries,))
    check_shape("the dense factor", dense, (pattern.num_cols, *dense.shape[1:]))
    if values.dtype == dense.dtype and runs_fused(dense) and _indices_fit(pattern):
        from kuramotognn.kernels.fused import spmm as fused_spmm

        product: Tensor = fused_spmm(pattern.layout, values, dense)
        return product
    return reference.spmm(pattern, values, dense)


def affine(pattern: Pattern, values: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Sparse × dense with a bias: ``[num_rows, num_cols] @ weight.T + bias``, ``weight`` ``[d, num_cols]``."""
    check_shape("values", values, (pattern.num_entries,))
    check_shape("the weight", weight, (*weight.shape[:1], pattern.num_cols))
    if bias is not None:
        check_shape("the bias", bias, tuple(weight.shape[:1]))
    same_type = values.dtype == weight.dtype and (bias is None or bias.dtype == weight.dtype)
    if same_type and runs_fused(weight) and _indices_fit(pattern):
        from kuramotognn.kernels.fused import affine as fused_affine

        product: Tensor = fused_affine(pattern.layout, values, weight, bias)
        return product
    product = reference.spmm(pattern, values, weight.t())
    return product if bias is None else product + bias


def thin(x: Tensor, p: float) -> Tensor:
    """Dropout: each number is zero with probability ``p``, and ``1 / (1 - p)`` times itself otherwise.

    One draw of torch's generator seeds all coins of a call; those of ``F.dropout`` cost more than some flows.
    """
    if runs_fused(x) and not torch.compiler.is_compiling():
        from kuramotognn.kernels.fused import thin as fused_thin

        return fused_thin(x, p)
    return x * torch.rand_like(x).ge_(p) / (1 - p)


def warm_up(dtype: torch.dtype = torch.float32) -> float:
    """Load the fused kernels; the seconds it took to compile them, 0 when they came from the disk cache."""
    start = time.perf_counter()
    x = torch.zeros(2, 1, dtype=dtype, requires_grad=True)
    if not runs_fused(x):
        return 0.0
    ends = torch.arange(2)
    pattern, ones = Pattern.from_sorted(ends, ends, 2, 2), torch.ones(2, dtype=dtype)
    projection = torch.ones(64, 1, dtype=dtype)
    a = attention(pattern, x, projection, projection, projection[:, 0], ones, 4)
    state = affine(pattern, thin(ones, 0.5), x.t(), None)
    CoupledSystem(pattern, a, state, 1.0).flow(state, [0.1], 1, 1 << 20).sum().backward()  # type: ignore[no-untyped-call]
    with torch.no_grad():
        CoupledSystem(pattern, a, state, 1.0)(state)
    from kuramotognn.kernels import cpu

    return time.perf_counter() - start if cpu.was_compiled() else 0.0


def _indices_fit(pattern: Pattern) -> bool:
    return max(pattern.num_entries, pattern.num_rows, pattern.num_cols) < LARGEST_INDEX
