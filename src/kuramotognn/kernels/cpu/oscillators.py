"""Scalar oscillators in time: one number per node, so threads share the nodes and meet after every stage.

The kernels of :mod:`kuramotognn.kernels.cpu.flow` give each thread columns of its own; one column leaves nothing to
share out. Here a whole run of steps is one call per thread, with a barrier between stages. Every stage is one pass:
torque, slope, next phase, its sine and cosine, and their sums over blocks of fixed size. The bits therefore do not
depend on the number of threads.
"""

import sys
from typing import NamedTuple

import numpy as np
from numba import types
from numba.extending import intrinsic

from kuramotognn.kernels.cpu.elementary import sincos
from kuramotognn.kernels.cpu.jit import kernel, part
from kuramotognn.kernels.cpu.lanes import fma, splat, total
from kuramotognn.kernels.cpu.layout import Array
from kuramotognn.kernels.cpu.memory import ahead, at, lanes_at, pointer, prefetch, put, put_lanes, until_here

MEAN_FIELD, SPARSE, DENSE = range(3)
AHEAD = 24  # neighbours between a prefetch and its use
SPINS = 2000  # looks at a barrier before the processor is offered to others


class Interaction(NamedTuple):
    """Where the torque of the others comes from; what a kind does not need is empty."""

    kind: int
    cosine: float  # K cos(lag)
    sine: float  # K sin(lag)
    scale: Array  # [T] rows: a factor for each oscillator, or empty
    rowptr: Array  # [T L + 1] int64
    place: Array  # [E] int32, where in a stage's pairs each neighbour's sine stands
    weight: Array  # [E], or empty where every weight is one
    matrix: Array  # [T L * T] rows


class Stepping(NamedTuple):
    """A Runge–Kutta method whose stages lean on the one before: stage j starts at x + h reach[j - 1] k_(j - 1)."""

    step: float
    reach: Array  # [S], the last one unused
    weights: Array  # [S]
    delay: int  # steps
    diffusion: float  # standard deviation of what noise adds in a step
    inertia: float  # 0: first order


class State(NamedTuple):
    """Everything that changes: T tiles of L oscillators, each one row; the last one is padded with zeros."""

    phase: Array  # [T] rows
    frequency: Array  # [T] rows
    slope: Array  # [T] rows, weighted slopes so far; empty for methods of one stage
    velocity: Array  # [T] rows; empty in first order, and so are the next two
    stage_velocity: Array
    velocity_slope: Array
    pairs: Array  # [R * 2 T L] numbers: a tile's sines, then its cosines, at the stages that may still be asked for
    sums: Array  # [Q, B, 2] sums of the same over blocks
    live: Array  # [1] row of ones and zeros: which oscillators of the last tile are real


@intrinsic
def _count(typingctx, counter, number):
    """Add to counter[0] as one, for all threads to see; what it was before."""

    def codegen(context, builder, sig, args):
        data = context.make_array(counter)(context, builder, value=args[0]).data
        return builder.atomic_rmw("add", data, context.cast(builder, args[1], number, types.int64), "seq_cst")

    return types.int64(counter, number), codegen


if sys.platform == "win32":
    _give_way = kernel(lambda: 0)
else:
    _give_way = types.ExternalFunction("sched_yield", types.int32())


@kernel
def _meet(counter, everybody):
    """Wait until `everybody` arrivals were counted since the start."""
    _count(counter, 1)
    spins = 0
    while _count(counter, 0) < everybody:
        spins += 1
        if spins > SPINS:
            _give_way()


@part
def _sparse_sums(first, last, end, place, weight, weighted, far, lanes):
    """Sums over neighbours of weight times sine and cosine; end is the last entry of all."""
    one = type(at(far, 0))(1)
    s = c = one - one
    for e in range(first, last):
        prefetch(far, at(place, min(e + AHEAD, end)), 1)
        j = np.int64(at(place, e))
        w = at(weight, e) if weighted else one
        s += w * at(far, j)
        c += w * at(far, j + lanes)
    return s, c


@part
def _dense_sums(tiles, row, far, lanes):
    """The same for a row of a full matrix."""
    s = c = splat(row, 0)
    for t in range(tiles):
        a = at(row, t)
        s = fma(a, lanes_at(far, 2 * t * lanes, row), s)
        c = fma(a, lanes_at(far, (2 * t + 1) * lanes, row), c)
    return total(s), total(c)


@part
def _accumulate(tile, first, last, h, b, reach, k, base, slopes):
    """What follows a stage with slope k: the next stage's value, or after the last one the next step's."""
    x, slope = at(base, tile), b * k
    if not first:
        slope = slope + at(slopes, tile)
    if last:
        following = fma(h, slope, x)
    else:
        put(slopes, tile, slope)
        following = fma(reach, k, x)
    return following


@part
def _show(x, tile, tiles, lanes, live, pairs):
    """Sine and cosine of a tile, for all to see; zero where there is no oscillator."""
    s, c = sincos(x)
    if tile == tiles - 1:
        s, c = s * at(live, 0), c * at(live, 0)
    put_lanes(pairs, 2 * tile * lanes, s)
    put_lanes(pairs, (2 * tile + 1) * lanes, c)
    return s, c


