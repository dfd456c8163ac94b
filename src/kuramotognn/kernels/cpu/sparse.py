"""Products of a sparse matrix whose values change and whose pattern stays."""

from functools import lru_cache

import numpy as np

from kuramotognn.kernels.cpu.dense import sum_columns, transpose
from kuramotognn.kernels.cpu.jit import inner, kernel, part
from kuramotognn.kernels.cpu.lanes import fma, like, splat
from kuramotognn.kernels.cpu.layout import AHEAD, Array, Layout
from kuramotognn.kernels.cpu.memory import ahead, at, lane_count, lanes_at, pointer, prefetch, put, put_lanes
from kuramotognn.kernels.cpu.team import share, team_for
from kuramotognn.kernels.cpu.vectors import add_scaled, dot
from kuramotognn.kernels.cpu.workspace import workspace

UNITS = 4  # of columns that are summed at once: as many registers, and as many chains of additions
PREFETCHED = 32  # numbers of a row that is needed soon


@part
def _value(e, val, perm):
    return at(val, e) if perm is None else at(val, at(perm, e))


@part
def _lanes_of_row(first, last, col, val, perm, dense, width, start, lanes):
    """start + sum over entries of val[entry] * dense[col], for as many columns as lanes; perm may be None."""
    acc = lanes_at(start, 0, lanes)
    for e in range(first, last):
        prefetch(dense, np.int64(at(col, e + AHEAD)) * width, PREFETCHED)
        acc = fma(splat(lanes, _value(e, val, perm)), lanes_at(dense, np.int64(at(col, e)) * width, lanes), acc)
    return acc


@inner
def _product_rows(number, worker, bounds, rowptrs, cols, vals, perms, denses, width, starts, wide, narrow, out):
    """out[i] = start + sum over entries of val[entry] * dense[col], some columns at a time."""
    col, val, perm, dense = pointer(cols), pointer(vals), pointer(perms), pointer(denses)
    many, few, start = pointer(wide), pointer(narrow), pointer(starts)
    for i in range(bounds[number], bounds[number + 1]):
        first, last = np.int64(rowptrs[i]), np.int64(rowptrs[i + 1])
        row, c = ahead(pointer(out), np.int64(i) * width), 0
        while c + lane_count(many) <= width:
            put_lanes(row, c, _lanes_of_row(first, last, col, val, perm, ahead(dense, c), width, ahead(start, c), many))
            c += lane_count(many)
        while c + lane_count(few) <= width:
            put_lanes(row, c, _lanes_of_row(first, last, col, val, perm, ahead(dense, c), width, ahead(start, c), few))
            c += lane_count(few)
        for t in range(c, width):
            put(row, t, at(start, t))
        if c < width:
            for e in range(first, last):
                rest = ahead(dense, np.int64(at(col, e)) * width + c)
                add_scaled(_value(e, val, perm), rest, ahead(row, c), width - c, few)


@kernel
def _multiply(team, bounds, *operands):
    share(team, bounds.size - 1, _product_rows, (bounds, *operands))


@kernel
def _affine(team, bounds, operands, weight, square, columns):
    transpose(team, weight, square, columns)
    share(team, bounds.size - 1, _product_rows, (bounds, *operands))


@kernel
def _affine_vjp(team, bounds, operands, columns, square, grad_weight, sums):
    share(team, bounds.size - 1, _product_rows, (bounds, *operands))
    transpose(team, columns, square, grad_weight)
    sum_columns(team, *sums)


@inner
def _sampled_rows(number, worker, bounds, rowptr, col, left, right, width, lanes, out):
    rows, columns, numbers = pointer(left), pointer(right), pointer(lanes)
    for i in range(bounds[number], bounds[number + 1]):
        for e in range(rowptr[i], rowptr[i + 1]):
            row, column = ahead(rows, np.int64(i) * width), ahead(columns, np.int64(col[e]) * width)
            out[e] = dot(row, column, width, numbers)


@kernel
def _sample(team, bounds, *operands):
    share(team, bounds.size - 1, _sampled_rows, (bounds, *operands))


def spmm(layout: Layout, values: Array, dense: Array) -> Array:
    """Y [rows, d] = X @ dense, X sparse with `values` [nnz] and dense [cols, d]."""
    out = workspace.empty((layout.n, dense.shape[1]), dense.dtype)
    _multiply(team_for(values.size * dense.shape[1]), layout.chunks, *_forward(layout, values, dense, None, out))
    return out


def spmm_transposed(layout: Layout, values: Array, dense: Array) -> Array:
    """X^T @ dense [rows, d], as [cols, d]."""
    out = workspace.empty((layout.t_rowptr.size - 1, dense.shape[1]), dense.dtype)
    _multiply(team_for(values.size * dense.shape[1]), layout.t_chunks, *_backward(layout, values, dense, out))
    return out


def affine(layout: Layout, values: Array, weight: Array, bias: Array | None) -> Array:
    """Y [rows, d] = X @ weight.T + bias, weight [d, cols]."""
    width, dtype = weight.shape[0], weight.dtype
    columns, out = workspace.empty(weight.shape[::-1], dtype), workspace.empty((layout.n, width), dtype)
    operands = _forward(layout, values, columns, bias, out)
    _affine(team_for(values.size * width), layout.chunks, operands, weight, like(dtype), columns)
    return out


def affine_vjp(layout: Layout, values: Array, grad: Array) -> tuple[Array, Array]:
    """(grad of the weight, grad of the bias) of `affine`."""
    (rows, width), dtype, cols = grad.shape, grad.dtype, layout.t_rowptr.size - 1
    columns, grad_weight = workspace.empty((cols, width), dtype), workspace.empty((width, cols), dtype)
    grad_bias = workspace.empty((width,), dtype)
    sums = (grad.reshape(-1), rows, width, width, like(dtype, 2), grad_bias)
    operands = _backward(layout, values, grad, columns)
    _affine_vjp(team_for(values.size * width), layout.t_chunks, operands, columns, like(dtype), grad_weight, sums)
    return grad_weight, grad_bias


def _forward(layout, values, dense, start, out):
    return _operands(layout.rowptr, layout.col, values, None, dense, start, out)


def _backward(layout, values, dense, out):
    return _operands(layout.t_rowptr, layout.t_col, values, layout.t_perm, dense, None, out)


def _operands(rowptr, col, values, perm, dense, start, out):
    """Of `_product_rows`, but for the bounds of the shares."""
    width, dtype = dense.shape[1], dense.dtype
    start = _zeros(width, dtype) if start is None else start
    lanes = like(dtype, UNITS), like(dtype)
    return rowptr, col, values, perm, dense.reshape(-1), width, start, *lanes, out.reshape(-1)


@lru_cache(maxsize=64)
def _zeros(count, dtype):
    """To be read only."""
    return np.zeros(count, dtype)


def sampled_product(layout: Layout, left: Array, right: Array) -> Array:
    """<left_i, right_j> for every stored entry (i, j): the gradient of `spmm` by its values; [nnz]."""
    out = workspace.empty((layout.size,), left.dtype)
    operands = (left.reshape(-1), right.reshape(-1), left.shape[1], like(left.dtype), out)
    team = team_for(layout.size * left.shape[1])
    _sample(team, layout.chunks, layout.rowptr, layout.col, *operands)
    return out
