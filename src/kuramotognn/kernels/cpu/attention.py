"""Edge attention without temporaries per edge, head and channel.

score_ij^l = <k_i^l, q_j^l> / sqrt(d_k);  p_ij^l = w_ij exp(score_ij^l) / sum over row i;  a_ij = mean_l p_ij^l.

Keys and queries lie side by side, as one matrix product makes them; the keys' bias is added where their row is begun.
The shares p [E, h] are kept for the adjoint. An edge of weight zero is absent: the row maximum is taken where w > 0, so
that it cannot push the others into underflow.

Arrays are flat. Loops go over the edges of a row first, then over the heads: rows are short, and leaving a short loop
costs as much as a few of its turns.
"""

import math
from functools import cache, lru_cache

import numpy as np

from kuramotognn.kernels.cpu.dense import Product, multiply, sum_columns, transpose_small
from kuramotognn.kernels.cpu.elementary import exp
from kuramotognn.kernels.cpu.jit import inner, kernel, part
from kuramotognn.kernels.cpu.lanes import fma, four_totals, like, rows, splat, total, unit, where_less
from kuramotognn.kernels.cpu.layout import AHEAD, Array, Layout
from kuramotognn.kernels.cpu.memory import (
    ahead,
    at,
    increase,
    lane_count,
    lanes_at,
    pointer,
    prefetch,
    put,
    put_lanes,
    until_here,
)
from kuramotognn.kernels.cpu.team import share, team_for
from kuramotognn.kernels.cpu.vectors import add_scaled, dot, products, sum_rows
from kuramotognn.kernels.cpu.workspace import workspace

PREFETCHED = 64  # numbers of a row of keys or queries that is needed soon


@inner
def _attention_rows(
    number, worker, bounds, rowptr, col, both, bias, w, heads, width, scale, lanes, fours, least, shares, a
):
    numbers, keys, weight, kept = pointer(lanes), pointer(both), pointer(w), pointer(shares)
    queries, pitch = ahead(keys, heads * width), 2 * heads * width
    lo, hi, longest = bounds[number], bounds[number + 1], 0
    for i in range(lo, hi):
        longest = max(longest, rowptr[i + 1] - rowptr[i])
    row = np.empty(longest * heads + lane_count(numbers), both.dtype)  # Whole lanes of it are exponentiated.
    of_heads = np.empty(2 * heads, both.dtype)
    scores, top, norm = pointer(row), pointer(of_heads), ahead(pointer(of_heads), heads)
    zero, one, mean = both.dtype.type(0), both.dtype.type(1), both.dtype.type(1 / heads)
    for i in range(lo, hi):
        first, count = np.int64(rowptr[i]), np.int64(rowptr[i + 1] - rowptr[i])
        add_scaled(one, pointer(bias), ahead(keys, np.int64(i) * pitch), heads * width, numbers)
        for head in range(heads):
            put(top, head, both.dtype.type(-np.inf))
            put(norm, head, zero)
        for e in range(count):
            present = at(weight, first + e) > 0
            for head in range(heads):
                key = ahead(keys, np.int64(i) * pitch + head * width)
                query = ahead(queries, np.int64(col[first + e]) * pitch + head * width)
                score, highest = scale * dot(key, query, width, numbers), at(top, head)
                # Written so that NaN is not passed over; it reaches the output through the norm.
                put(top, head, highest if score <= highest or not present else score)
                put(scores, e * heads + head, score)
        for e in range(count):
            for head in range(heads):
                put(scores, e * heads + head, at(scores, e * heads + head) - at(top, head))
        for t in range(0, count * heads, lane_count(numbers)):
            put_lanes(scores, t, exp(lanes_at(scores, t, numbers)))
        for e in range(count):
            v = at(weight, first + e)
            for head in range(heads):
                share = v * at(scores, e * heads + head) if v > 0 else zero
                put(scores, e * heads + head, share)
                increase(norm, head, share)
        for e in range(count):
            acc = zero
            for head in range(heads):
                # All edges absent: the row attends to nothing. A product with 1 / norm would overflow for tiny weights.
                all_of_it = at(norm, head)
                share = at(scores, e * heads + head) / (all_of_it if all_of_it != 0 else one)
                put(kept, (first + e) * heads + head, share)
                acc += share
            a[first + e] = mean * acc
    until_here(row)
    until_here(of_heads)


