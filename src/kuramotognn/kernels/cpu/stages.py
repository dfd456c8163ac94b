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

Arrays belong to one tile of the columns and are flat arrays of its rows (:func:`lanes.rows`), here with the shape that
is meant; P = 2 features for kuramoto, 1 for linear:
    x [N]                  the state at the beginning of the step
    states [slots, N]      the tape: slot m = n*S + s holds the input of stage s of step n
    gains [slots, N]       s (A s) + c (A c) of every stage, all that the adjoint needs besides the states; None for the
                           linear field, which makes two kernels of each
    features [2, N, P]     double buffered; (sin, cos) or x
    slopes, mus [S-1, N]   None for methods of one stage
    drive, lam, grad_drive [N]; dots [E] numbers in transposed order
keep says what becomes of the tape: it is not kept (NOT), kept (NEAR), or so large that it is written past the caches
(PAST). coef[s, j] is the weight of slope k_j in the state that follows stage s: rows s < S-1 hold h*A[s+1], the last
row h*b. The adjoint uses the same table read by columns.
"""

import numpy as np

from kuramotognn.kernels.cpu.jit import kernel, part
from kuramotognn.kernels.cpu.lanes import (
    ahead,
    at,
    fma,
    increase,
    pointer,
    prefetch,
    put,
    put_past,
    settle,
    splat,
    total,
)
from kuramotognn.kernels.cpu.trig import sincos

NOT, NEAR, PAST = 0, 1, 2
ROWS_AHEAD = 16  # Rows between asking for the tape and using it.
AHEAD = 8  # Entries between asking for a neighbour's row and using it: about what a read from the shared cache takes.


@part
def _keep(keep, items, index, value):
    """items[index] = value on the tape."""
    if keep == PAST:
        put_past(items, index, value)
    elif keep == NEAR:
        put(items, index, value)


@part
def _show(x, i, features, gains):
    """What neighbours see of node i."""
    if gains is None:
        put(features, i, x)
    else:
        sin, cos = sincos(x)
        put(features, 2 * i, sin)
        put(features, 2 * i + 1, cos)


@part
def _gather(first, last, end, col, val, features):
    """sum over entries e in [first, last) of val[e] * x[col[e]]; end is the last entry of all."""
    acc = splat(features, 0)
    for e in range(first, last):
        prefetch(features, at(col, min(e + AHEAD, end)), 1)
        acc = fma(splat(features, at(val, e)), at(features, at(col, e)), acc)
    return acc


@part
def _gather_pair(first, last, end, col, val, features):
    """The same sum for both planes, sin and cos."""
    acc_sin = splat(features, 0)
    acc_cos = acc_sin
    for e in range(first, last):
        prefetch(features, 2 * at(col, min(e + AHEAD, end)), 2)
        j, v = at(col, e), splat(features, at(val, e))
        acc_sin = fma(v, at(features, 2 * j), acc_sin)
        acc_cos = fma(v, at(features, 2 * j + 1), acc_cos)
    return acc_sin, acc_cos


@part
def _interaction(i, end, rowptr, col, val, features, gains, place, keep):
    """The interaction of node i; its gain goes to gains[place] if it is to be kept."""
    first, last = np.int64(at(rowptr, i)), np.int64(at(rowptr, i + 1))
    if gains is None:
        interaction = _gather(first, last, end, col, val, features) - at(features, i)
    else:
        a_sin, a_cos = _gather_pair(first, last, end, col, val, features)
        sin, cos = at(features, 2 * i), at(features, 2 * i + 1)
        if keep != NOT:
            _keep(keep, gains, place, fma(sin, a_sin, cos * a_cos))
        interaction = fma(cos, a_sin, -(sin * a_cos))
    return interaction


@part
def _forward_rows(
    m,
    more,
    lo,
    hi,
    n,
    keep,
    end,
    rowptr,
    col,
    val,
    drive,
    strength,
    stages,
    coef,
    x,
    states,
    gains,
    features,
    slopes,
):
    stage, side = m % stages, m % 2
    weights, own_weight = ahead(coef, stage * stages), splat(drive, at(coef, stage * stages + stage))
    planes = 1 if gains is None else 2
    seen, shown = ahead(features, side * planes * n), ahead(features, (1 - side) * planes * n)
    for i in range(lo, hi):
        interaction = _interaction(i, end, rowptr, col, val, seen, gains, m * n + i, keep)
        slope = fma(splat(drive, strength), interaction, at(drive, i))
        following = fma(own_weight, slope, at(x, i))
        if slopes is None:
            put(x, i, following)
        else:
            for j in range(stage):
                following = fma(splat(drive, at(weights, j)), at(slopes, j * n + i), following)
            if stage < stages - 1:
                put(slopes, stage * n + i, slope)
            else:
                put(x, i, following)
        if more:
            _keep(keep, states, (m + 1) * n + i, following)
            _show(following, i, shown, gains)


@part
def _slope_gradient(coef, stages, stage, lam, j, n, mus):
    """kappa = dL/dk_stage = h b_stage lambda + h sum_{later r} A[r, stage] mu_r of row j."""
    kappa = splat(lam, at(coef, (stages - 1) * stages + stage)) * lam
    if mus is not None:
        for r in range(stage + 1, stages):
            kappa = fma(splat(lam, at(coef, (r - 1) * stages + stage)), at(mus, (r - 1) * n + j), kappa)
    return kappa


@part
def _show_adjoint(x, kappa, j, query, sources, gains):
    """Row j's share of the next adjoint pass: sources (c k, s k) and query (s, c); linear: k and x."""
    if gains is None:
        put(query, j, x)
        put(sources, j, kappa)
    else:
        sin, cos = sincos(x)
        put(query, 2 * j, sin)
        put(query, 2 * j + 1, cos)
        put(sources, 2 * j, cos * kappa)
        put(sources, 2 * j + 1, sin * kappa)


