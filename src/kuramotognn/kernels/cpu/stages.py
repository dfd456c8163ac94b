"""Runge–Kutta stages and their adjoints, one pass over the rows each.

Two fields are known, both of the form dx_i/dt = drive_i + strength * interaction_i:

    kuramoto   interaction_i = sum_j a_ij sin(x_j - x_i)
    linear     interaction_i = sum_j a_ij x_j - x_i

What a node shows its neighbours are its *features*: (sin x, cos x) for kuramoto (so the trigonometry is per node, not
per edge: sum_j a_ij sin(x_j - x_i) = c_i (A s)_i - s_i (A c)_i) and x itself for the linear field.

Every stage is one pass over the rows: gather the neighbours' features, form the slope, the next stage's
state and that state's features (double buffered). The exact discrete adjoint is one pass over the rows of the
transpose per stage, which yields the gradients of the state and of the coupling values together. Rows can be shared
among threads within a stage, tiles for good: no sum is ever shared.

Arrays belong to one tile of L columns:
    states [ring, N, L]    slot m = n*S + s holds the input of stage s of step n; a ring of S+1 is enough when nothing
                           has to be kept
    gains [slots, N, L]    s (A s) + c (A c) of every stage, all that the adjoint needs besides the states
    features [2, N, P, L]  double buffered; planes (sin, cos) or (x,)
    slopes, mus [S-1, N, L]; drive, lam, grad_drive [N, L]; dots [E] in transposed order
coef[s, j] is the weight of slope k_j in the state that follows stage s: rows s < S-1 hold h*A[s+1], the last
row h*b. The adjoint uses the same table read by columns.
"""

import numpy as np

from kuramotognn.kernels.cpu.jit import kernel
from kuramotognn.kernels.cpu.lanes import at, fma, increase, load, splat, store, total
from kuramotognn.kernels.cpu.trig import sincos


@kernel
def _show(linear, x, side, i, features):
    """What neighbours see of node i."""
    if linear:
        store(features, (side, i, 0), x)
    else:
        sin, cos = sincos(x)
        store(features, (side, i, 0), sin)
        store(features, (side, i, 1), cos)


@kernel
def _gather(first, last, col, val, side, features):
    """sum over entries e in [first, last) of val[e] * x[col[e]]."""
    acc = splat(features.dtype.type(0))
    for e in range(first, last):
        acc = fma(splat(at(val, e)), load(features, (side, at(col, e), 0)), acc)
    return acc


@kernel
def _gather_pair(first, last, col, val, side, features):
    """The same sum for both planes, sin and cos."""
    acc_sin = splat(features.dtype.type(0))
    acc_cos = acc_sin
    for e in range(first, last):
        j, v = at(col, e), splat(at(val, e))
        acc_sin = fma(v, load(features, (side, j, 0)), acc_sin)
        acc_cos = fma(v, load(features, (side, j, 1)), acc_cos)
    return acc_sin, acc_cos


@kernel
def _forward_rows(linear, m, more, lo, hi, rowptr, col, val, drive, strength, coef, states, gains, features, slopes):
    stages, ring = coef.shape[0], states.shape[0]
    stage, side = m % stages, m % 2
    base, following, gain_slot = (m - stage) % ring, (m + 1) % ring, m % gains.shape[0]
    keep_gain = gains.shape[1] > 0
    for i in range(lo, hi):
        first, last = np.int64(at(rowptr, i)), np.int64(at(rowptr, i + 1))
        if linear:
            interaction = _gather(first, last, col, val, side, features) - load(features, (side, i, 0))
        else:
            a_sin, a_cos = _gather_pair(first, last, col, val, side, features)
            sin, cos = load(features, (side, i, 0)), load(features, (side, i, 1))
            interaction = cos * a_sin - sin * a_cos
            if keep_gain:
                store(gains, (gain_slot, i), fma(sin, a_sin, cos * a_cos))
        slope = fma(splat(strength), interaction, load(drive, i))
        x = fma(splat(coef[stage, stage]), slope, load(states, (base, i)))
        for j in range(stage):
            x = fma(splat(coef[stage, j]), load(slopes, (j, i)), x)
        if stage < stages - 1:
            store(slopes, (stage, i), slope)
        store(states, (following, i), x)
        if more:
            _show(linear, x, 1 - side, i, features)


@kernel
def _slope_gradient(coef, stage, lam, j, mus):
    """kappa = dL/dk_stage = h b_stage lambda + h sum_{later r} A[r, stage] mu_r of row j."""
    stages = coef.shape[0]
    kappa = splat(coef[stages - 1, stage]) * lam
    for r in range(stage + 1, stages):
        kappa = fma(splat(coef[r - 1, stage]), load(mus, (r - 1, j)), kappa)
    return kappa


