"""Runge–Kutta stages and their adjoints, one pass over the rows each.

Two fields are known, both of the form dx_i/dt = drive_i + strength * interaction_i:

    kuramoto   interaction_i = sum_j a_ij sin(x_j - x_i)
    linear     interaction_i = sum_j a_ij x_j - x_i

What a node shows its neighbours are its *features*: (sin x, cos x) for kuramoto (so the trigonometry is per node, not
per edge: sum_j a_ij sin(x_j - x_i) = c_i (A s)_i - s_i (A c)_i) and x itself for the linear field.

Every stage is one parallel pass over the rows: gather the neighbours' features, form the slope, the next stage's
state and that state's features (double buffered). The exact discrete adjoint is one pass over the rows of the
transpose per stage, which yields the gradients of the state and of the coupling values together. Threads share rows,
never a sum: the bits do not depend on how many there are.

Arrays hold a group of G tiles and are passed whole, with g the tile at hand (a view would cost an atomic reference
count, which the threads then fight over):
    states [G, ring, N, L]    slot m = n*S + s holds the input of stage s of step n; a ring of S+1 is enough when
                              nothing has to be kept
    gains [G, slots, N, L]    s (A s) + c (A c) of every stage, all that the adjoint needs besides the states
    features [G, 2, N, P, L]  double buffered; planes (sin, cos) or (x,)
    slopes, mus [G, S-1, N, L]; drive, lam, grad_drive [G, N, L]; dots [G, E] in transposed order
coef[s, j] is the weight of slope k_j in the state that follows stage s: rows s < S-1 hold h*A[s+1], the last
row h*b. The adjoint uses the same table read by columns.
"""

import numpy as np

from kuramotognn.kernels.cpu.jit import parallel_sweep, prange, sweep
from kuramotognn.kernels.cpu.lanes import at, fma, increase, load, splat, store, total
from kuramotognn.kernels.cpu.trig import sincos


@sweep
def _show(linear, x, g, side, i, features):
    """What neighbours see of node i."""
    if linear:
        store(features, (g, side, i, 0), x)
    else:
        sin, cos = sincos(x)
        store(features, (g, side, i, 0), sin)
        store(features, (g, side, i, 1), cos)


@sweep
def _gather(first, last, col, val, g, side, features):
    """sum over entries e in [first, last) of val[e] * x[col[e]]."""
    acc = splat(features.dtype.type(0))
    for e in range(first, last):
        acc = fma(splat(at(val, e)), load(features, (g, side, at(col, e), 0)), acc)
    return acc


@sweep
def _gather_pair(first, last, col, val, g, side, features):
    """The same sum for both planes, sin and cos."""
    acc_sin = splat(features.dtype.type(0))
    acc_cos = acc_sin
    for e in range(first, last):
        j, v = at(col, e), splat(at(val, e))
        acc_sin = fma(v, load(features, (g, side, j, 0)), acc_sin)
        acc_cos = fma(v, load(features, (g, side, j, 1)), acc_cos)
    return acc_sin, acc_cos


@sweep
def _forward_rows(linear, g, m, more, lo, hi, rowptr, col, val, drive, strength, coef, states, gains, features, slopes):
    stages, ring = coef.shape[0], states.shape[1]
    stage, side = m % stages, m % 2
    base, following, gain_slot = (m - stage) % ring, (m + 1) % ring, m % gains.shape[1]
    keep_gain = gains.shape[2] > 0
    for i in range(lo, hi):
        first, last = np.int64(at(rowptr, i)), np.int64(at(rowptr, i + 1))
        if linear:
            interaction = _gather(first, last, col, val, g, side, features) - load(features, (g, side, i, 0))
        else:
            a_sin, a_cos = _gather_pair(first, last, col, val, g, side, features)
            sin, cos = load(features, (g, side, i, 0)), load(features, (g, side, i, 1))
            interaction = cos * a_sin - sin * a_cos
            if keep_gain:
                store(gains, (g, gain_slot, i), fma(sin, a_sin, cos * a_cos))
        slope = fma(splat(strength), interaction, load(drive, (g, i)))
        x = fma(splat(coef[stage, stage]), slope, load(states, (g, base, i)))
        for j in range(stage):
            x = fma(splat(coef[stage, j]), load(slopes, (g, j, i)), x)
        if stage < stages - 1:
            store(slopes, (g, stage, i), slope)
        store(states, (g, following, i), x)
        if more:
            _show(linear, x, g, 1 - side, i, features)


@sweep
def _slope_gradient(coef, stage, lam, g, j, mus):
    """kappa = dL/dk_stage = h b_stage lambda + h sum_{later r} A[r, stage] mu_r of row j."""
    stages = coef.shape[0]
    kappa = splat(coef[stages - 1, stage]) * lam
    for r in range(stage + 1, stages):
        kappa = fma(splat(coef[r - 1, stage]), load(mus, (g, r - 1, j)), kappa)
    return kappa


@sweep
def _show_adjoint(linear, x, kappa, g, side, j, query, sources):
    """Row j's share of the next adjoint pass: sources (c k, s k) and query (s, c); linear: k and x."""
    if linear:
        store(query, (g, j, 0), x)
        store(sources, (g, side, j, 0), kappa)
    else:
        sin, cos = sincos(x)
        store(query, (g, j, 0), sin)
        store(query, (g, j, 1), cos)
        store(sources, (g, side, j, 0), cos * kappa)
        store(sources, (g, side, j, 1), sin * kappa)


