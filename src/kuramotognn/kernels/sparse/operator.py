"""Sparse products by the compiled kernels as an operator with a gradient (csrc/sparse.h)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from kuramotognn.checks import check_shape
from kuramotognn.graph import Pattern
from kuramotognn.kernels.backend import runs_fused, widened
from kuramotognn.kernels.library import SparseJob, kernels
from kuramotognn.kernels.operators import define, differentiable
from kuramotognn.kernels.pattern_layout import fits, layout, pattern_of
from kuramotognn.kernels.sparse import reference


def spmm(pattern: Pattern, values: Tensor, dense: Tensor) -> Tensor:
    """Sparse × dense: ``[num_rows, num_cols] @ [num_cols, d]``, with gradients for the values and the dense factor."""
    check_shape("values", values, (pattern.num_entries,))
    check_shape("the dense factor", dense, (pattern.num_cols, *dense.shape[1:]))
    kind, values, dense = dense.dtype, widened(values), widened(dense)
    if values.dtype == dense.dtype and dense.dim() == 2 and runs_fused(dense) and fits(pattern):
        out: Tensor = product(layout(pattern), values, dense, pattern.num_rows, False)
        return out.to(kind)
    return reference.spmm(pattern, values, dense).to(kind)


def affine(pattern: Pattern, values: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Sparse × dense with a bias: ``[num_rows, num_cols] @ weight.T + bias``, ``weight`` ``[d, num_cols]``."""
    check_shape("the weight", weight, (*weight.shape[:1], pattern.num_cols))
    if bias is not None:
        check_shape("the bias", bias, tuple(weight.shape[:1]))
    out = spmm(pattern, values, weight.t())
    return out if bias is None else out + bias


def _run(kernel: str, layout: Tensor, dense: Tensor, out: Tensor, **more: Any) -> Tensor:
    dense = dense.contiguous()
    sizes = {"channels": dense.size(1), "is_double": dense.dtype == torch.float64, "threads": torch.get_num_threads()}
    kernels()(kernel, SparseJob(layout=layout, dense=dense, out=out, **sizes, **more))
    return out


def _product(layout: Tensor, values: Tensor, dense: Tensor, rows: int, transposed: bool) -> Tensor:
    """``A @ dense``, ``[rows, d]``; with ``A.T`` where ``transposed``."""
    out = dense.new_empty(rows, dense.size(1))
    return _run("sparse_product", layout, dense, out, values=values.contiguous(), transposed=transposed)


def _sampled(layout: Tensor, left: Tensor, dense: Tensor, entries: int) -> Tensor:
    """``<left_i, dense_j>`` for every stored entry ``(i, j)``."""
    return _run("sampled_product", layout, dense, dense.new_empty(entries), left=left.contiguous())


product = define(
    "spmm(Tensor layout, Tensor values, Tensor dense, int rows, bool transposed) -> Tensor",
    _product,
    lambda layout, values, dense, rows, transposed: dense.new_empty(rows, dense.size(1)),
)
sampled = define(
    "sampled_product(Tensor layout, Tensor left, Tensor dense, int entries) -> Tensor",
    _sampled,
    lambda layout, left, dense, entries: dense.new_empty(entries),
)


def _gradient(needed: Sequence[bool], *inputs: Any) -> tuple[Tensor | None, ...]:
    layout, values, dense, grad = inputs[:4]
    grad_values = sampled(layout, grad, dense, values.size(0)) if needed[1] else None
    return None, grad_values, product(layout, values, grad, dense.size(0), True) if needed[2] else None


differentiable(product, _gradient, lambda layout, *operands: reference.spmm(pattern_of(layout), *operands[:2]))
