"""Between the caller's rows and the kernels' tiles, and between the caller's units and theirs."""

import math
from functools import lru_cache

import numpy as np

from kuramotognn.kernels.cpu.elementary import half_turns
from kuramotognn.kernels.cpu.jit import inner, kernel, part
from kuramotognn.kernels.cpu.lanes import fma, lane_count, lanes_at, like, pointer, put_lanes, splat
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
        shape = (layout.order, *_places(plan.n, plan.cut), like(x.dtype))
        operands = (padded(x, plan).reshape(-1), *shape, out, x.dtype.type(factor), turned)
        _pack(team_for(out.size), layout.chunks, *operands)
    return out


def _unpacked(tiles, start, layout, plan, factor):
    out = workspace.empty((plan.n, plan.columns), tiles.dtype)
    if out.size:
        shape = (layout.order, *_places(plan.n, plan.cut), like(tiles.dtype))
        operands = (tiles, start, *shape, out.reshape(-1), tiles.dtype.type(factor))
        _unpack(team_for(out.size), layout.chunks, *operands)
    return trimmed(out, plan)


@lru_cache(maxsize=64)
def _places(n, cut):
    """(places, strides): number c of unit u of row i stands at places[u] + strides[u] * i + c."""
    found = [(n * tile.start + offset, tile.width) for tile in cut.tiles for offset in range(0, tile.width, cut.unit)]
    return tuple(np.array(found, np.int64).T.copy())


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
def _pack_rows(number, worker, bounds, x, order, places, strides, lanes, out, factor, turned):
    """Whole rows at a time, so that each cache line is read once."""
    width, source, target = pointer(lanes), pointer(x), pointer(out)
    for i in range(bounds[number], bounds[number + 1]):
        row = np.int64(order[i]) * places.size
        for u in range(places.size):
            value = _inward(lanes_at(source, (row + u) * lane_count(width), width), factor, turned)
            put_lanes(target, places[u] + strides[u] * i, value)


@kernel
def _pack(team, bounds, *operands):
    share(team, bounds.size - 1, _pack_rows, (bounds, *operands))


@inner
def _unpack_rows(number, worker, bounds, tiles, start, order, places, strides, lanes, out, factor):
    width, source, began, target = pointer(lanes), pointer(tiles), pointer(start), pointer(out)
    for i in range(bounds[number], bounds[number + 1]):
        row = np.int64(order[i]) * places.size
        for u in range(places.size):
            place, value = (row + u) * lane_count(width), lanes_at(source, places[u] + strides[u] * i, width)
            put_lanes(target, place, _outward(value, began, place, width, factor))


@kernel
def _unpack(team, bounds, *operands):
    share(team, bounds.size - 1, _unpack_rows, (bounds, *operands))
