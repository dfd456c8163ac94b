"""Dropout's coins, thrown for many numbers at once."""

from functools import lru_cache

import numpy as np

from kuramotognn.kernels.cpu.jit import inner, kernel, part
from kuramotognn.kernels.cpu.layout import N_CHUNKS, Array
from kuramotognn.kernels.cpu.team import share, team_for
from kuramotognn.kernels.cpu.workspace import workspace


@part
def _random_bits(key, number):
    """64 random bits for each number: the generator SplitMix64, which can begin anywhere."""
    z = key + np.uint64(number) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@inner
def _throw_share(number, worker, key, rejected, kept, coins, x, out):
    """Two numbers from each 64 bits; whoever does it, the same bits belong to the same number."""
    pairs, nothing = (out.size + 1) // 2, coins.dtype.type(0)
    first, last = pairs * number // N_CHUNKS, pairs * (number + 1) // N_CHUNKS
    for pair in range(first, last):
        bits = _random_bits(key, pair)
        # As integers, which can be chosen without a branch: a processor that guesses coins is wrong half of the time.
        coins[2 * pair] = kept if bits >> np.uint64(32) >= rejected else nothing
        if 2 * pair + 1 < out.size:
            coins[2 * pair + 1] = kept if bits & np.uint64(0xFFFFFFFF) >= rejected else nothing
    if x is not None:
        for place in range(2 * first, min(2 * last, out.size)):
            out[place] *= x[place]


@kernel
def _throw(team, *operands):
    share(team, N_CHUNKS, _throw_share, operands)


def kept_or_not(key: int, p: float, shape: tuple[int, ...], dtype: np.dtype) -> Array:
    """1 / (1 - p) with probability 1 - p, and else 0: what dropout multiplies by. `key` has 64 random bits."""
    return _thrown(key, p, shape, dtype, None)


def thinned(key: int, p: float, x: Array) -> Array:
    """x times what `kept_or_not` gives."""
    return _thrown(key, p, x.shape, x.dtype, x.reshape(-1))


def _thrown(key, p, shape, dtype, x):
    out = workspace.empty(shape, dtype)
    flat, (bits, rejected, kept) = out.reshape(-1), _odds(p, dtype)
    _throw(team_for(out.size), np.uint64(key), rejected, kept, flat.view(bits), x, flat)
    return out


@lru_cache
def _odds(p, dtype):
    """The integers that stand for such numbers, how many of 2^32 are rejected, and what stands for a kept one."""
    bits = np.dtype(f"u{dtype.itemsize}")
    return bits, np.uint64(round(p * 2**32)), np.array(1 / (1 - p), dtype).view(bits)[()]