@kernel
def integrate_share(start, steps, blocks, size, threads, counter, interaction, stepping, state, noise):
    """Steps `start` to `start + steps` of blocks `blocks[0]` to `blocks[1]`; every thread of the team calls it."""
    kind, k_cos, k_sin, scales, rowptrs, places, weighting, full = interaction
    h, reaches, weights, delay, diffusion, inertia = stepping
    phases, frequencies, slopes, velocities, stage_velocities, velocity_slopes, all_pairs, all_sums, alive = state
    tiles, stages, summed, lanes = phases.size, weights.size, all_sums.shape[0], phases.itemsize // all_pairs.itemsize
    width, end, massive = 2 * tiles * lanes, places.size - 1, inertia > 0
    kept = all_pairs.size // width
    buffer = np.empty(2 * lanes, all_pairs.dtype)
    others, pairs, live, kicks = pointer(buffer), pointer(all_pairs), pointer(alive), pointer(noise)
    phase, frequency, slope, scale = pointer(phases), pointer(frequencies), pointer(slopes), pointer(scales)
    rowptr, place, weight, matrix = pointer(rowptrs), pointer(places), pointer(weighting), pointer(full)
    velocity, stage_velocity, push = pointer(velocities), pointer(stage_velocities), pointer(velocity_slopes)
    cosine, sine, step = splat(phase, k_cos), splat(phase, k_sin), splat(phase, h)
    kick = splat(phase, diffusion / inertia if massive else diffusion)
    per_mass = splat(phase, 1 / inertia if massive else 0.0)
    meetings = 0
    for number in range(steps):
        for stage in range(stages):
            first, last = stage == 0, stage == stages - 1
            b, reach = splat(phase, weights[stage]), splat(phase, h * reaches[stage])
            now = (start + number) * stages + stage
            then = now - delay * stages
            near, far = ahead(pairs, now % kept * width), ahead(pairs, then % kept * width)
            following, sums = ahead(pairs, (now + 1) % kept * width), all_sums[(now + 1) % summed]
            mean_s = mean_c = 0.0
            if kind == MEAN_FIELD:
                past = all_sums[then % summed]
                for block in range(past.shape[0]):
                    mean_s += past[block, 0]
                    mean_c += past[block, 1]
            others_s, others_c = splat(phase, mean_s), splat(phase, mean_c)
            for block in range(blocks[0], blocks[1]):
                sum_s = sum_c = splat(phase, 0)
                for tile in range(block * size, min((block + 1) * size, tiles)):
                    if kind != MEAN_FIELD:
                        for lane in range(lanes):
                            i = tile * lanes + lane
                            if kind == SPARSE:
                                total_s, total_c = _sparse_sums(
                                    at(rowptr, i), at(rowptr, i + 1), end, place, weight, weighting.size, far, lanes
                                )
                            else:
                                total_s, total_c = _dense_sums(tiles, ahead(matrix, i * tiles), far, lanes)
                            put(others, lane, total_s)
                            put(others, lanes + lane, total_c)
                        others_s, others_c = lanes_at(others, 0, phase), lanes_at(others, lanes, phase)
                    s, c = lanes_at(near, 2 * tile * lanes, phase), lanes_at(near, (2 * tile + 1) * lanes, phase)
                    # sin(x_j - x_i - lag), summed over j, by the addition theorem.
                    turned_s = others_s * cosine - others_c * sine
                    turned_c = others_c * cosine + others_s * sine
                    k = turned_s * c - turned_c * s
                    if scales.size:
                        k = k * at(scale, tile)
                    k = k + at(frequency, tile)
                    if massive:
                        v = at(stage_velocity, tile)
                        v, k = _accumulate(tile, first, last, step, b, reach, (k - v) * per_mass, velocity, push), v
                        if last:
                            if noise.size:
                                v = fma(kick, at(kicks, number * tiles + tile), v)
                            put(velocity, tile, v)
                        put(stage_velocity, tile, v)
                    x = _accumulate(tile, first, last, step, b, reach, k, phase, slope)
                    if last:
                        if noise.size and not massive:
                            x = fma(kick, at(kicks, number * tiles + tile), x)
                        put(phase, tile, x)
                    s, c = _show(x, tile, tiles, lanes, live, following)
                    sum_s, sum_c = sum_s + s, sum_c + c
                sums[block, 0] = total(sum_s)
                sums[block, 1] = total(sum_c)
            if threads > 1:
                meetings += 1
                _meet(counter, meetings * threads)
    until_here(buffer)


@kernel
def set_pairs(slot, size, shift, state):
    """Sine, cosine and their sums of phase + shift * frequency, as the stage `slot`."""
    phase, frequency, live = pointer(state.phase), pointer(state.frequency), pointer(state.live)
    tiles, lanes = state.phase.size, state.phase.itemsize // state.pairs.itemsize
    width, sums = 2 * tiles * lanes, state.sums[slot % state.sums.shape[0]]
    pairs = ahead(pointer(state.pairs), slot % (state.pairs.size // width) * width)
    for block in range(sums.shape[0]):
        sum_s = sum_c = splat(phase, 0)
        for tile in range(block * size, min((block + 1) * size, tiles)):
            x = fma(splat(phase, shift), at(frequency, tile), at(phase, tile))
            s, c = _show(x, tile, tiles, lanes, live, pairs)
            sum_s, sum_c = sum_s + s, sum_c + c
        sums[block, 0] = total(sum_s)
        sums[block, 1] = total(sum_c)


@kernel
def wrap(phase, turns):
    """Bring phases into [-pi, pi] and count the turns taken off: sines stay exact however long a run is."""
    for i in range(phase.size):
        whole = np.rint(phase[i] / (2 * np.pi))
        phase[i] -= whole * (2 * np.pi)
        turns[i] += whole