@sweep
def _pull_linear(first, last, col, val, g, side, sources, x, dots):
    """(A^T k)_j, and dots[e] += <k_i, x_j> for its entries."""
    acc = splat(sources.dtype.type(0))
    for e in range(first, last):
        kappa = load(sources, (g, side, at(col, e), 0))
        acc = fma(splat(at(val, e)), kappa, acc)
        increase(dots, g, e, total(kappa * x))
    return acc


@sweep
def _pull_kuramoto(first, last, col, val, g, side, sources, sin, cos, dots):
    """c (A^T (c k))_j + s (A^T (s k))_j, and dots[e] += <(c k)_i, s_j> - <(s k)_i, c_j> for its entries."""
    acc_cos = splat(sources.dtype.type(0))
    acc_sin = acc_cos
    for e in range(first, last):
        i, v = at(col, e), splat(at(val, e))
        cos_kappa, sin_kappa = load(sources, (g, side, i, 0)), load(sources, (g, side, i, 1))
        acc_cos = fma(v, cos_kappa, acc_cos)
        acc_sin = fma(v, sin_kappa, acc_sin)
        increase(dots, g, e, total(cos_kappa * sin - sin_kappa * cos))
    return fma(cos, acc_cos, sin * acc_sin)


@sweep
def _backward_rows(
    linear,
    g,
    m,
    side,
    lo,
    hi,
    t_rowptr,
    t_col,
    t_val,
    strength,
    coef,
    carry,
    states,
    gains,
    lam,
    mus,
    query,
    sources,
    grad_drive,
    dots,
    row_strength,
):
    stages = coef.shape[0]
    stage, gain_slot = m % stages, m % gains.shape[1]
    for j in range(lo, hi):
        first, last = np.int64(at(t_rowptr, j)), np.int64(at(t_rowptr, j + 1))
        lam_j = load(lam, (g, j))
        kappa = _slope_gradient(coef, stage, lam_j, g, j, mus)
        store(grad_drive, (g, j), load(grad_drive, (g, j)) + kappa)
        if linear:
            x = load(query, (g, j, 0))
            pulled = _pull_linear(first, last, t_col, t_val, g, side, sources, x, dots) - kappa
            increase(row_strength, g, j, np.float64(total(pulled * x)))
        else:
            sin, cos = load(query, (g, j, 0)), load(query, (g, j, 1))
            pulled = _pull_kuramoto(first, last, t_col, t_val, g, side, sources, sin, cos, dots)
            pulled = pulled - load(gains, (g, gain_slot, j)) * kappa
        if stage > 0:
            store(mus, (g, stage - 1, j), splat(strength) * pulled)
        else:
            lam_j = fma(splat(strength), pulled, splat(carry) * lam_j)
            for r in range(stages - 1):
                lam_j = lam_j + load(mus, (g, r, j))
            store(lam, (g, j), lam_j)
        if m > 0:
            kappa = _slope_gradient(coef, (m - 1) % stages, lam_j, g, j, mus)
            _show_adjoint(linear, load(states, (g, m - 1, j)), kappa, g, 1 - side, j, query, sources)


# The kernels: one parallel region per stage; a task is a chunk of rows of one tile.


@parallel_sweep
def show_kernel(linear, states, features):
    """What neighbours see of the states in slot 0."""
    n = states.shape[2]
    for task in prange(states.shape[0] * n):
        g, i = task // n, task % n
        _show(linear, load(states, (g, 0, i)), g, 0, i, features)


@parallel_sweep
def forward_kernel(linear, chunks, rowptr, col, val, drive, strength, coef, steps, states, gains, features, slopes):
    """All stages of `steps` steps."""
    n_chunks, passes = chunks.size - 1, steps * coef.shape[0]
    for m in range(passes):
        for task in prange(states.shape[0] * n_chunks):
            g, c = task // n_chunks, task % n_chunks
            _forward_rows(
                linear,
                g,
                m,
                m + 1 < passes,
                chunks[c],
                chunks[c + 1],
                rowptr,
                col,
                val,
                drive,
                strength,
                coef,
                states,
                gains,
                features,
                slopes,
            )


@parallel_sweep
def show_adjoint_kernel(linear, coef, slot, states, lam, mus, query, sources):
    """The features for the first adjoint pass, that of the last stage."""
    n = states.shape[2]
    for task in prange(states.shape[0] * n):
        g, j = task // n, task % n
        kappa = _slope_gradient(coef, coef.shape[0] - 1, load(lam, (g, j)), g, j, mus)
        _show_adjoint(linear, load(states, (g, slot, j)), kappa, g, 0, j, query, sources)


@parallel_sweep
def backward_kernel(
    linear,
    chunks,
    t_rowptr,
    t_col,
    t_val,
    strength,
    coef,
    steps,
    carry,
    states,
    gains,
    lam,
    mus,
    query,
    sources,
    grad_drive,
    dots,
    row_strength,
):
    """The adjoint of all stages of `steps` steps, last stage first."""
    """All stages of `steps` steps."""
    n_chunks, last = chunks.size - 1, steps * coef.shape[0] - 1
    for back in range(last + 1):
        for task in prange(states.shape[0] * n_chunks):
            g, c = task // n_chunks, task % n_chunks
            _backward_rows(
                linear,
                g,
                last - back,
                back % 2,
                chunks[c],
                chunks[c + 1],
                t_rowptr,
                t_col,
                t_val,
                strength,
                coef,
                carry,
                states,
                gains,
                lam,
                mus,
                query,
                sources,
                grad_drive,
                dots,
                row_strength,
            )
