"""Dense matrices: products of which one factor is small, such as the projections of an attention, and transposes.

BLAS is a little slower for these shapes, and does not promise the same bits for every number of threads.
"""

from kuramotognn.kernels.cpu.jit import inner, kernel, part
from kuramotognn.kernels.cpu.lanes import fma, like, splat
from kuramotognn.kernels.cpu.layout import N_CHUNKS, Array
from kuramotognn.kernels.cpu.memory import ahead, at, lane_count, lanes_at, pointer, put, put_lanes, put_transposed
from kuramotognn.kernels.cpu.team import share, team_for
from kuramotognn.kernels.cpu.workspace import workspace

ROWS = 6  # taken at once: with two vectors of each, all registers but four hold sums
DEPTH = 128  # terms of a sum that are added before the next rows come by; as many rows of the right factor stay near
BLOCKS = 5  # of rows in a share, at least: they find the same part of the right factor near
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


@inner
def _product_blocks(number, worker, shares, rows, depth, left, pitch, step, right, width, wide, narrow, out):
    a, b, many, few, blocks = pointer(left), pointer(right), pointer(wide), pointer(narrow), -(-rows // ROWS)
    for begin in range(0, depth, DEPTH):
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


@kernel
def _multiply(team, shares, *operands):
    share(team, shares, _product_blocks, (shares, *operands))


def product(left: Array, right: Array, *, transpose_left: bool = False) -> Array:
    """left @ right, or left.T @ right."""
    depth, width = right.shape
    rows = left.shape[1] if transpose_left else left.shape[0]
    out = workspace.empty((rows, width), right.dtype)
    if depth == 0:
        out.fill(0)
    shares = max(1, min(N_CHUNKS, rows // (ROWS * BLOCKS)))
    steps = (1, rows) if transpose_left else (depth, 1)
    lanes = like(right.dtype, 2), like(right.dtype)
    operands = (rows, depth, left.reshape(-1), *steps, right.reshape(-1), width, *lanes, out.reshape(-1))
    _multiply(team_for(rows * depth * width), shares, *operands)
    return out


@inner
def _transpose_squares(number, worker, x, lanes, out):
    """Squares of as many rows and columns as a register has lanes; what is left over at the edges number by number."""
    rows, columns = x.shape
    source, target, square = pointer(x), pointer(out), pointer(lanes)
    size = lane_count(square)
    down, across = -(-rows // size), -(-columns // size)
    for place in range(down * across * number // STRIPS, down * across * (number + 1) // STRIPS):
        # Along the shorter side first: its lines are still near when the next squares come by.
        left, top = (place // down, place % down) if rows < columns else (place % across, place // across)
        left, top = left * size, top * size
        if top + size <= rows and left + size <= columns:
            here = ahead(source, top * columns + left)
            put_transposed(ahead(target, left * rows + top), rows, here, columns, square)
        else:
            for c in range(left, min(left + size, columns)):
                for r in range(top, min(top + size, rows)):
                    put(target, c * rows + r, at(source, r * columns + c))


@kernel
def _transpose(team, *operands):
    share(team, STRIPS, _transpose_squares, operands)


def transposed(x: Array) -> Array:
    """x.T, contiguous."""
    out = workspace.empty(x.shape[::-1], x.dtype)
    _transpose(team_for(x.size), x, like(x.dtype), out)
    return out
