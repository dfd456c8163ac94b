"""Edge attention without temporaries per edge, head and channel.

score_ij^l = <k_i^l, q_j^l> / sqrt(d_k);  p_ij^l = w_ij exp(score_ij^l) / sum over row i;  a_ij = mean_l p_ij^l.

Stored for the adjoint: density = exp(score) / sum, [E, h], so that p = w * density. An edge of weight zero is absent:
the row maximum is taken where w > 0, so that it cannot push the others into underflow.
"""

import math

import numpy as np

from kuramotognn.kernels.cpu.jit import loop, share_rows
from kuramotognn.kernels.cpu.layout import Array, Layout
from kuramotognn.kernels.cpu.workspace import workspace


@loop
def _score_row(i, first, last, col, q, k, scale, density):
    heads, width = q.shape[1], q.shape[2]
    for e in range(first, last):
        j = col[e]
        for head in range(heads):
            score = density.dtype.type(0)
            for t in range(width):
                score += k[i, head, t] * q[j, head, t]
            density[e, head] = scale * score


@loop
def _weight(w, e, one):
    return w[e] if w.size else one


@loop
def _normalise_row(first, last, w, density):
    zero, one = density.dtype.type(0), density.dtype.type(1)
    for head in range(density.shape[1]):
        top = density.dtype.type(-np.inf)
        for e in range(first, last):
            # Written so that a NaN score becomes the maximum and reaches the output.
            if _weight(w, e, one) > 0 and not density[e, head] <= top:
                top = density[e, head]
        norm = zero
        for e in range(first, last):
            weight = _weight(w, e, one)
            density[e, head] = np.exp(density[e, head] - top) if weight > 0 else zero
            norm += weight * density[e, head]
        inverse = one / norm if norm != 0 else zero  # All edges absent: the row attends to nothing.
        for e in range(first, last):
            density[e, head] *= inverse


@loop
def _attention_kernel(lo, hi, rowptr, col, q, k, w, scale, density, a):
    heads = q.shape[1]
    one, mean = a.dtype.type(1), a.dtype.type(1.0 / heads)
    for i in range(lo, hi):
        first, last = rowptr[i], rowptr[i + 1]
        _score_row(i, first, last, col, q, k, scale, density)
        _normalise_row(first, last, w, density)
        for e in range(first, last):
            acc = a.dtype.type(0)
            for head in range(heads):
                acc += density[e, head]
            a[e] = _weight(w, e, one) * mean * acc


@loop
def _softmax_row_vjp(first, last, w, density, grad_a, mean, grad_score, grad_w):
    """grad_score = p (g - <p, g>), grad_w = sum over heads of density (g - <p, g>), with g = grad_a / h."""
    one = density.dtype.type(1)
    for head in range(density.shape[1]):
        average = density.dtype.type(0)
        for e in range(first, last):
            average += _weight(w, e, one) * density[e, head] * (mean * grad_a[e])
        for e in range(first, last):
            pull = density[e, head] * (mean * grad_a[e] - average)
            grad_score[e, head] = _weight(w, e, one) * pull
            if grad_w.size:
                grad_w[e] += pull


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
def _attention_vjp_rows(lo, hi, rowptr, col, no_perm, q, w, scale, density, grad_a, grad_score, grad_k, grad_w):
    mean = density.dtype.type(1.0 / q.shape[1])
    for i in range(lo, hi):
        first, last = rowptr[i], rowptr[i + 1]
        _softmax_row_vjp(first, last, w, density, grad_a, mean, grad_score, grad_w)
        _weighted_rows(i, first, last, col, no_perm, grad_score, scale, q, grad_k)


@loop
def _attention_vjp_columns(lo, hi, t_rowptr, t_col, t_perm, k, scale, grad_score, grad_q):
    for j in range(lo, hi):
        _weighted_rows(j, t_rowptr[j], t_rowptr[j + 1], t_col, t_perm, grad_score, scale, k, grad_q)


def _attention_arguments(q, w):
    scale = q.dtype.type(1 / math.sqrt(q.shape[2]))
    return (np.empty(0, q.dtype) if w is None else w), scale


def attention(layout: Layout, q: Array, k: Array, w: Array | None = None) -> tuple[Array, Array]:
    """(a [E], density [E, h]) from q, k [N, h, d_k] and optional non-negative w [E]; density is for the vjp."""
    w, scale = _attention_arguments(q, w)
    density = workspace.empty((layout.col.size, q.shape[1]), q.dtype)
    a = workspace.empty(layout.col.shape, q.dtype)
    share_rows(_attention_kernel, layout.chunks, layout.rowptr, layout.col, q, k, w, scale, density, a)
    return a, density


def attention_vjp(
    layout: Layout, q: Array, k: Array, w: Array | None, density: Array, grad_a: Array
) -> tuple[Array, Array, Array | None]:
    """(grad_q, grad_k [N, h, d_k], grad_w [E] or None) of `attention`."""
    weights, scale = _attention_arguments(q, w)
    grad_score = workspace.empty(density.shape, q.dtype)
    grad_q, grad_k = workspace.empty(q.shape, q.dtype), workspace.empty(k.shape, k.dtype)
    grad_w = np.zeros_like(weights)
    share_rows(
        _attention_vjp_rows,
        layout.chunks,
        layout.rowptr,
        layout.col,
        layout.col[:0],
        q,
        weights,
        scale,
        density,
        grad_a,
        grad_score,
        grad_k,
        grad_w,
    )
    share_rows(
        _attention_vjp_columns,
        layout.t_chunks,
        layout.t_rowptr,
        layout.t_col,
        layout.t_perm,
        k,
        scale,
        grad_score,
        grad_q,
    )
    return grad_q, grad_k, (None if w is None else grad_w)