@part
def _four_scores(key, query, width, numbers):
    """<key, query> of four heads in a row, which fill whole lanes."""
    return four_totals(
        products(key, query, width, numbers),
        products(ahead(key, width), ahead(query, width), width, numbers),
        products(ahead(key, 2 * width), ahead(query, 2 * width), width, numbers),
        products(ahead(key, 3 * width), ahead(query, 3 * width), width, numbers),
    )


@inner
def _attention_rows_by_four(
    number, worker, bounds, rowptr, col, both, bias, w, heads, width, scale, lanes, fours, least, shares, a
):
    """The same for four heads at a time, in lanes."""
    numbers, four, keys, weight = pointer(lanes), pointer(fours), pointer(both), pointer(w)
    queries, pitch = ahead(keys, heads * width), 2 * heads * width
    lo, hi, longest, mean = bounds[number], bounds[number + 1], 0, both.dtype.type(1 / heads)
    for i in range(lo, hi):
        longest = max(longest, rowptr[i + 1] - rowptr[i])
    row = np.empty(4 * longest, both.dtype)
    scores, kept, zero, one = pointer(row), pointer(shares), splat(four, 0), both.dtype.type(1)
    for i in range(lo, hi):
        first, last = np.int64(rowptr[i]), np.int64(rowptr[i + 1])
        add_scaled(one, pointer(bias), ahead(keys, np.int64(i) * pitch), heads * width, numbers)
        for head in range(0, heads, 4):
            key, top, norm = ahead(keys, np.int64(i) * pitch + head * width), splat(four, -np.inf), zero
            for e in range(first, last):
                prefetch(queries, np.int64(col[e + AHEAD]) * pitch + head * width, PREFETCHED)
                query = ahead(queries, np.int64(col[e]) * pitch + head * width)
                score = _four_scores(key, query, width, numbers)
                put_lanes(scores, 4 * (e - first), score)
                if at(weight, e) > 0:
                    top = where_less(top, score, score, top)  # NaN reaches the output through the norm.
            for e in range(first, last):
                share, v = zero, at(weight, e)
                if v > 0:
                    share = splat(four, v) * exp(splat(four, scale) * (lanes_at(scores, 4 * (e - first), four) - top))
                put_lanes(scores, 4 * (e - first), share)
                norm = norm + share
            # All edges absent: the row attends to nothing. A product with 1 / norm would overflow for tiny weights.
            norm = where_less(norm, splat(four, least), splat(four, 1), norm)
            for e in range(first, last):
                share = lanes_at(scores, 4 * (e - first), four) / norm
                put_lanes(kept, e * heads + head, share)
                acc = total(share) if head == 0 else a[e] + total(share)
                a[e] = acc if head + 4 < heads else mean * acc
    until_here(row)


@kernel
def _attend(team, projection, fours, bounds, *operands):
    shape, x, key, query, square, together, both = projection
    transpose_small(key, square, pointer(together), shape.width)
    transpose_small(query, square, ahead(pointer(together), key.shape[0]), shape.width)
    multiply(team, shape, x, together, both)
    if fours is None:
        share(team, bounds.size - 1, _attention_rows, (bounds, *operands))
    else:
        share(team, bounds.size - 1, _attention_rows_by_four, (bounds, *operands))


@part
def _score_gradients_one_by_one(first, last, kept, grad_a, w, heads, scale, scores, grad_w):
    """scores = scale p (g - <p, g>), grad_w = sum over heads of p (g - <p, g>) / w, with g = grad_a / h."""
    averages, mean, zero = np.zeros(heads, w.dtype), w.dtype.type(1 / heads), w.dtype.type(0)
    for e in range(first, last):
        for head in range(heads):
            averages[head] += at(kept, e * heads + head) * (mean * grad_a[e])
    for e in range(first, last):
        acc = zero
        for head in range(heads):
            gradient = at(kept, e * heads + head) * (mean * grad_a[e] - averages[head])
            acc += gradient
            put(scores, e * heads + head, scale * gradient)
        grad_w[e] = acc / w[e] if w[e] > 0 else zero


