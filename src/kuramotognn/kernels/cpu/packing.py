"""Between the caller's rows and the kernels' tiles, and between the caller's units and theirs."""

import math

import numpy as np

from kuramotognn.kernels.cpu.elementary import half_turns
from kuramotognn.kernels.cpu.jit import inner, kernel, part
from kuramotognn.kernels.cpu.lanes import fma, lanes_at, pointer, put_lanes, rows, splat
from kuramotognn.kernels.cpu.team import share, team_for
from kuramotognn.kernels.cpu.workspace import workspace


def pack(x, layout, plan, factor=1.0):
    """The columns of factor * x [N, d] tile by tile, rows in the layout's order: numbers [N * columns]."""
    return _packed(x, layout, plan, factor, False)


def pack_states(x, layout, plan):
    """The same for states, which are phases in half turns unless the field is linear."""
    return _packed(x, layout, plan, 1.0, not plan.linear)


def unpack(tiles, layout, plan, factor=1.0):
    """factor * x [N, d] from what `pack` made of x."""
    return _unpacked(tiles, None, layout, plan, factor)


def unpack_states(tiles, start, layout, plan):
    """The state [N, d] that began as `start` before it was packed.

    Phases are where they began plus how far they went, so that whole turns count and what did not move has not changed.
    """
    if plan.linear:
        return unpack(tiles, layout, plan)
    return _unpacked(tiles, padded(start, plan).reshape(-1), layout, plan, math.pi)


def _packed(x, layout, plan, factor, turned):
    out = workspace.empty((plan.n * plan.columns,), x.dtype)
    if out.size:
        shape = (layout.order, plan.columns, plan.wide_columns, rows(out, plan.unit))
        operands = (padded(x, plan).reshape(-1), *shape, out, x.dtype.type(factor), turned)
        _pack(team_for(out.size), layout.chunks, *operands)
    return out


def _unpacked(tiles, start, layout, plan, factor):
    out = workspace.empty((plan.n, plan.columns), tiles.dtype)
    if out.size:
        shape = (layout.order, plan.columns, plan.wide_columns, rows(tiles, plan.unit))
        operands = (tiles, start, *shape, out.reshape(-1), tiles.dtype.type(factor))
        _unpack(team_for(out.size), layout.chunks, *operands)
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


@part
def _inward(x, factor, turned):
    return half_turns(x) if turned else splat(x, factor) * x


@part
def _outward(value, start, place, like, factor):
    if start is None:
        out = splat(value, factor) * value
    else:
        began = lanes_at(start, place, like)
        out = fma(splat(value, factor), value - half_turns(began), began)
    return out


@inner
def _pack_rows(number, worker, bounds, x, order, d, wide, like, out, factor, turned):
    """Whole rows at a time, so that each cache line is read once: first `wide` columns in tiles of two units."""
    n, unit = out.size // d, out.size // like.size
    width, source, target = pointer(like), pointer(x), pointer(out)
    for i in range(bounds[number], bounds[number + 1]):
        row = order[i] * d
        for c in range(0, wide, 2 * unit):
            for half in range(c, c + 2 * unit, unit):
                value = _inward(lanes_at(source, row + half, width), factor, turned)
                put_lanes(target, n * c + 2 * unit * i + half - c, value)
        for c in range(wide, d, unit):
            put_lanes(target, n * c + unit * i, _inward(lanes_at(source, row + c, width), factor, turned))


@kernel
def _pack(team, bounds, *operands):
    share(team, bounds.size - 1, _pack_rows, (bounds, *operands))


@inner
def _unpack_rows(number, worker, bounds, tiles, start, order, d, wide, like, out, factor):
    n, unit = out.size // d, out.size // like.size
    width, source, began, target = pointer(like), pointer(tiles), pointer(start), pointer(out)
    for i in range(bounds[number], bounds[number + 1]):
        row = order[i] * d
        for c in range(0, wide, 2 * unit):
            for half in range(c, c + 2 * unit, unit):
                value = lanes_at(source, n * c + 2 * unit * i + half - c, width)
                put_lanes(target, row + half, _outward(value, began, row + half, width, factor))
        for c in range(wide, d, unit):
            value = lanes_at(source, n * c + unit * i, width)
            put_lanes(target, row + c, _outward(value, began, row + c, width, factor))


@kernel
def _unpack(team, bounds, *operands):
    share(team, bounds.size - 1, _unpack_rows, (bounds, *operands))
