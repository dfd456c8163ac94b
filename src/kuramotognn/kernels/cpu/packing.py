"""Between the caller's rows and the kernels' tiles."""

import numpy as np

from kuramotognn.kernels.cpu.jit import kernel, share_rows
from kuramotognn.kernels.cpu.lanes import lanes_at, pointer, put_lanes, rows
from kuramotognn.kernels.cpu.workspace import workspace


def pack(x, layout, plan):
    """The columns of x [N, d] tile by tile, rows in the layout's order: numbers [N * columns]."""
    out = workspace.empty((plan.n * plan.columns,), x.dtype)
    if out.size:
        x = padded(x, plan)
        like = rows(out, plan.unit)
        share_rows(
            _pack, layout.chunks, x.reshape(-1), layout.order, plan.columns, plan.wide_columns, like, out, work=out.size
        )
    return out


def unpack(tiles, layout, plan):
    """x [N, d] from what `pack` made."""
    out = workspace.empty((plan.n, plan.columns), tiles.dtype)
    if out.size:
        like, flat = rows(tiles, plan.unit), out.reshape(-1)
        share_rows(
            _unpack, layout.chunks, tiles, layout.order, plan.columns, plan.wide_columns, like, flat, work=out.size
        )
    return trimmed(out, plan)


def padded(x, plan):
    """x [N, d] with columns of zeros that fill the last unit."""
    if plan.columns == plan.d:
        return x
    out = workspace.empty((plan.n, plan.columns), x.dtype)
    out[:, : plan.d], out[:, plan.d :] = x, 0
    return out


def trimmed(x, plan):
    """x without the columns that `padded` added."""
    if plan.columns == plan.d:
        return x
    out = workspace.empty((plan.n, plan.d), x.dtype)
    np.copyto(out, x[:, : plan.d])
    return out


@kernel
def _pack(lo, hi, x, order, d, wide, like, out):
    """Whole rows at a time, so that each cache line is read once: first `wide` columns in tiles of two units."""
    n, unit = out.size // d, out.size // like.size
    width, source, target = pointer(like), pointer(x), pointer(out)
    for i in range(lo, hi):
        row = order[i] * d
        for c in range(0, wide, 2 * unit):
            put_lanes(target, n * c + 2 * unit * i, lanes_at(source, row + c, width))
            put_lanes(target, n * c + 2 * unit * i + unit, lanes_at(source, row + c + unit, width))
        for c in range(wide, d, unit):
            put_lanes(target, n * c + unit * i, lanes_at(source, row + c, width))


@kernel
def _unpack(lo, hi, tiles, order, d, wide, like, out):
    n, unit = out.size // d, out.size // like.size
    width, source, target = pointer(like), pointer(tiles), pointer(out)
    for i in range(lo, hi):
        row = order[i] * d
        for c in range(0, wide, 2 * unit):
            put_lanes(target, row + c, lanes_at(source, n * c + 2 * unit * i, width))
            put_lanes(target, row + c + unit, lanes_at(source, n * c + 2 * unit * i + unit, width))
        for c in range(wide, d, unit):
            put_lanes(target, row + c, lanes_at(source, n * c + unit * i, width))