@part
def _pull_linear(first, last, end, col, val, sources, x, dots):
    """(A^T k)_j, and dots[e] += <k_i, x_j> for its entries."""
    acc = splat(sources, 0)
    for e in range(first, last):
        prefetch(sources, at(col, min(e + AHEAD, end)), 1)
        kappa = at(sources, at(col, e))
        acc = fma(splat(sources, at(val, e)), kappa, acc)
        increase(dots, e, total(kappa * x))
    return acc


@part
def _pull_kuramoto(first, last, end, col, val, sources, sin, cos, dots):
    """c (A^T (c k))_j + s (A^T (s k))_j, and dots[e] += <(c k)_i, s_j> - <(s k)_i, c_j> for its entries."""
    acc_cos = splat(sources, 0)
    acc_sin = acc_cos
    for e in range(first, last):
        prefetch(sources, 2 * at(col, min(e + AHEAD, end)), 2)
        i, v = at(col, e), splat(sources, at(val, e))
        cos_kappa, sin_kappa = at(sources, 2 * i), at(sources, 2 * i + 1)
        acc_cos = fma(v, cos_kappa, acc_cos)
        acc_sin = fma(v, sin_kappa, acc_sin)
        increase(dots, e, total(fma(cos_kappa, sin, -(sin_kappa * cos))))
    return fma(cos, acc_cos, sin * acc_sin)


@part
def _pull(j, kappa, end, t_rowptr, t_col, t_val, query, sources, gains, place, dots, row_strength):
    """The gradient by x_j of <kappa, interaction>; adds to dots and, where linear, to row_strength."""
    first, last = np.int64(at(t_rowptr, j)), np.int64(at(t_rowptr, j + 1))
    if gains is None:
        x = at(query, j)
        pulled = _pull_linear(first, last, end, t_col, t_val, sources, x, dots) - kappa
        increase(row_strength, j, np.float64(total(pulled * x)))
    else:
        sin, cos = at(query, 2 * j), at(query, 2 * j + 1)
        pulled = _pull_kuramoto(first, last, end, t_col, t_val, sources, sin, cos, dots)
        pulled = fma(-at(gains, place), kappa, pulled)
    return pulled


@part
def _expect(states, gains, j, slot):
    """Ask for what the tape holds of row j: it comes from memory."""
    prefetch(states, j, 1)
    if gains is not None:
        prefetch(gains, slot + j, 1)


