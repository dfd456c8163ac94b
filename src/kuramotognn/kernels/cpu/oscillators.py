"""Scalar oscillators in time: one number per node, so threads share the nodes and meet after every stage.

The kernels of :mod:`kuramotognn.kernels.cpu.flow` give each thread columns of its own; one column leaves nothing to
share out. Here a whole run of steps is one call per thread, with a barrier between stages. Every stage is one pass:
torque, slope, next phase, its sine and cosine, and their sums over blocks of fixed size. The bits therefore do not
depend on the number of threads.
"""

import sys
from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from kuramotognn.kernels.cpu.jit import kernel
from kuramotognn.kernels.cpu.lanes import Lanes, at, fma, load, splat, store, total
from kuramotognn.kernels.cpu.layout import Array
from kuramotognn.kernels.cpu.trig import sincos

MEAN_FIELD, SPARSE, DENSE = range(3)
AHEAD = 24  # neighbours between a prefetch and its use
SPINS = 2000  # looks at a barrier before the processor is offered to others


class Interaction(NamedTuple):
    """Where the torque of the others comes from; what a kind does not need is empty."""

    kind: int
    cosine: float  # K cos(lag)
    sine: float  # K sin(lag)
    scale: Array  # [T, L] a factor for each row, or [0, L]
    rowptr: Array  # [N + 1] int64
    col: Array  # [E] int32
    weight: Array  # [E], or empty where every weight is one
    matrix: Array  # [N, T, L]


class Stepping(NamedTuple):
    """A Runge–Kutta method whose stages lean on the one before: stage j starts at x + h ahead[j - 1] k_(j - 1)."""

    step: float
    ahead: Array  # [S], the last one unused
    weights: Array  # [S]
    delay: int  # steps
    diffusion: float  # standard deviation of what noise adds in a step
    inertia: float  # 0: first order


class State(NamedTuple):
    """Everything that changes, T tiles of L oscillators; the last tile is padded with zeros."""

    phase: Array  # [T, L]
    frequency: Array  # [T, L]
    slope: Array  # [T, L] weighted slopes so far
    velocity: Array  # [T, L], [0, L] in first order, and so are the next two
    stage_velocity: Array
    velocity_slope: Array
    pairs: Array  # [R, 2 T L] (sin, cos) of each oscillator at the stages that may still be asked for
    sums: Array  # [Q, B, 2] sums of the same over blocks
    live: Array  # [1, L] ones and zeros: which oscillators of the last tile are real


