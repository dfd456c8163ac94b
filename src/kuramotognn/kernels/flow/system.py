"""What Kuramoto fields and linear diffusion have in common, and what the compiled kernels know how to integrate."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from kuramotognn.checks import check_shape
from kuramotognn.graph import Pattern
from kuramotognn.kernels.backend import runs_fused, widened
from kuramotognn.kernels.flow import reference
from kuramotognn.kernels.flow.operator import flow
from kuramotognn.kernels.pattern_layout import fits, flow_layout
from kuramotognn.typing import EdgeWeight, Nodes


@dataclass(frozen=True, eq=False)
class CoupledSystem:
    r""":math:`\dot x_i = u_i + K \sum_j a_{ij} \sin(x_j-x_i)` or :math:`u_i + \alpha (\sum_j a_{ij} x_j - x_i)`.

    Attributes:
        pattern: the graph's pattern.
        a: ``[E]`` couplings.
        source: ``[N, d]`` the constant term ``u``.
        strength: the factor ``K`` or ``α``; a tensor ``[]`` when it is learnt.
        linear: linear coupling instead of sines.

    Operands of float16 or bfloat16 are computed with in float32; results have the type of the state.
    """

    pattern: Pattern
    a: EdgeWeight
    source: Nodes
    strength: float | Tensor
    linear: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "a", widened(self.a))
        object.__setattr__(self, "source", widened(self.source))

    def __call__(self, x: Nodes) -> Nodes:
        """The velocity at ``x``."""
        if self.fits(x):
            return self.flow(x, [1.0], 1, 1 << 62, only_slope=True)
        value = reference.velocity(self.pattern, self.a, widened(x), self.source, self.strength, self.linear)
        return value.to(x.dtype)

    def fits(self, x: Nodes) -> bool:
        """Whether the compiled kernels can take this system: on CPU, of one type, indices within 32 bits."""
        self.check(x)
        x = widened(x)
        return x.dtype == self.a.dtype == self.source.dtype and runs_fused(x) and fits(self.pattern)

    def check(self, x: Nodes) -> None:
        """Refuse operands that do not belong together: compiled code would read past their ends."""
        if x.dim() != 2 or x.size(0) != self.pattern.num_rows or self.pattern.num_rows != self.pattern.num_cols:
            raise ValueError(f"the state must have shape [{self.pattern.num_rows}, d], got {list(x.shape)}")
        check_shape("the couplings", self.a, (self.pattern.num_entries,))
        check_shape("the constant term", self.source, tuple(x.shape))

    def flow(self, x0: Nodes, table: list[float], steps: int, memory: int, *, only_slope: bool = False) -> Nodes:
        """The state after fixed steps, by the compiled integrator.

        Args:
            x0: ``[N, d]`` the state to start from.
            table: ``[S · S]`` step-sized Runge–Kutta table: row ``s`` weighs the slopes in the state after stage ``s``,
                the last row in the next step's state.
            steps: how many steps to take.
            memory: bytes that the stored trajectory may take; beyond that states are recomputed.
            only_slope: return the velocity at ``x0`` instead.
        """
        operands = (self.a, widened(x0), self.source, torch.as_tensor(self.strength, dtype=self.a.dtype))
        keep = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in operands)
        settings = (self.linear, only_slope, table, steps, memory, keep)
        result: Nodes = flow(flow_layout(self.pattern), *operands, *settings)[0]
        return result.to(x0.dtype)
