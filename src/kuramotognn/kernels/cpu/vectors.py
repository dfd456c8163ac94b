"""Vectors of any length in whole lanes and a rest."""

from kuramotognn.kernels.cpu.jit import part
from kuramotognn.kernels.cpu.lanes import at, fma, increase, lane_count, lanes_at, put_lanes, splat, total


@part
def _whole(width, like):
    """As much of `width` as fills lanes."""
    return width // lane_count(like) * lane_count(like)


@part
def dot(left, right, width, like):
    """<left, right> of `width` numbers, in lanes such as `like` points to."""
    products = splat(like, 0)
    for t in range(0, _whole(width, like), lane_count(like)):
        products = fma(lanes_at(left, t, like), lanes_at(right, t, like), products)
    out = total(products)
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
