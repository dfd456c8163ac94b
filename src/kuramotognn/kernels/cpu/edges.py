"""Vectors of one number per entry: into the order of a layout, and sums of what tiles found."""

import numpy as np

from kuramotognn.kernels.cpu.jit import inner, kernel, part
from kuramotognn.kernels.cpu.lanes import ahead, pointer, put
from kuramotognn.kernels.cpu.layout import N_CHUNKS
from kuramotognn.kernels.cpu.team import share, team_for
from kuramotognn.kernels.cpu.workspace import workspace


def taken(a, places, factor=1.0):
    """factor * a[places], in memory that is used again."""
    out = workspace.empty(a.shape, a.dtype)
    _take(team_for(out.size), a, places, a.dtype.type(factor), out)
    return out


class EdgeSums:
    """What the adjoints of the tiles add up to: each tile has its own row, and rows are added in order."""

    def __init__(self, layout, tiles, a, strength, linear, step=1.0):
        self.layout, self.a, self.strength, self.linear, self.step = layout, a, strength, linear, step
        self.dots = workspace.empty((tiles, a.size), a.dtype)  # [T, E] in transposed order; tiles clear their own
        self.row_strength = np.zeros((tiles, layout.n if linear else 0), np.float64)

    def gradients(self):
        """(grad_a [E], grad_strength)."""
        grad_a = workspace.empty(self.a.shape, self.a.dtype)
        products = np.zeros(N_CHUNKS, np.float64)
        factor = self.a.dtype.type(self.step * self.strength)
        _add_up(team_for(self.dots.size), products, self.dots, self.layout.t_perm, self.a, factor, grad_a)
        # The interaction of phases is linear in a: its sum with the gradient is <a, dots>.
        total = self.row_strength.sum() if self.linear else products.sum()
        return grad_a, self.step * float(total)


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


@kernel
def _take(team, *operands):
    share(team, N_CHUNKS, _take_share, operands)


@inner
def _add_up_share(number, worker, products, dots, places, a, factor, out):
    """out[places] = factor * dots summed over tiles, in order; products[number] = <a, dots> of a share."""
    lo, hi = _share_of(number, places.size)
    product = 0.0
    for e in range(lo, hi):
        acc = dots.dtype.type(0)
        for tile in range(dots.shape[0]):
            acc += dots[tile, e]
        out[places[e]] = factor * acc
        product += np.float64(a[places[e]]) * np.float64(acc)
    products[number] = product


@kernel
def _add_up(team, *operands):
    share(team, N_CHUNKS, _add_up_share, operands)