@part
def _score_gradients_by_four(first, last, kept, grad_a, w, heads, scale, four, scores, grad_w):
    """The same for four heads at a time, in lanes."""
    mean, zero = w.dtype.type(1 / heads), w.dtype.type(0)
    for head in range(0, heads, 4):
        average = splat(four, 0)
        for e in range(first, last):
            average = fma(lanes_at(kept, e * heads + head, four), splat(four, mean * grad_a[e]), average)
        for e in range(first, last):
            gradient = lanes_at(kept, e * heads + head, four) * (splat(four, mean * grad_a[e]) - average)
            put_lanes(scores, e * heads + head, splat(four, scale) * gradient)
            acc = total(gradient) if head == 0 else grad_w[e] + total(gradient)
            grad_w[e] = acc if head + 4 < heads else (acc / w[e] if w[e] > 0 else zero)


@part
def _score_gradients(first, last, kept, grad_a, w, heads, scale, four, scores, grad_w):
    if four is None:
        _score_gradients_one_by_one(first, last, kept, grad_a, w, heads, scale, scores, grad_w)
    else:
        _score_gradients_by_four(first, last, kept, grad_a, w, heads, scale, four, scores, grad_w)


@part
def _sum_four_heads(first, last, col, factors, places, heads, dense, pitch, out, width, like):
    """What `sum_rows` gives for each of four heads in a row, which fill whole lanes, in one pass over the entries."""
    for t in range(0, width, lane_count(like)):
        acc0 = acc1 = acc2 = acc3 = splat(like, 0)
        for e in range(first, last):
            factor = ahead(factors, np.int64(e if places is None else at(places, e)) * heads)
            row = ahead(dense, np.int64(at(col, e)) * pitch + t)
            acc0 = fma(splat(like, at(factor, 0)), lanes_at(row, 0, like), acc0)
            acc1 = fma(splat(like, at(factor, 1)), lanes_at(row, width, like), acc1)
            acc2 = fma(splat(like, at(factor, 2)), lanes_at(row, 2 * width, like), acc2)
            acc3 = fma(splat(like, at(factor, 3)), lanes_at(row, 3 * width, like), acc3)
        put_lanes(out, t, acc0)
        put_lanes(out, width + t, acc1)
        put_lanes(out, 2 * width + t, acc2)
        put_lanes(out, 3 * width + t, acc3)


@part
def _sum_heads(first, last, col, scores, places, heads, dense, pitch, out, width, numbers, four):
    """out = for every head, the sum over entries of their score times row `col` of dense."""
    if four is None:
        for head in range(heads):
            entries = col, ahead(scores, head), places, heads
            sum_rows(first, last, *entries, ahead(dense, head * width), pitch, ahead(out, head * width), width, numbers)
    else:
        for head in range(0, heads, 4):
            entries = col, ahead(scores, head), places, heads
            seen, sums = ahead(dense, head * width), ahead(out, head * width)
            _sum_four_heads(first, last, *entries, seen, pitch, sums, width, numbers)


@inner
def _attention_vjp_rows(number, worker, bounds, rowptr, cols, w, scale, shares, grad_a, grad_w, common):
    """Gradients of the scores, of the weights and of the keys."""
    both, heads, width, lanes, fours, grad_score, grad_both = common
    numbers, four, col, scores = pointer(lanes), pointer(fours), pointer(cols), pointer(grad_score)
    queries, pitch = ahead(pointer(both), heads * width), 2 * heads * width
    for i in range(bounds[number], bounds[number + 1]):
        first, last = np.int64(rowptr[i]), np.int64(rowptr[i + 1])
        for e in range(first, last):
            prefetch(queries, np.int64(at(col, e + AHEAD)) * pitch, PREFETCHED)
        _score_gradients(first, last, pointer(shares), grad_a, w, heads, scale, four, scores, grad_w)
        out = ahead(pointer(grad_both), np.int64(i) * pitch)
        _sum_heads(first, last, col, scores, None, heads, queries, pitch, out, width, numbers, four)


@inner
def _attention_vjp_columns(number, worker, bounds, t_rowptr, t_cols, t_perm, common):
    """Gradients of the queries, from those of the scores."""
    both, heads, width, lanes, fours, grad_score, grad_both = common
    numbers, four, t_col, scores = pointer(lanes), pointer(fours), pointer(t_cols), pointer(grad_score)
    keys, pitch = pointer(both), 2 * heads * width
    for j in range(bounds[number], bounds[number + 1]):
        first, last = np.int64(t_rowptr[j]), np.int64(t_rowptr[j + 1])
        for e in range(first, last):
            prefetch(keys, np.int64(at(t_col, e + AHEAD)) * pitch, PREFETCHED)
        out = ahead(pointer(grad_both), np.int64(j) * pitch + heads * width)
        _sum_heads(first, last, t_col, scores, pointer(t_perm), heads, keys, pitch, out, width, numbers, four)


