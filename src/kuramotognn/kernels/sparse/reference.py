"""Sparse products and normalisations in torch, on any device; differentiable twice."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor

from kuramotognn.graph import Pattern

with warnings.catch_warnings():
    # torch says once per process that CSR is in beta; said here, it is not said in the middle of a user's run.
    warnings.simplefilter("ignore", UserWarning)
    torch.sparse_csr_tensor([0, 1], [0], [1.0], (1, 1), check_invariants=True)


def spmm(pattern: Pattern, values: Tensor, dense: Tensor) -> Tensor:
    """Sparse × dense: ``[num_rows, num_cols] @ [num_cols, d]``, with gradients for the values and the dense factor."""
    result: Tensor = _SparseProduct.apply(values, dense, pattern)  # type: ignore[no-untyped-call]
    return result


def row_normalise(pattern: Pattern, values: Tensor) -> Tensor:
    """Divide ``[E, ...]`` values by their row's sum; rows that sum to zero stay zero."""
    total = pattern.sum_rows(values)
    return values / pattern.of_row(torch.where(total == 0, torch.ones_like(total), total))


class _SparseProduct(torch.autograd.Function):
    """Autograd's own CSR gradient is several times slower; this one multiplies by the stored transpose."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, dense: Tensor, pattern: Pattern) -> Tensor:
        ctx.pattern = pattern
        ctx.save_for_backward(values, dense)
        shape = (pattern.num_rows, pattern.num_cols)
        # The pattern is ours and checked once; checking it at each product would cost more than the product.
        matrix = torch.sparse_csr_tensor(pattern.rowptr, pattern.col, values, shape, check_invariants=False)
        with torch.autocast(dense.device.type, enabled=False):
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
