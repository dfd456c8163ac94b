"""Products of a sparse matrix whose values change and whose pattern stays."""

import numpy as np

from kuramotognn.kernels.cpu.dense import transposed
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
    return _product(layout.chunks, layout.rowptr, layout.col, values, None, dense)


def affine(layout: Layout, values: Array, weight: Array, bias: Array | None) -> Array:
    """Y [rows, d] = X @ weight.T + bias, weight [d, cols]."""
    return _product(layout.chunks, layout.rowptr, layout.col, values, None, transposed(weight), bias)


def spmm_transposed(layout: Layout, values: Array, dense: Array) -> Array:
    """X^T @ dense [rows, d], as [cols, d]."""
    return _product(layout.t_chunks, layout.t_rowptr, layout.t_col, values, layout.t_perm, dense)


def _product(chunks, rowptr, col, values, perm, dense, start=None):
    width = dense.shape[1]
    out = workspace.empty((rowptr.size - 1, width), dense.dtype)
    start = np.zeros(width, dense.dtype) if start is None else start
    lanes = like(dense.dtype, UNITS), like(dense.dtype)
    operands = (rowptr, col, values, perm, dense.reshape(-1), width, start, *lanes, out.reshape(-1))
    _multiply(team_for(values.size * width), chunks, *operands)
    return out


def sampled_product(layout: Layout, left: Array, right: Array) -> Array:
    """<left_i, right_j> for every stored entry (i, j): the gradient of `spmm` by its values; [nnz]."""
    out = workspace.empty((layout.size,), left.dtype)
    operands = (left.reshape(-1), right.reshape(-1), left.shape[1], like(left.dtype), out)
    team = team_for(layout.size * left.shape[1])
    _sample(team, layout.chunks, layout.rowptr, layout.col, *operands)
    return out
