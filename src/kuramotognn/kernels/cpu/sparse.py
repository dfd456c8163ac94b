"""Products of a sparse matrix whose values change and whose pattern stays."""

from kuramotognn.kernels.cpu.jit import loop, share_rows
from kuramotognn.kernels.cpu.layout import Array, Layout
from kuramotognn.kernels.cpu.workspace import workspace


@loop
def _product_row(i, first, last, col, val, perm, dense, out):
    """out[i] = sum over entries of val[entry] * dense[col]; an empty perm is the identity."""
    for k in range(out.shape[1]):
        out[i, k] = 0
    paired = first + (last - first) // 2 * 2
    for e in range(first, paired, 2):
        v0, v1 = val[perm[e] if perm.size else e], val[perm[e + 1] if perm.size else e + 1]
        j0, j1 = col[e], col[e + 1]
        for k in range(out.shape[1]):
            out[i, k] += v0 * dense[j0, k] + v1 * dense[j1, k]
    for e in range(paired, last):
        v0, j0 = val[perm[e] if perm.size else e], col[e]
        for k in range(out.shape[1]):
            out[i, k] += v0 * dense[j0, k]


@loop
def _product_kernel(lo, hi, rowptr, col, val, perm, dense, out):
    for i in range(lo, hi):
        _product_row(i, rowptr[i], rowptr[i + 1], col, val, perm, dense, out)


@loop
def _sampled_kernel(lo, hi, rowptr, col, left, right, out):
    for i in range(lo, hi):
        for e in range(rowptr[i], rowptr[i + 1]):
            j, acc = col[e], out.dtype.type(0)
            for k in range(left.shape[1]):
                acc += left[i, k] * right[j, k]
            out[e] = acc


def spmm(layout: Layout, values: Array, dense: Array) -> Array:
    """Y [rows, d] = X @ dense, X sparse with `values` [nnz] and dense [cols, d]."""
    out = workspace.empty((layout.rowptr.size - 1, dense.shape[1]), dense.dtype)
    share_rows(_product_kernel, layout.chunks, layout.rowptr, layout.col, values, layout.col[:0], dense, out)
    return out


def spmm_transposed(layout: Layout, values: Array, dense: Array) -> Array:
    """X^T @ dense [rows, d], as [cols, d]."""
    out = workspace.empty((layout.t_rowptr.size - 1, dense.shape[1]), dense.dtype)
    share_rows(_product_kernel, layout.t_chunks, layout.t_rowptr, layout.t_col, values, layout.t_perm, dense, out)
    return out


def sampled_product(layout: Layout, left: Array, right: Array) -> Array:
    """<left_i, right_j> for every stored entry (i, j): the gradient of `spmm` by its values; [nnz]."""
    out = workspace.empty((layout.size,), left.dtype)
    share_rows(_sampled_kernel, layout.chunks, layout.rowptr, layout.col, left, right, out)
    return out
