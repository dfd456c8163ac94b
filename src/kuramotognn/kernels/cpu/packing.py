"""Between the caller's rows and the kernels' tiles, and between the caller's units and theirs."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from kuramotognn.kernels.cpu.elementary import half_turns
from kuramotognn.kernels.cpu.jit import inner, part
from kuramotognn.kernels.cpu.lanes import fma, like, splat
from kuramotognn.kernels.cpu.layout import Array
from kuramotognn.kernels.cpu.memory import lane_count, lanes_at, pointer, put_lanes
from kuramotognn.kernels.cpu.team import share
from kuramotognn.kernels.cpu.workspace import workspace


class Packing(NamedTuple):
    """Where numbers of the caller's rows stand in tiles.

    Number c of unit u of row order[i] is at places[u] + strides[u] * i + c.
    """

    bounds: Array  # of ranges of rows, for threads to share
    order: Array
    places: Array
    strides: Array
    lanes: Array  # like a unit

    @classmethod
    def of(cls, layout, plan, dtype):
        """That of an integration."""
        return cls(layout.chunks, layout.order, *_places(plan.n, plan.cut), like(dtype))


@lru_cache(maxsize=64)
def _places(n, cut):
    found = [(n * tile.start + offset, tile.width) for tile in cut.tiles for offset in range(0, tile.width, cut.unit)]
    return tuple(np.array(found, np.int64).reshape(-1, 2).T.copy())


def padded(x, plan):
    """The numbers of x [N, d], rows with zeros that fill their last unit: flat."""
    if plan.columns == plan.d:
        return x.reshape(-1)
    out = workspace.empty((plan.n, plan.columns), x.dtype)
    out[:, : plan.d], out[:, plan.d :] = x, 0
    return out.reshape(-1)


def trimmed(x, plan):
    """The rows [N, d] of what `padded` gave."""
    rows = x.reshape(plan.n, plan.columns)
    if plan.columns == plan.d:
        return rows
    out = workspace.empty((plan.n, plan.d), x.dtype)
    np.copyto(out, rows[:, : plan.d])
    return out


@inner
def pack(team, packing, x, factor, tiles):
    """tiles = the columns of factor * x; of phases in half turns where the factor is None."""
    share(team, packing.bounds.size - 1, _pack_rows, (packing, x, factor, tiles))


@inner
def unpack(team, packing, tiles, start, factor, x):
    """x = factor * what is in tiles.

    Of phases that began as `start`, unless it is None, where they began plus how far they went, so that whole turns
    count and what did not move has not changed.
    """
    share(team, packing.bounds.size - 1, _unpack_rows, (packing, tiles, start, factor, x))


@part
def _inward(x, factor):
    return half_turns(x) if factor is None else splat(x, factor) * x


@part
def _outward(value, start, place, like, factor):
    if start is None:
        out = splat(value, factor) * value
    else:
        began = lanes_at(start, place, like)
        out = fma(splat(value, factor), value - half_turns(began), began)
    return out


@inner
def _pack_rows(number, worker, packing, x, factor, tiles):
    """Whole rows at a time, so that each cache line is read once."""
    width, source, target = pointer(packing.lanes), pointer(x), pointer(tiles)
    places, strides, units = packing.places, packing.strides, packing.places.size
    for i in range(packing.bounds[number], packing.bounds[number + 1]):
        row = np.int64(packing.order[i]) * units
        for u in range(units):
            value = _inward(lanes_at(source, (row + u) * lane_count(width), width), factor)
            put_lanes(target, places[u] + strides[u] * i, value)


@inner
def _unpack_rows(number, worker, packing, tiles, start, factor, x):
    width, source, began, target = pointer(packing.lanes), pointer(tiles), pointer(start), pointer(x)
    places, strides, units = packing.places, packing.strides, packing.places.size
    for i in range(packing.bounds[number], packing.bounds[number + 1]):
        row = np.int64(packing.order[i]) * units
        for u in range(units):
            place, value = (row + u) * lane_count(width), lanes_at(source, places[u] + strides[u] * i, width)
            put_lanes(target, place, _outward(value, began, place, width, factor))
