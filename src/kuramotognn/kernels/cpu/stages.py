"""Runge–Kutta stages and their adjoints, one pass over the rows each.

Two fields are known, both of the form dx_i/dt = drive_i + strength * interaction_i:

    kuramoto   interaction_i = sum_j a_ij sin(x_j - x_i)
    linear     interaction_i = sum_j a_ij x_j - x_i

What a node shows its neighbours are its *features*: (sin x, cos x) for kuramoto (so the trigonometry is per node, not
per edge: sum_j a_ij sin(x_j - x_i) = c_i (A s)_i - s_i (A c)_i) and x itself for the linear field.

Units save multiplications: time counts in steps, and the states of kuramoto are in half turns, x / pi, so that whole
ones come off exactly. Drive and strength of an integration arrive in these units. The gradients are by x itself and by
a drive per step. The couplings of kuramoto arrive multiplied by the strength, in the units of the states on the way
forward and of x on the way back; `factor` is the second by the first. Of the linear field, where a difference is to be
multiplied, both ways have the couplings themselves, and `factor` is the strength.

Every stage is one pass over the rows: gather the neighbours' features, form the slope, the next stage's
state and that state's features (double buffered). The exact discrete adjoint is one pass over the rows of the
transpose per stage, which yields the gradients of the state and of the coupling values together. Rows can be shared
among threads within a stage, tiles for good: no sum is ever shared.

Arrays belong to one tile of the columns; they are pointers to its rows, here with the shape that is meant; P = 2
features for kuramoto, 1 for linear:
    x [N]                  the state at the beginning of the step
    states [slots, N]      the tape: slot m = n*S + s holds the input of stage s of step n
    gains [slots, N]       s (A s) + c (A c) of every stage, all that the adjoint needs besides the states; None for the
                           linear field, which makes two kernels of each
    features [2, N, P]     double buffered; (sin, cos) or x
    slopes, mus [S-1, N]   None for methods of one stage
    drive, lam, grad_drive [N]; dots [E] numbers in transposed order
keep says whether there is a tape; it is written past the caches. coef[s, j] is the weight of slope k_j in the state
that follows stage s: rows s < S-1 hold A[s+1], the last row b. The adjoint uses the same table read by columns. With
one stage (euler) the only weight is 1 and not looked at.
"""

import numpy as np

from kuramotognn.kernels.cpu.elementary import sincos_pi
from kuramotognn.kernels.cpu.jit import inner, part
from kuramotognn.kernels.cpu.lanes import fma, folded, folded_fma, opaque, splat, total
from kuramotognn.kernels.cpu.layout import AHEAD
from kuramotognn.kernels.cpu.memory import (
    ahead,
    at,
    increase,
    increase_two,
    prefetch,
    prefetch_once,
    put,
    put_past,
    settle,
)

ROWS_AHEAD = 16  # Rows between asking for the tape and using it.


@part
def _show(x, i, features, gains):
    """What neighbours see of node i."""
    if gains is None:
        put(features, i, x)
    else:
        sin, cos = sincos_pi(x)
        put(features, 2 * i, sin)
        put(features, 2 * i + 1, cos)


@part
def _gather(first, last, col, val, features):
    """sum over entries e in [first, last) of val[e] * x[col[e]]."""
    acc = splat(features, 0)
    for e in range(first, last):
        prefetch(features, at(col, e + AHEAD), 1)
        acc = fma(splat(features, at(val, e)), at(features, at(col, e)), acc)
    return acc


@part
def _gather_pair(first, last, col, val, features):
    """The same sum for both planes, sin and cos."""
    acc_sin, acc_cos, e = splat(features, 0), splat(features, 0), first
    while e < last:
        prefetch(features, 2 * at(col, e + AHEAD), 2)
        j, v = at(col, e), splat(features, at(val, e))
        acc_sin = fma(v, at(features, 2 * j), acc_sin)
        acc_cos = fma(v, at(features, 2 * j + 1), acc_cos)
        e = opaque(e + 1)
    return acc_sin, acc_cos


@part
def _begin(rowptr, i):
    """Where the entries of row i begin, which is where those of the row before end."""
    return np.int64(at(rowptr, i))


@part
def _slope(i, first, last, col, val, drive, strength, features, gains, place, keep):
    """drive + strength * interaction of node i; its gain goes to gains[place] if it is to be kept."""
    if gains is None:
        interaction = _gather(first, last, col, val, features) - at(features, i)
        slope = fma(splat(drive, strength), interaction, at(drive, i))
    else:
        a_sin, a_cos = _gather_pair(first, last, col, val, features)
        sin, cos = at(features, 2 * i), at(features, 2 * i + 1)
        if keep:
            put_past(gains, place, fma(sin, a_sin, cos * a_cos))
        slope = fma(cos, a_sin, fma(-sin, a_cos, at(drive, i)))
    return slope


