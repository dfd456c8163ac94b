r"""The right-hand sides, written to read like the equations; torch only, any device.

Every function takes the graph's pattern, one value ``a_ij`` per edge and node states ``x``, and is differentiable,
twice if need be. ``pattern`` row ``i`` holds the sources ``j`` that act on node ``i``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from kuramotognn.graph import Pattern
from kuramotognn.kernels.sparse.reference import spmm
from kuramotognn.typing import EdgeWeight, Nodes


def kuramoto_per_edge(pattern: Pattern, a: EdgeWeight, x: Nodes) -> Nodes:
    r"""The definition: :math:`\sum_j a_{ij} \sin(x_j - x_i)`, one sine per edge and channel.

    The specification that everything faster is tested against; ``E × d`` temporaries make it slow.
    """
    return pattern.sum_rows(a[:, None] * torch.sin(pattern.of_col(x) - pattern.of_row(x)))


def kuramoto_exact(pattern: Pattern, a: EdgeWeight, x: Nodes) -> Nodes:
    r"""The same sum by the addition theorem: :math:`\cos x_i (A \sin X)_i - \sin x_i (A \cos X)_i`.

    An identity, not an approximation: trigonometry once per node, one sparse product on ``[sin X | cos X]``.
    """
    s, c = x.sin(), x.cos()
    a_s, a_c = spmm(pattern, a, torch.cat([s, c], dim=-1)).chunk(2, dim=-1)
    return c * a_s - s * a_c


def kuramoto_local_order(pattern: Pattern, a: EdgeWeight, x: Nodes) -> Nodes:
    r"""The paper's supplement: :math:`R \sin(\Phi - X)` with :math:`\Phi = A X` and :math:`R = |A e^{iX}|`.

    An approximation: the argument of a mean phasor is not the mean phase. It agrees with the exact sum to third order
    in the phase spread when rows of ``A`` sum to one. The square root is not smooth at ``R = 0``; its gradient is taken
    as 0 there, as for an isolated node.
    """
    mean_phase, a_s, a_c = spmm(pattern, a, torch.cat([x, x.sin(), x.cos()], dim=-1)).chunk(3, dim=-1)
    squared = a_s.square() + a_c.square()
    positive = squared > 0
    order = torch.where(positive, torch.where(positive, squared, 1.0).sqrt(), 0.0)
    return order * torch.sin(mean_phase - x)


def velocity(pattern: Pattern, a: EdgeWeight, x: Nodes, source: Nodes, strength: float | Tensor, linear: bool) -> Nodes:
    r"""``source + strength * interaction``; the linear interaction is :math:`\sum_j a_{ij} x_j - x_i`."""
    return source + strength * (spmm(pattern, a, x) - x if linear else kuramoto_exact(pattern, a, x))


def flow(field: Callable[[Nodes], Nodes], x: Nodes, table: Sequence[float], steps: int) -> Nodes:
    """The state after fixed Runge–Kutta steps; ``table`` as :meth:`CoupledSystem.flow` takes it."""
    stages = math.isqrt(len(table))
    for _ in range(steps):
        start, slopes = x, []
        for stage in range(stages):
            slopes.append(field(x))
            weights = table[stage * stages : stage * stages + len(slopes)]
            x = start + sum(weight * slope for weight, slope in zip(weights, slopes, strict=True))
    return x