@kernel
def _show_adjoint(linear, x, kappa, side, j, query, sources):
    """Row j's share of the next adjoint pass: sources (c k, s k) and query (s, c); linear: k and x."""
    if linear:
        store(query, (j, 0), x)
        store(sources, (side, j, 0), kappa)
    else:
        sin, cos = sincos(x)
        store(query, (j, 0), sin)
        store(query, (j, 1), cos)
        store(sources, (side, j, 0), cos * kappa)
        store(sources, (side, j, 1), sin * kappa)


@kernel
def _pull_linear(first, last, col, val, side, sources, x, dots):
    """(A^T k)_j, and dots[e] += <k_i, x_j> for its entries."""
    acc = splat(sources.dtype.type(0))
    for e in range(first, last):
        kappa = load(sources, (side, at(col, e), 0))
        acc = fma(splat(at(val, e)), kappa, acc)
        increase(dots, e, total(kappa * x))
    return acc


@kernel
def _pull_kuramoto(first, last, col, val, side, sources, sin, cos, dots):
    """c (A^T (c k))_j + s (A^T (s k))_j, and dots[e] += <(c k)_i, s_j> - <(s k)_i, c_j> for its entries."""
    acc_cos = splat(sources.dtype.type(0))
    acc_sin = acc_cos
    for e in range(first, last):
        i, v = at(col, e), splat(at(val, e))
        cos_kappa, sin_kappa = load(sources, (side, i, 0)), load(sources, (side, i, 1))
        acc_cos = fma(v, cos_kappa, acc_cos)
        acc_sin = fma(v, sin_kappa, acc_sin)
        increase(dots, e, total(cos_kappa * sin - sin_kappa * cos))
    return fma(cos, acc_cos, sin * acc_sin)


@kernel
def _backward_rows(
    linear,
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
    stage, gain_slot = m % stages, m % gains.shape[0]
    for j in range(lo, hi):
        first, last = np.int64(at(t_rowptr, j)), np.int64(at(t_rowptr, j + 1))
        lam_j = load(lam, j)
        kappa = _slope_gradient(coef, stage, lam_j, j, mus)
        store(grad_drive, j, load(grad_drive, j) + kappa)
        if linear:
            x = load(query, (j, 0))
            pulled = _pull_linear(first, last, t_col, t_val, side, sources, x, dots) - kappa
            increase(row_strength, j, np.float64(total(pulled * x)))
        else:
            sin, cos = load(query, (j, 0)), load(query, (j, 1))
            pulled = _pull_kuramoto(first, last, t_col, t_val, side, sources, sin, cos, dots)
            pulled = pulled - load(gains, (gain_slot, j)) * kappa
        if stage > 0:
            store(mus, (stage - 1, j), splat(strength) * pulled)
        else:
            lam_j = fma(splat(strength), pulled, splat(carry) * lam_j)
            for r in range(stages - 1):
                lam_j = lam_j + load(mus, (r, j))
            store(lam, j, lam_j)
        if m > 0:
            kappa = _slope_gradient(coef, (m - 1) % stages, lam_j, j, mus)
            _show_adjoint(linear, load(states, (m - 1, j)), kappa, 1 - side, j, query, sources)


# What the drivers call: stages [first, last) of rows [lo, hi).


@kernel
def show(linear, lo, hi, states, features):
    """What neighbours see of the states in slot 0."""
    for i in range(lo, hi):
        _show(linear, load(states, (0, i)), 0, i, features)


@kernel
def forward(
    linear, first, last, passes, lo, hi, rowptr, col, val, drive, strength, coef, states, gains, features, slopes
):
    """Some of all `passes` stages, for some rows."""
    for m in range(first, last):
        _forward_rows(
            linear, m, m + 1 < passes, lo, hi, rowptr, col, val, drive, strength, coef, states, gains, features, slopes
        )


@kernel
def show_adjoint(linear, coef, slot, lo, hi, states, lam, mus, query, sources):
    """The features for the first adjoint pass, that of the last stage."""
    for j in range(lo, hi):
        kappa = _slope_gradient(coef, coef.shape[0] - 1, load(lam, j), j, mus)
        _show_adjoint(linear, load(states, (slot, j)), kappa, 0, j, query, sources)


@kernel
def backward(
    linear,
    first,
    last,
    passes,
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
    """The adjoint of some of all `passes` stages, counted from the last one, for some rows of the transpose."""
    for back in range(first, last):
        _backward_rows(
            linear,
            passes - 1 - back,
            back % 2,
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
        )
