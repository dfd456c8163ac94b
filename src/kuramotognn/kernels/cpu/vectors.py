"""Vectors of any length in whole lanes and a rest."""

import numpy as np

from kuramotognn.kernels.cpu.jit import part
from kuramotognn.kernels.cpu.lanes import fma, splat, total
from kuramotognn.kernels.cpu.memory import ahead, at, increase, lane_count, lanes_at, put, put_lanes


@part
def _whole(width, like):
    """As much of `width` as fills lanes."""
    return width // lane_count(like) * lane_count(like)


@part
def products(left, right, width, like):
    """left * right, the lanes such as `like` points to added up; what of `width` fills no lanes is left out."""
    sums = splat(like, 0)
    for t in range(0, _whole(width, like), lane_count(like)):
        sums = fma(lanes_at(left, t, like), lanes_at(right, t, like), sums)
    return sums


@part
def dot(left, right, width, like):
    """<left, right> of `width` numbers, in lanes such as `like` points to."""
    out = total(products(left, right, width, like))
    for t in range(_whole(width, like), width):
        out += at(left, t) * at(right, t)
    return out


@part
def add_scaled(factor, source, out, width, like):
    """out += factor * source, `width` numbers each."""
    for t in range(0, _whole(width, like), lane_count(like)):
        put_lanes(out, t, fma(splat(like, factor), lanes_at(source, t, like), lanes_at(out, t, like)))
    for t in range(_whole(width, like), width):
        increase(out, t, factor * at(source, t))


@part
def sum_rows(first, last, col, factors, places, pitch, dense, stride, out, width, like):
    """out = sum over entries of their factor times row `col` of dense, `width` numbers of it.

    The factor of entry e stands at e, or where places is not None at places[e], times `pitch`; rows are `stride` apart.
    """
    for t in range(0, _whole(width, like), lane_count(like)):
        acc = splat(like, 0)
        for e in range(first, last):
            entry = np.int64(e if places is None else at(places, e))
            row = lanes_at(dense, np.int64(at(col, e)) * stride + t, like)
            acc = fma(splat(like, at(factors, entry * pitch)), row, acc)
        put_lanes(out, t, acc)
    rest = _whole(width, like)
    for t in range(rest, width):
        put(out, t, type(at(out, 0))(0))
    if rest < width:
        for e in range(first, last):
            entry = np.int64(e if places is None else at(places, e))
            row = ahead(dense, np.int64(at(col, e)) * stride + rest)
            add_scaled(at(factors, entry * pitch), row, ahead(out, rest), width - rest, like)
