"""Dense matrices, as steps of a kernel: products of which one factor is small, transposes, and sums of columns.

Such as the projections of an attention and their gradients. BLAS is a little slower for these shapes, and does not
promise the same bits for every number of threads.
"""

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from kuramotognn.kernels.cpu.jit import inner, kernel, part
from kuramotognn.kernels.cpu.lanes import fma, like, splat
from kuramotognn.kernels.cpu.layout import N_CHUNKS, Array
from kuramotognn.kernels.cpu.memory import ahead, at, lane_count, lanes_at, pointer, put, put_lanes, put_transposed
from kuramotognn.kernels.cpu.team import share, team_for
from kuramotognn.kernels.cpu.workspace import workspace

ROWS = 6  # taken at once: with two vectors of each, all registers but four hold sums
DEPTH = 80  # terms of a sum that are added before the next rows come by; as many rows of the right factor stay near
BLOCKS = 5  # of rows in a share: they find the same part of the right factor near
EVEN = 4  # shares for each thread, at least; of fewer, one thread might get one more than the others
STRIPS = 16  # of a matrix to be transposed: few, for where they meet, threads write to the same lines


@part
def _one_row(first, a, a_step, b, width, depth, out, lanes):
    """out[0] += sum over k < depth of a[k * a_step] * b[k], or = where first, for as many columns as lanes."""
    sums = splat(lanes, 0)
    if not first:
        sums = lanes_at(out, 0, lanes)
    for k in range(depth):
        sums = fma(splat(lanes, at(a, k * a_step)), lanes_at(b, k * width, lanes), sums)
    put_lanes(out, 0, sums)


@part
def _six_rows(first, a, a_pitch, a_step, b, width, depth, out, lanes):
    """The same for six rows: each row of b is loaded once for all of them."""
    a1, a2, a3 = ahead(a, a_pitch), ahead(a, 2 * a_pitch), ahead(a, 3 * a_pitch)
    a4, a5, y1, y2 = ahead(a, 4 * a_pitch), ahead(a, 5 * a_pitch), ahead(out, width), ahead(out, 2 * width)
    y3, y4, y5 = ahead(out, 3 * width), ahead(out, 4 * width), ahead(out, 5 * width)
    s0 = s1 = s2 = s3 = s4 = s5 = splat(lanes, 0)
    if not first:
        s0, s1, s2 = lanes_at(out, 0, lanes), lanes_at(y1, 0, lanes), lanes_at(y2, 0, lanes)
        s3, s4, s5 = lanes_at(y3, 0, lanes), lanes_at(y4, 0, lanes), lanes_at(y5, 0, lanes)
    for k in range(depth):
        row, place = lanes_at(b, k * width, lanes), k * a_step
        s0 = fma(splat(lanes, at(a, place)), row, s0)
        s1 = fma(splat(lanes, at(a1, place)), row, s1)
        s2 = fma(splat(lanes, at(a2, place)), row, s2)
        s3 = fma(splat(lanes, at(a3, place)), row, s3)
        s4 = fma(splat(lanes, at(a4, place)), row, s4)
        s5 = fma(splat(lanes, at(a5, place)), row, s5)
    put_lanes(out, 0, s0)
    put_lanes(y1, 0, s1)
    put_lanes(y2, 0, s2)
    put_lanes(y3, 0, s3)
    put_lanes(y4, 0, s4)
    put_lanes(y5, 0, s5)


@part
def _columns(first, count, a, a_pitch, a_step, b, width, depth, out, lanes):
    """Six rows, or fewer one by one."""
    if count == ROWS:
        _six_rows(first, a, a_pitch, a_step, b, width, depth, out, lanes)
    else:
        for row in range(count):
            _one_row(first, ahead(a, row * a_pitch), a_step, b, width, depth, ahead(out, row * width), lanes)


class Product(NamedTuple):
    """The shape of a product: left [rows, depth] or its transpose by right [depth, width]."""

    rows: int
    depth: int
    width: int
    pitch: int  # numbers from a row of the left factor to the next
    step: int  # and from a term to the next
    wide: Array  # lanes
    narrow: Array

    @classmethod
    @lru_cache(maxsize=256)
    def of(cls, rows: int, depth: int, width: int, dtype: np.dtype, *, transpose_left: bool = False) -> "Product":
        """That of factors without gaps."""
        pitch, step = (1, rows) if transpose_left else (depth, 1)
        return cls(rows, depth, width, pitch, step, like(dtype, 2), like(dtype))