@kernel
def _attend_vjp(team, bounds, by_rows, t_bounds, by_columns, common, projection):
    share(team, bounds.size - 1, _attention_vjp_rows, (bounds, *by_rows, common))
    share(team, t_bounds.size - 1, _attention_vjp_columns, (t_bounds, *by_columns, common))
    grad_both, (of_x, of_weights, x, together, wide, grad_x, grad_weights, grad_bias) = common[-1], projection
    multiply(team, of_x, grad_both, together, grad_x)
    multiply(team, of_weights, grad_both, x, grad_weights)
    sum_columns(team, grad_both, of_x.rows, of_x.depth, grad_bias.size, wide, grad_bias)


def attention(
    layout: Layout, x: Array, key: Array, query: Array, bias: Array, w: Array, heads: int
) -> tuple[Array, Array, Array]:
    """(a [E], keys and queries [N, 2 · h · d_k], shares [E, h]); all but the first are for the vjp.

    x [N, d], key and query [h · d_k, d], bias [h · d_k] of the keys, non-negative w [E].
    """
    (n, channels), all_heads, dtype = x.shape, key.shape[0], x.dtype
    width, four = all_heads // heads, _four(dtype, heads, all_heads // heads)
    sizes = n * 2 * all_heads, layout.size * heads, channels * 2 * all_heads
    (both, shares, together), a = workspace.several(dtype, *sizes), workspace.empty((layout.size,), dtype)
    shape = Product.of(n, channels, 2 * all_heads, dtype)
    projection = (shape, x.reshape(-1), key, query, like(dtype), together, both)
    operands = (layout.rowptr, layout.col, both, bias, w, heads, width, _scale(width, dtype), like(dtype))
    team = team_for(sizes[0] * channels + layout.size * all_heads)
    _attend(team, projection, four, layout.chunks, *operands, four, _least(dtype), shares, a)
    return a, both.reshape(n, 2 * all_heads), shares.reshape(layout.size, heads)


def attention_vjp(
    layout: Layout, x: Array, key: Array, query: Array, w: Array, both: Array, shares: Array, grad_a: Array
) -> tuple[Array, Array, Array, Array]:
    """(grad of x, grad of key above that of query, grad of bias, grad of w) of `attention`."""
    rowptr, col, t_rowptr, t_col, t_perm, chunks, t_chunks = layout[:7]
    (n, channels), (all_heads, heads), dtype = x.shape, (key.shape[0], shares.shape[1]), x.dtype
    width = all_heads // heads
    grad_both, grad_score = workspace.several(dtype, both.size, shares.size)
    shapes = x.shape, (2 * all_heads, channels), (all_heads,), w.shape
    grad_x, grad_weights, grad_bias, grad_w = (workspace.empty(shape, dtype) for shape in shapes)
    lanes = like(dtype, 2 if width % (2 * unit(dtype.type)) == 0 else 1)
    common = (both.reshape(-1), heads, width, lanes, _four(dtype, heads, width), grad_score, grad_both)
    by_rows = (rowptr, col, w, _scale(width, dtype), shares.reshape(-1), grad_a, grad_w)
    projection = (
        Product.of(n, 2 * all_heads, channels, dtype),
        Product.of(2 * all_heads, n, channels, dtype, transpose_left=True),
        x.reshape(-1),
        np.concatenate((key, query)).reshape(-1),
        like(dtype, 2),
        grad_x.reshape(-1),
        grad_weights.reshape(-1),
        grad_bias,
    )
    team = team_for(both.size * channels + layout.size * all_heads)
    _attend_vjp(team, chunks, by_rows, t_chunks, (t_rowptr, t_col, t_perm), common, projection)
    return grad_x, grad_weights, grad_bias, grad_w


@lru_cache(maxsize=64)
def _four(dtype, heads, width):
    """What tells kernels how four numbers look like, where four heads at a time fill whole lanes; else None."""
    return None if heads % 4 or width % unit(dtype.type) else rows(np.empty(0, dtype), 4)


@cache
def _least(dtype):
    """The smallest number that is not zero."""
    return np.finfo(dtype).smallest_subnormal


def _scale(width, dtype):
    return dtype.type(1 / math.sqrt(width))