def _pair_vector(ty):
    scalar = ir.FloatType() if ty.dtype == types.float32 else ir.DoubleType()
    return ir.VectorType(scalar, 2 * 64 // (ty.dtype.bitwidth // 8))


def _constants(numbers):
    return ir.Constant(ir.VectorType(ir.IntType(32), len(numbers)), numbers)


def _pairs_pointer(context, builder, array_type, array, index_type, index):
    data = context.make_array(array_type)(context, builder, value=array).data
    vector = _pair_vector(array_type)
    offset = builder.mul(
        context.cast(builder, index, index_type, types.intp), ir.Constant(ir.IntType(64), vector.count)
    )
    return builder.bitcast(builder.gep(data, [offset]), vector.as_pointer())


@intrinsic
def load_pairs(typingctx, array, tile):
    """(sines, cosines) of a tile as lanes."""
    lane = Lanes(array.dtype)

    def codegen(context, builder, sig, args):
        both = builder.load(_pairs_pointer(context, builder, array, args[0], tile, args[1]))
        both.align = array.dtype.bitwidth // 8
        count = both.type.count
        parts = [builder.shuffle_vector(both, both, _constants(list(range(n, count, 2)))) for n in (0, 1)]
        return context.make_tuple(builder, sig.return_type, parts)

    return types.UniTuple(lane, 2)(array, tile), codegen


@intrinsic
def store_pairs(typingctx, array, tile, s, c):
    """Write sines and cosines so that those of one oscillator stand side by side: one line of cache for a neighbour."""

    def codegen(context, builder, sig, args):
        pointer = _pairs_pointer(context, builder, array, args[0], tile, args[1])
        half = args[2].type.count
        both = builder.shuffle_vector(args[2], args[3], _constants([n // 2 + n % 2 * half for n in range(2 * half)]))
        builder.store(both, pointer, align=array.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(array, tile, s, c), codegen


@intrinsic
def prefetch(typingctx, array, index):
    """Ask for array[index] of a vector ahead of time; any index will do."""

    def codegen(context, builder, sig, args):
        data = context.make_array(array)(context, builder, value=args[0]).data
        pointer = builder.gep(data, [context.cast(builder, args[1], index, types.intp)])
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        function = builder.module.globals.get("llvm.prefetch.p0i8") or ir.Function(
            builder.module, kind, "llvm.prefetch.p0i8"
        )
        builder.call(function, [builder.bitcast(pointer, byte), *(ir.Constant(number, n) for n in (0, 3, 1))])
        return context.get_dummy_value()

    return types.void(array, index), codegen


@intrinsic
def _arrive(typingctx, counter):
    def codegen(context, builder, sig, args):
        data = context.make_array(counter)(context, builder, value=args[0]).data
        builder.atomic_rmw("add", data, ir.Constant(ir.IntType(64), 1), "seq_cst")
        return context.get_dummy_value()

    return types.void(counter), codegen


@intrinsic
def _arrived(typingctx, counter):
    def codegen(context, builder, sig, args):
        data = context.make_array(counter)(context, builder, value=args[0]).data
        return builder.load_atomic(data, "seq_cst", 8)

    return types.int64(counter), codegen


if sys.platform == "win32":
    _give_way = kernel(lambda: 0)
else:
    _give_way = types.ExternalFunction("sched_yield", types.int32())


@kernel
def _meet(counter, everybody):
    """Wait until `everybody` arrivals were counted since the start."""
    _arrive(counter)
    spins = 0
    while _arrived(counter) < everybody:
        spins += 1
        if spins > SPINS:
            _give_way()


@kernel
def _sparse_sums(tile, n, rowptr, col, weight, far, buffer):
    """buffer[0] and buffer[1]: sums over the neighbours of a tile's rows of weight times sine and cosine."""
    lanes = buffer.shape[1]
    zero = buffer.dtype.type(0)
    edges = col.size
    for lane in range(lanes):
        i = tile * lanes + lane
        s, c = zero, zero
        if i < n:
            first, last = at(rowptr, i), at(rowptr, i + 1)
            if weight.size:
                for e in range(first, last):
                    if e + AHEAD < edges:
                        prefetch(far, 2 * np.int64(at(col, e + AHEAD)))
                    j, w = 2 * np.int64(at(col, e)), at(weight, e)
                    s += w * at(far, j)
                    c += w * at(far, j + 1)
            else:
                for e in range(first, last):
                    if e + AHEAD < edges:
                        prefetch(far, 2 * np.int64(at(col, e + AHEAD)))
                    j = 2 * np.int64(at(col, e))
                    s += at(far, j)
                    c += at(far, j + 1)
        buffer[0, lane] = s
        buffer[1, lane] = c


@kernel
def _dense_sums(tile, n, matrix, far, buffer):
    """The same for a full matrix."""
    lanes = buffer.shape[1]
    zero = splat(buffer.dtype.type(0))
    for lane in range(lanes):
        i = tile * lanes + lane
        s, c = zero, zero
        if i < n:
            for t in range(matrix.shape[1]):
                sines, cosines = load_pairs(far, t)
                a = load(matrix, (i, t))
                s, c = fma(a, sines, s), fma(a, cosines, c)
        buffer[0, lane] = total(s)
        buffer[1, lane] = total(c)


@kernel
def _accumulate(tile, first, last, h, b, reach, k, base, slopes):
    """What follows a stage with slope k: the next stage's value, or after the last one the next step's."""
    x, slope = load(base, tile), b * k
    if not first:
        slope = slope + load(slopes, tile)
    if last:
        return fma(h, slope, x)
    store(slopes, tile, slope)
    return fma(reach, k, x)


@kernel
def integrate_share(start, steps, blocks, block, n, threads, counter, interaction, stepping, state, noise):
    """Steps `start` to `start + steps` of blocks `blocks[0]` to `blocks[1]`; every thread of the team calls it."""
    # Unpacked once: an array taken out of a tuple inside the loop costs an atomic count of references each time.
    kind, k_cos, k_sin, scale, rowptr, col, weight, matrix = interaction
    h, aheads, weights, delay, diffusion, inertia = stepping
    phase, frequency, slopes, velocity, stage_velocity, velocity_slopes, pairs, all_sums, live = state
    tiles, lanes = phase.shape
    real = phase.dtype.type
    stages, kept, summed = weights.size, pairs.shape[0], all_sums.shape[0]
    buffer = np.empty((2, lanes), phase.dtype)
    cosine, sine, step = splat(real(k_cos)), splat(real(k_sin)), splat(real(h))
    kick = splat(real(diffusion / inertia if inertia > 0 else diffusion))
    per_mass = splat(real(1 / inertia if inertia > 0 else 0))
    meetings = 0
    for number in range(steps):
        for stage in range(stages):
            first, last = stage == 0, stage == stages - 1
            b, reach = splat(real(weights[stage])), splat(real(h * aheads[stage]))
            now = (start + number) * stages + stage
            then = now - delay * stages
            near, far, following = pairs[now % kept], pairs[then % kept], pairs[(now + 1) % kept]
            sums = all_sums[(now + 1) % summed]
            mean_s = mean_c = 0.0
            if kind == MEAN_FIELD:
                past = all_sums[then % summed]
                for part in range(past.shape[0]):
                    mean_s += past[part, 0]
                    mean_c += past[part, 1]
            others_s, others_c = splat(real(mean_s)), splat(real(mean_c))
            for part in range(blocks[0], blocks[1]):
                sum_s, sum_c = splat(real(0)), splat(real(0))
                for tile in range(part * block, min((part + 1) * block, tiles)):
                    if kind == SPARSE:
                        _sparse_sums(tile, n, rowptr, col, weight, far, buffer)
                    elif kind == DENSE:
                        _dense_sums(tile, n, matrix, far, buffer)
                    if kind != MEAN_FIELD:
                        others_s, others_c = load(buffer, 0), load(buffer, 1)
                    s, c = load_pairs(near, tile)
                    # sin(x_j - x_i - lag), summed over j, by the addition theorem.
                    turned_s = others_s * cosine - others_c * sine
                    turned_c = others_c * cosine + others_s * sine
                    torque = turned_s * c - turned_c * s
                    if scale.shape[0]:
                        torque = torque * load(scale, tile)
                    k = torque + load(frequency, tile)
                    if inertia > 0:
                        push, k = k, load(stage_velocity, tile)
                        push = (push - k) * per_mass
                        v = _accumulate(tile, first, last, step, b, reach, push, velocity, velocity_slopes)
                        if last:
                            if noise.shape[0]:
                                v = fma(kick, load(noise, (number, tile)), v)
                            store(velocity, tile, v)
                        store(stage_velocity, tile, v)
                    x = _accumulate(tile, first, last, step, b, reach, k, phase, slopes)
                    if last:
                        if noise.shape[0] and not inertia > 0:
                            x = fma(kick, load(noise, (number, tile)), x)
                        store(phase, tile, x)
                    s, c = sincos(x)
                    if tile == tiles - 1:
                        s, c = s * load(live, 0), c * load(live, 0)
                    store_pairs(following, tile, s, c)
                    sum_s, sum_c = sum_s + s, sum_c + c
                sums[part, 0] = total(sum_s)
                sums[part, 1] = total(sum_c)
            if threads > 1:
                meetings += 1
                _meet(counter, meetings * threads)


@kernel
def set_pairs(slot, block, shift, state):
    """Sine, cosine and their sums of phase + shift * frequency, as the stage `slot`."""
    phase, frequency, _, _, _, _, all_pairs, all_sums, live = state
    pairs, sums = all_pairs[slot % all_pairs.shape[0]], all_sums[slot % all_sums.shape[0]]
    tiles, real = phase.shape[0], phase.dtype.type
    amount = splat(real(shift))
    for part in range(sums.shape[0]):
        sum_s, sum_c = splat(real(0)), splat(real(0))
        for tile in range(part * block, min((part + 1) * block, tiles)):
            s, c = sincos(fma(amount, load(frequency, tile), load(phase, tile)))
            if tile == tiles - 1:
                s, c = s * load(live, 0), c * load(live, 0)
            store_pairs(pairs, tile, s, c)
            sum_s, sum_c = sum_s + s, sum_c + c
        sums[part, 0] = total(sum_s)
        sums[part, 1] = total(sum_c)


@kernel
def wrap(phase, turns):
    """Bring phases into [-pi, pi] and count the turns taken off: sines stay exact however long a run is."""
    for i in range(phase.size):
        whole = np.rint(phase[i] / (2 * np.pi))
        phase[i] -= whole * (2 * np.pi)
        turns[i] += whole