@inner
def _product_blocks(number, worker, shares, shape, left, right, out):
    a, b, many, few = pointer(left), pointer(right), pointer(shape.wide), pointer(shape.narrow)
    rows, depth, width, pitch, step = shape.rows, shape.depth, shape.width, shape.pitch, shape.step
    blocks = -(-rows // ROWS)
    for begin in range(0, max(depth, 1), DEPTH):  # Without terms, too, there is something to be written: zeros.
        first, terms, below = begin == 0, min(DEPTH, depth - begin), ahead(b, begin * width)
        for block in range(blocks * number // shares, blocks * (number + 1) // shares):
            top = block * ROWS
            count, factors = min(ROWS, rows - top), ahead(a, top * pitch + begin * step)
            sums, c = ahead(pointer(out), top * width), 0
            while c + lane_count(many) <= width:
                _columns(first, count, factors, pitch, step, ahead(below, c), width, terms, ahead(sums, c), many)
                c += lane_count(many)
            while c + lane_count(few) <= width:
                _columns(first, count, factors, pitch, step, ahead(below, c), width, terms, ahead(sums, c), few)
                c += lane_count(few)
            for column in range(c, width):
                for row in range(count):
                    total = out.dtype.type(0) if first else at(sums, row * width + column)
                    for k in range(terms):
                        total += at(factors, row * pitch + k * step) * at(below, k * width + column)
                    put(sums, row * width + column, total)


@part
def multiply(team, shape, left, right, out):
    """out = left @ right, flat arrays of a :class:`Product`."""
    shares = min(N_CHUNKS, shape.rows // (ROWS * BLOCKS))
    if shares < EVEN * team.threads:
        shares = team.threads
    share(team, shares, _product_blocks, (shares, shape, left, right, out))


@part
def _squares(x, square):
    """How many it takes to cover a matrix."""
    size = lane_count(square)
    return -(-x.shape[0] // size) * -(-x.shape[1] // size)


@part
def _transpose_squares(begin, end, x, square, target, pitch):
    """Squares of as many rows and columns as a register has lanes; what is left over at the edges number by number."""
    (rows, columns), source, size = x.shape, pointer(x), lane_count(square)
    down, across = -(-rows // size), -(-columns // size)
    for place in range(begin, end):
        # Along the shorter side first: its lines are still near when the next squares come by.
        left, top = (place // down, place % down) if rows < columns else (place % across, place // across)
        left, top = left * size, top * size
        if top + size <= rows and left + size <= columns:
            here = ahead(source, top * columns + left)
            put_transposed(ahead(target, left * pitch + top), pitch, here, columns, square)
        else:
            for c in range(left, min(left + size, columns)):
                for r in range(top, min(top + size, rows)):
                    put(target, c * pitch + r, at(source, r * columns + c))


@part
def transpose_small(x, lanes, target, pitch):
    """The rows of x.T, `pitch` numbers apart from `target` on, by one thread."""
    square = pointer(lanes)
    _transpose_squares(0, _squares(x, square), x, square, target, pitch)


@inner
def _transpose_strip(number, worker, x, lanes, out):
    square = pointer(lanes)
    count = _squares(x, square)
    _transpose_squares(count * number // STRIPS, count * (number + 1) // STRIPS, x, square, pointer(out), x.shape[0])


@part
def transpose(team, x, lanes, out):
    """out = x.T."""
    share(team, STRIPS, _transpose_strip, (x, lanes, out))


@inner
def _sum_strip(number, worker, x, rows, pitch, width, lanes, out):
    numbers, wide = pointer(x), pointer(lanes)
    # As many sums of as many rows: one long chain of additions would round more.
    first, some_rows = number * lane_count(wide), int(math.sqrt(rows)) + 1
    if first + lane_count(wide) <= width:
        everything = splat(wide, 0)
        for begin in range(0, rows, some_rows):
            some = splat(wide, 0)
            for row in range(begin, min(begin + some_rows, rows)):
                some = some + lanes_at(numbers, row * pitch + first, wide)
            everything = everything + some
        put_lanes(pointer(out), first, everything)
    else:
        for column in range(first, width):
            out[column] = 0
            for begin in range(0, rows, some_rows):
                rest = out.dtype.type(0)
                for row in range(begin, min(begin + some_rows, rows)):
                    rest += at(numbers, row * pitch + column)
                out[column] += rest


@part
def sum_columns(team, x, rows, pitch, width, lanes, out):
    """out [width] = the sums of the first columns of x, flat, whose rows are `pitch` numbers long."""
    share(team, -(-width // lane_count(pointer(lanes))), _sum_strip, (x, rows, pitch, width, lanes, out))


@kernel
def _transpose(team, *operands):
    transpose(team, *operands)


def transposed(x: Array) -> Array:
    """x.T, contiguous."""
    out = workspace.empty(x.shape[::-1], x.dtype)
    _transpose(team_for(x.size), x, like(x.dtype), out)
    return out