@part
def _backward_rows(
    m,
    side,
    lo,
    hi,
    n,
    end,
    t_rowptr,
    t_col,
    t_val,
    strength,
    stages,
    coef,
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
    stage, before, strengths = m % stages, ahead(states, (m - 1) * n), splat(lam, strength)
    planes, earlier = 1 if gains is None else 2, stage - 1 if stage > 0 else stages - 1
    seen, shown = ahead(sources, side * planes * n), ahead(sources, (1 - side) * planes * n)
    for j in range(lo, hi):
        _expect(before, gains, j + ROWS_AHEAD, m * n)
        lam_j = at(lam, j)
        kappa = _slope_gradient(coef, stages, stage, lam_j, j, n, mus)
        put(grad_drive, j, at(grad_drive, j) + kappa)
        pulled = _pull(j, kappa, end, t_rowptr, t_col, t_val, query, seen, gains, m * n + j, dots, row_strength)
        if mus is None:
            lam_j = fma(strengths, pulled, lam_j)
            put(lam, j, lam_j)
        elif stage > 0:
            put(mus, (stage - 1) * n + j, strengths * pulled)
        else:
            lam_j = fma(strengths, pulled, lam_j)
            for r in range(stages - 1):
                lam_j = lam_j + at(mus, r * n + j)
            put(lam, j, lam_j)
        if m > 0:
            kappa = _slope_gradient(coef, stages, earlier, lam_j, j, n, mus)
            _show_adjoint(at(before, j), kappa, j, query, shown, gains)


# What the drivers call for an integration: stages [first, last) of rows [lo, hi).


@kernel
def show(lo, hi, keep, x, states, features, gains):
    """What neighbours see of the state, which is the first on the tape."""
    state, tape, seen, kept = pointer(x), pointer(states), pointer(features), pointer(gains)
    for i in range(lo, hi):
        _keep(keep, tape, i, at(state, i))
        _show(at(state, i), i, seen, kept)


@kernel
def forward(
    first, last, passes, lo, hi, keep, rowptr, col, val, drive, strength, coef, x, states, gains, features, slopes
):
    """Some of all `passes` stages, for some rows."""
    n, end, stages, kept = drive.size, col.size - 1, coef.shape[0], pointer(gains)
    for m in range(first, last):
        _forward_rows(
            m,
            m + 1 < passes,
            lo,
            hi,
            n,
            keep,
            end,
            pointer(rowptr),
            pointer(col),
            pointer(val),
            pointer(drive),
            strength,
            stages,
            pointer(coef),
            pointer(x),
            pointer(states),
            kept,
            pointer(features),
            pointer(slopes),
        )
    settle()


@kernel
def show_adjoint(lo, hi, coef, slot, states, gains, lam, mus, query, sources):
    """The features for the first adjoint pass, that of the last stage."""
    n, stages, kept = lam.size, coef.shape[0], pointer(gains)
    x, lams = ahead(pointer(states), slot * n), pointer(lam)
    for j in range(lo, hi):
        kappa = _slope_gradient(pointer(coef), stages, stages - 1, at(lams, j), j, n, pointer(mus))
        _show_adjoint(at(x, j), kappa, j, pointer(query), pointer(sources), kept)


@kernel
def backward(
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
    n, end, stages, kept = lam.size, t_col.size - 1, coef.shape[0], pointer(gains)
    for back in range(first, last):
        _backward_rows(
            passes - 1 - back,
            back % 2,
            lo,
            hi,
            n,
            end,
            pointer(t_rowptr),
            pointer(t_col),
            pointer(t_val),
            strength,
            stages,
            pointer(coef),
            pointer(states),
            kept,
            pointer(lam),
            pointer(mus),
            pointer(query),
            pointer(sources),
            pointer(grad_drive),
            pointer(dots),
            pointer(row_strength),
        )


# One field and its gradient, for rows [lo, hi) of a tile.


@kernel
def field_rows(lo, hi, keep, rowptr, col, val, drive, strength, features, gains, out):
    """out = drive + strength * interaction."""
    end, seen, kept, constant, value = col.size - 1, pointer(features), pointer(gains), pointer(drive), pointer(out)
    for i in range(lo, hi):
        interaction = _interaction(i, end, pointer(rowptr), pointer(col), pointer(val), seen, kept, i, keep)
        put(value, i, fma(splat(seen, strength), interaction, at(constant, i)))


@kernel
def field_show_adjoint(lo, hi, x, grad, query, sources, gains):
    """What neighbours see of state and upstream gradient."""
    state, kappa, kept = pointer(x), pointer(grad), pointer(gains)
    for j in range(lo, hi):
        _show_adjoint(at(state, j), at(kappa, j), j, pointer(query), pointer(sources), kept)


@kernel
def field_adjoint(lo, hi, t_rowptr, t_col, t_val, strength, grad, query, sources, gains, dots, row_strength, grad_x):
    """grad_x = the field's vjp of grad; adds to dots and row_strength."""
    end, own, seen, kept = t_col.size - 1, pointer(query), pointer(sources), pointer(gains)
    rowptr, col, val = pointer(t_rowptr), pointer(t_col), pointer(t_val)
    edges, strengths = pointer(dots), pointer(row_strength)
    for j in range(lo, hi):
        kappa = at(pointer(grad), j)
        pulled = _pull(j, kappa, end, rowptr, col, val, own, seen, kept, j, edges, strengths)
        put(pointer(grad_x), j, splat(own, strength) * pulled)
