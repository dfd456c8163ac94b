"""Edge attention without temporaries per edge, head and channel.

score_ij^l = <k_i^l, q_j^l> / sqrt(d_k);  p_ij^l = w_ij exp(score_ij^l) / sum over row i;  a_ij = mean_l p_ij^l.

The shares p [E, h] are kept for the adjoint. An edge of weight zero is absent: the row maximum is taken where w > 0, so
that it cannot push the others into underflow.
"""

import math

import numpy as np

from kuramotognn.kernels.cpu.jit import loop, share_rows
from kuramotognn.kernels.cpu.layout import Array, Layout
from kuramotognn.kernels.cpu.workspace import workspace


@loop
def _score_row(i, first, last, col, q, k, scale, shares):
    heads, width = q.shape[1], q.shape[2]
    for e in range(first, last):
        j = col[e]
        for head in range(heads):
            score = shares.dtype.type(0)
            for t in range(width):
                score += k[i, head, t] * q[j, head, t]
            shares[e, head] = scale * score


@loop
def _normalise_row(first, last, w, shares):
    zero = shares.dtype.type(0)
    for head in range(shares.shape[1]):
        top = shares.dtype.type(-np.inf)
        for e in range(first, last):
            # Written so that NaN is not passed over; it reaches the output through the norm.
            if w[e] > 0 and not shares[e, head] <= top:
                top = shares[e, head]
        norm = zero
        for e in range(first, last):
            shares[e, head] = w[e] * np.exp(shares[e, head] - top) if w[e] > 0 else zero
            norm += shares[e, head]
        for e in range(first, last):
            # All edges absent: the row attends to nothing. A product with 1 / norm would overflow for tiny weights.
            shares[e, head] = shares[e, head] / norm if norm != 0 else zero


@loop
def _attention_kernel(lo, hi, rowptr, col, q, k, w, scale, shares, a):
    heads = q.shape[1]
    mean = a.dtype.type(1.0 / heads)
    for i in range(lo, hi):
        first, last = rowptr[i], rowptr[i + 1]
        _score_row(i, first, last, col, q, k, scale, shares)
        _normalise_row(first, last, w, shares)
        for e in range(first, last):
            acc = a.dtype.type(0)
            for head in range(heads):
                acc += shares[e, head]
            a[e] = mean * acc


@loop
def _softmax_row_vjp(first, last, w, shares, grad_a, mean, grad_score, grad_w):
    """grad_score = p (g - <p, g>), grad_w = sum over heads of p (g - <p, g>) / w, with g = grad_a / h."""
    for e in range(first, last):
        grad_w[e] = 0
    for head in range(shares.shape[1]):
        average = shares.dtype.type(0)
        for e in range(first, last):
            average += shares[e, head] * (mean * grad_a[e])
        for e in range(first, last):
            grad_score[e, head] = shares[e, head] * (mean * grad_a[e] - average)
            if w[e] > 0:
                grad_w[e] += grad_score[e, head] / w[e]


@loop
def _weighted_rows(i, first, last, col, perm, grad_score, scale, src, out):
    """out[i] = scale * sum over entries of grad_score[entry] * src[col], per head; an empty perm is the identity."""
    for head in range(src.shape[1]):
        for t in range(src.shape[2]):
            out[i, head, t] = 0
        for e in range(first, last):
            j = col[e]
            g = scale * grad_score[perm[e] if perm.size else e, head]
            for t in range(src.shape[2]):
                out[i, head, t] += g * src[j, head, t]


@loop
def _attention_vjp_rows(lo, hi, rowptr, col, no_perm, q, w, scale, shares, grad_a, grad_score, grad_k, grad_w):
    mean = shares.dtype.type(1.0 / q.shape[1])
    for i in range(lo, hi):
        first, last = rowptr[i], rowptr[i + 1]
        _softmax_row_vjp(first, last, w, shares, grad_a, mean, grad_score, grad_w)
        _weighted_rows(i, first, last, col, no_perm, grad_score, scale, q, grad_k)


@loop
def _attention_vjp_columns(lo, hi, t_rowptr, t_col, t_perm, k, scale, grad_score, grad_q):
    for j in range(lo, hi):
        _weighted_rows(j, t_rowptr[j], t_rowptr[j + 1], t_col, t_perm, grad_score, scale, k, grad_q)


def attention(layout: Layout, q: Array, k: Array, w: Array) -> tuple[Array, Array]:
    """(a [E], shares [E, h]) from q, k [N, h, d_k] and non-negative w [E]; the shares are for the vjp."""
    shares = workspace.empty((layout.size, q.shape[1]), q.dtype)
    a = workspace.empty((layout.size,), q.dtype)
    share_rows(_attention_kernel, layout.chunks, layout.rowptr, layout.col, q, k, w, _scale(q), shares, a)
    return a, shares


def attention_vjp(
    layout: Layout, q: Array, k: Array, w: Array, shares: Array, grad_a: Array
) -> tuple[Array, Array, Array]:
    """(grad_q, grad_k [N, h, d_k], grad_w [E]) of `attention`."""
    rowptr, col, t_rowptr, t_col, t_perm, chunks, t_chunks = layout[:7]
    grad_q, grad_k, grad_w = (workspace.empty(like.shape, like.dtype) for like in (q, k, w))
    grad_score, scale = workspace.empty(shares.shape, q.dtype), _scale(q)
    rows = (rowptr, col, col[:0], q, w, scale, shares, grad_a, grad_score, grad_k, grad_w)
    share_rows(_attention_vjp_rows, chunks, *rows)
    share_rows(_attention_vjp_columns, t_chunks, t_rowptr, t_col, t_perm, k, scale, grad_score, grad_q)
    return grad_q, grad_k, grad_w


def _scale(q):
    return q.dtype.type(1 / math.sqrt(q.shape[2]))