@part
def _slope_gradient(coef, stages, stage, lam, j, n, mus):
    """kappa = dL/dk_stage = b_stage lambda + sum_{later r} A[r, stage] mu_r of row j."""
    if mus is None:
        kappa = lam
    else:
        kappa = splat(lam, at(coef, (stages - 1) * stages + stage)) * lam
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
        sin, cos = sincos_pi(x)
        put(query, 2 * j, sin)
        put(query, 2 * j + 1, cos)
        put(sources, 2 * j, cos * kappa)
        put(sources, 2 * j + 1, sin * kappa)


@part
def _pull_linear_entry(e, col, val, sources, x, acc):
    """The sum (A^T k)_j with one more entry, and k_i x_j of that entry."""
    prefetch(sources, at(col, e + AHEAD), 1)
    kappa = at(sources, at(col, e))
    return fma(splat(sources, at(val, e)), kappa, acc), folded(kappa, x)


@part
def _pull_linear(first, last, col, val, sources, x, dots):
    """(A^T k)_j, and dots[e] += <k_i, x_j> for its entries."""
    acc, e = splat(sources, 0), first
    while e + 1 < last:
        acc, product0 = _pull_linear_entry(e, col, val, sources, x, acc)
        acc, product1 = _pull_linear_entry(e + 1, col, val, sources, x, acc)
        increase_two(dots, e, product0, product1)
        e = opaque(e + 2)
    if e < last:
        acc, product0 = _pull_linear_entry(e, col, val, sources, x, acc)
        increase(dots, e, total(product0))
    return acc


@part
def _pull_kuramoto_entry(e, col, val, sources, sin, cos, acc_cos, acc_sin):
    """The sums A^T (c k) and A^T (s k) with one more entry, and (c k)_i s_j - (s k)_i c_j of that entry."""
    prefetch(sources, 2 * at(col, e + AHEAD), 2)
    i, v = at(col, e), splat(sources, at(val, e))
    cos_kappa, sin_kappa = at(sources, 2 * i), at(sources, 2 * i + 1)
    product = folded_fma(-sin_kappa, cos, folded(cos_kappa, sin))
    return fma(v, cos_kappa, acc_cos), fma(v, sin_kappa, acc_sin), product


@part
def _pull_kuramoto(first, last, col, val, sources, sin, cos, dots):
    """A^T (c k) and A^T (s k) of row j, and dots[e] += <(c k)_i, s_j> - <(s k)_i, c_j> for its entries."""
    acc_c, acc_s, e = splat(sources, 0), splat(sources, 0), first
    while e + 1 < last:
        acc_c, acc_s, product0 = _pull_kuramoto_entry(e, col, val, sources, sin, cos, acc_c, acc_s)
        acc_c, acc_s, product1 = _pull_kuramoto_entry(e + 1, col, val, sources, sin, cos, acc_c, acc_s)
        increase_two(dots, e, product0, product1)
        e = opaque(e + 2)
    if e < last:
        acc_c, acc_s, product0 = _pull_kuramoto_entry(e, col, val, sources, sin, cos, acc_c, acc_s)
        increase(dots, e, total(product0))
    return acc_c, acc_s


@part
def _pull(j, first, last, t_col, t_val, query, sources, gains, dots):
    """(s_j, c_j, A^T (c k), A^T (s k)) of row j, or (x_j, x_j, A^T k, A^T k) where linear; adds to dots."""
    if gains is None:
        sin = cos = at(query, j)
        by_cos = by_sin = _pull_linear(first, last, t_col, t_val, sources, sin, dots)
    else:
        sin, cos = at(query, 2 * j), at(query, 2 * j + 1)
        by_cos, by_sin = _pull_kuramoto(first, last, t_col, t_val, sources, sin, cos, dots)
    return sin, cos, by_cos, by_sin


@part
def _add_pulled(start, pulled, kappa, factor, j, gains, place, row_strength):
    """start + the gradient by x_j of <kappa, strength * interaction>; where linear, adds to row_strength."""
    sin, cos, by_cos, by_sin = pulled
    if gains is None:
        change = by_cos - kappa
        increase(row_strength, j, np.float64(total(change * sin)))
        added = fma(splat(start, factor), change, start)
    else:
        own = fma(-at(gains, place), splat(start, factor) * kappa, start)
        added = fma(cos, by_cos, fma(sin, by_sin, own))
    return added


@part
def _expect(states, gains, j, slot):
    """Ask for what the tape holds of row j: it comes from memory, and is not looked at again."""
    prefetch_once(states, j, 1)
    if gains is not None:
        prefetch_once(gains, slot + j, 1)


# What the drivers call for an integration: rows [lo, hi), and of forward and backward stages [first, last).


@inner
def show(lo, hi, keep, x, states, features, gains):
    """What neighbours see of the state, which is the first on the tape."""
    for i in range(lo, hi):
        if keep:
            put_past(states, i, at(x, i))
        _show(at(x, i), i, features, gains)


