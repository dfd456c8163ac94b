"""Vectors of one number per entry: into the order of a layout, and sums of what tiles found."""

import numpy as np

from kuramotognn.kernels.cpu.jit import inner, part
from kuramotognn.kernels.cpu.layout import N_CHUNKS
from kuramotognn.kernels.cpu.memory import ahead, pointer, put
from kuramotognn.kernels.cpu.team import share


def strength_gradient(product, row_strength, linear):
    """The sums of a linear field's rows; of phases, whose interaction is linear in a, <a, dots>."""
    return float(row_strength.sum() if linear else product)


@inner
def take(team, values, places, factor, out):
    """out = factor * values[places]."""
    share(team, N_CHUNKS, _take_share, (values, places, factor, out))


@inner
def add_up(team, dots, places, a, factor, out):
    """out[places] = factor * dots [tiles, E] summed over tiles, in order; returns <a, the sums>."""
    products = np.zeros(N_CHUNKS, np.float64)
    share(team, N_CHUNKS, _add_up_share, (products, dots, places, a, factor, out))
    return products.sum()


@part
def own_sums(number, n, all_dots, all_strengths):
    """Pointers to the dots and strengths that a tile adds to; the dots are cleared."""
    dots = ahead(pointer(all_dots), number * all_dots.shape[1])
    for e in range(all_dots.shape[1]):
        put(dots, e, all_dots.dtype.type(0))
    return dots, ahead(pointer(all_strengths), number * n)


@inner
def _share_of(number, size):
    """The range of a share of N_CHUNKS that are alike."""
    return size * number // N_CHUNKS, size * (number + 1) // N_CHUNKS


@inner
def _take_share(number, worker, values, places, factor, out):
    lo, hi = _share_of(number, places.size)
    for e in range(lo, hi):
        out[e] = factor * values[places[e]]


@inner
def _add_up_share(number, worker, products, dots, places, a, factor, out):
    lo, hi = _share_of(number, places.size)
    product = 0.0
    for e in range(lo, hi):
        acc = dots.dtype.type(0)
        for tile in range(dots.shape[0]):
            acc += dots[tile, e]
        out[places[e]] = factor * acc
        product += np.float64(a[places[e]]) * np.float64(acc)
    products[number] = product
