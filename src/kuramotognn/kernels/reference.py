r"""The arithmetic of the fields, written to read like the equations; torch only, any device.

Every function takes the graph's pattern, one value ``a_ij`` per edge and node states ``x``, and is differentiable,
twice if need be. ``pattern`` row ``i`` holds the sources ``j`` that act on node ``i``.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import torch
from torch import Tensor

from kuramotognn.graph import Pattern
from kuramotognn.typing import EdgeHeads, EdgeWeight, Nodes

with warnings.catch_warnings():
    # torch says once per process that CSR is in beta; said here, it is not said in the middle of a user's run.
    warnings.simplefilter("ignore", UserWarning)
    torch.sparse_csr_tensor([0, 1], [0], [1.0], (1, 1), check_invariants=True)


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


def spmm(pattern: Pattern, values: Tensor, dense: Tensor) -> Tensor:
    """Sparse × dense: ``[num_rows, num_cols] @ [num_cols, d]``, with gradients for the values and the dense factor."""
    result: Tensor = _SparseProduct.apply(values, dense, pattern)  # type: ignore[no-untyped-call]
    return result


def attention_per_edge(pattern: Pattern, key: Tensor, query: Tensor, weight: EdgeWeight) -> EdgeWeight:
    r"""Attention of keys and queries ``[N, H, d_k]``: scaled dot products, row softmax, mean over heads."""
    scores = torch.einsum("ehk,ehk->eh", pattern.of_row(key), pattern.of_col(query)) / math.sqrt(key.size(-1))
    return row_softmax(pattern, scores, weight).mean(dim=-1)


def diffusion(pattern: Pattern, a: EdgeWeight, x: Nodes) -> Nodes:
    r"""The linear coupling :math:`\sum_j a_{ij} x_j - x_i`."""
    return spmm(pattern, a, x) - x


def row_softmax(pattern: Pattern, scores: EdgeHeads, weight: EdgeWeight) -> EdgeHeads:
    r"""Softmax over the entries of each row: :math:`w_{ij} e^{s_{ij}} / \sum_k w_{ik} e^{s_{ik}}`, per head.

    An edge of weight zero counts as absent, in the gradient too; rows without other edges give zeros.
    """
    present = (weight > 0)[:, None]
    index = pattern.row[:, None].expand_as(scores)
    highest = scores.new_zeros(pattern.num_rows, scores.size(1))
    # The shift cancels in the quotient, so it needs no gradient.
    shown = torch.where(present, scores.detach(), -torch.inf)
    highest.scatter_reduce_(0, index, shown, reduce="amax", include_self=False)
    shifted = torch.where(present, scores - pattern.of_row(highest), 0.0)
    return row_normalise(pattern, torch.where(present, weight[:, None] * torch.exp(shifted), 0.0))


def row_normalise(pattern: Pattern, values: Tensor) -> Tensor:
    """Divide ``[E, ...]`` values by their row's sum; rows that sum to zero stay zero."""
    total = pattern.sum_rows(values)
    total = torch.where(total == 0, torch.ones_like(total), total)
    return values / pattern.of_row(total)


class _SparseProduct(torch.autograd.Function):
    """Autograd's own CSR gradient is several times slower; this one multiplies by the stored transpose."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, dense: Tensor, pattern: Pattern) -> Tensor:
        ctx.pattern = pattern
        ctx.save_for_backward(values, dense)
        shape = (pattern.num_rows, pattern.num_cols)
        # The pattern is ours and checked once; checking it at each product would cost more than the product.
        matrix = torch.sparse_csr_tensor(pattern.rowptr, pattern.col, values, shape, check_invariants=False)
        return matrix @ dense

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        (upstream,) = grad_outputs
        values, dense = ctx.saved_tensors
        pattern: Pattern = ctx.pattern
        grad_values = grad_dense = None
        if ctx.needs_input_grad[0]:
            grad_values = (pattern.of_row(upstream) * pattern.of_col(dense)).sum(dim=-1)
        if ctx.needs_input_grad[1]:
            grad_dense = spmm(pattern.transposed, values[pattern.transpose], upstream)
        return grad_values, grad_dense, None