@inner
def forward(
    lo,
    hi,
    first,
    last,
    passes,
    n,
    keep,
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
    """Some of all `passes` stages, for some rows."""
    for m in range(first, last):
        stage, side, more = m % stages, m % 2, m + 1 < passes
        weights, own_weight = ahead(coef, stage * stages), splat(drive, at(coef, stage * stages + stage))
        planes = 1 if gains is None else 2
        seen, shown = ahead(features, side * planes * n), ahead(features, (1 - side) * planes * n)
        end = _begin(rowptr, lo)
        for i in range(lo, hi):
            begin, end = end, _begin(rowptr, i + 1)
            slope = _slope(i, begin, end, col, val, drive, strength, seen, gains, m * n + i, keep)
            if slopes is None:
                following = at(x, i) + slope  # Not (x + drive) + ...: what is large is to be rounded once.
                put(x, i, following)
            else:
                following = fma(own_weight, slope, at(x, i))
                for j in range(stage):
                    following = fma(splat(drive, at(weights, j)), at(slopes, j * n + i), following)
                if stage < stages - 1:
                    put(slopes, stage * n + i, slope)
                else:
                    put(x, i, following)
            if more:
                if keep:
                    put_past(states, (m + 1) * n + i, following)
                _show(following, i, shown, gains)
    settle()


@inner
def show_adjoint(lo, hi, n, stages, coef, x, gains, lam, mus, query, sources):
    """The features for the first adjoint pass, that of the last stage, which began at x."""
    for j in range(lo, hi):
        kappa = _slope_gradient(coef, stages, stages - 1, at(lam, j), j, n, mus)
        _show_adjoint(at(x, j), kappa, j, query, sources, gains)


@inner
def backward(
    lo,
    hi,
    first,
    last,
    passes,
    n,
    t_rowptr,
    t_col,
    t_val,
    factor,
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
    """The adjoint of some of all `passes` stages, counted from the last one, for some rows of the transpose."""
    for back in range(first, last):
        m, side = passes - 1 - back, back % 2
        stage, before = m % stages, ahead(states, (m - 1) * n)
        planes, earlier = 1 if gains is None else 2, stage - 1 if stage > 0 else stages - 1
        seen, shown = ahead(sources, side * planes * n), ahead(sources, (1 - side) * planes * n)
        end = _begin(t_rowptr, lo)
        for j in range(lo, hi):
            _expect(before, gains, j + ROWS_AHEAD, m * n)
            begin, end = end, _begin(t_rowptr, j + 1)
            pulled = _pull(j, begin, end, t_col, t_val, query, seen, gains, dots)
            lam_j = at(lam, j)  # Not before: all registers are taken while neighbours are pulled.
            kappa = _slope_gradient(coef, stages, stage, lam_j, j, n, mus)
            put(grad_drive, j, at(grad_drive, j) + kappa)
            if mus is None:
                lam_j = _add_pulled(lam_j, pulled, kappa, factor, j, gains, m * n + j, row_strength)
                put(lam, j, lam_j)
            elif stage > 0:
                mu = _add_pulled(splat(lam, 0), pulled, kappa, factor, j, gains, m * n + j, row_strength)
                put(mus, (stage - 1) * n + j, mu)
            else:
                lam_j = _add_pulled(lam_j, pulled, kappa, factor, j, gains, m * n + j, row_strength)
                for r in range(stages - 1):
                    lam_j = lam_j + at(mus, r * n + j)
                put(lam, j, lam_j)
            if m > 0:
                kappa = _slope_gradient(coef, stages, earlier, lam_j, j, n, mus)
                _show_adjoint(at(before, j), kappa, j, query, shown, gains)


# One field and its gradient, for rows [lo, hi) of a tile.


@inner
def field_rows(lo, hi, keep, rowptr, col, val, drive, strength, features, gains, out):
    """out = drive + strength * interaction."""
    end = _begin(rowptr, lo)
    for i in range(lo, hi):
        begin, end = end, _begin(rowptr, i + 1)
        put(out, i, _slope(i, begin, end, col, val, drive, strength, features, gains, i, keep))
    settle()


@inner
def field_show_adjoint(lo, hi, x, grad, query, sources, gains):
    """What neighbours see of state and upstream gradient."""
    for j in range(lo, hi):
        _show_adjoint(at(x, j), at(grad, j), j, query, sources, gains)


@inner
def field_adjoint(lo, hi, t_rowptr, t_col, t_val, factor, grad, query, sources, gains, dots, row_strength, grad_x):
    """grad_x = the field's vjp of grad; adds to dots and row_strength."""
    end = _begin(t_rowptr, lo)
    for j in range(lo, hi):
        begin, end = end, _begin(t_rowptr, j + 1)
        pulled = _pull(j, begin, end, t_col, t_val, query, sources, gains, dots)
        value = _add_pulled(splat(query, 0), pulled, at(grad, j), factor, j, gains, j, row_strength)
        put(grad_x, j, value)
