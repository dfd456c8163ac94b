"""One right-hand side and its gradient, on numpy arrays."""

import numpy as np

from kuramotognn.kernels.cpu.edges import add_up, own_sums, strength_gradient, take
from kuramotognn.kernels.cpu.flow import Kind, Tiling, in_lanes, planes
from kuramotognn.kernels.cpu.jit import kernel, part
from kuramotognn.kernels.cpu.layout import Array, Layout
from kuramotognn.kernels.cpu.memory import ahead, ahead_if, pointer, rows_from
from kuramotognn.kernels.cpu.packing import pack, padded, trimmed, unpack
from kuramotognn.kernels.cpu.plan import plan_flow
from kuramotognn.kernels.cpu.stages import field_adjoint, field_rows, field_show_adjoint, show
from kuramotognn.kernels.cpu.team import of_rows, share
from kuramotognn.kernels.cpu.units import Units
from kuramotognn.kernels.cpu.workspace import workspace

_show_share, _field_share = of_rows(show), of_rows(field_rows)
_show_adjoint_share, _adjoint_share = of_rows(field_show_adjoint), of_rows(field_adjoint)


@in_lanes
@part
def _evaluate_tile(
    number, start, width, room, crew, bounds, n, kind, keep, rowptr, col, a, drive, strength, x, gain, out
):
    state, value = rows_from(pointer(x), n * start, width), rows_from(pointer(out), n * start, width)
    constant, features = rows_from(pointer(drive), n * start, width), rows_from(room, 0, width)
    # None where the field is linear, nowhere where the gain is not kept.
    gains = ahead_if(kind.phases, rows_from(pointer(gain), n * start if keep else 0, width), 0)
    shown = (False, state, state, features, gains)
    operands = (keep, pointer(rowptr), pointer(col), pointer(a), constant, strength, features, gains, value)
    if crew is None:
        show(np.int64(0), n, *shown)
        field_rows(np.int64(0), n, *operands)
    else:
        share(crew, bounds.size - 1, _show_share, (bounds, *shown))
        share(crew, bounds.size - 1, _field_share, (bounds, *operands))


@kernel
def _evaluate(team, hands, packing, tiles, shape, scratch, units, given, entries, field, gain, out):
    (x, drive, a), (states, drives, values, couplings) = given, scratch
    pack(hands, packing, x, units.inward, states)
    pack(hands, packing, drive, units.drive, drives)
    take(hands, a, entries, units.coupling, couplings)
    share(team, tiles, _evaluate_tile, (*shape, *field, couplings, drives, units.strength, states, gain, values))
    unpack(hands, packing, values, None, units.outward, out)


def rhs(
    layout: Layout,
    a: Array,
    x: Array,
    drive: Array,
    strength: float,
    *,
    linear: bool = False,
    keep: bool = True,
) -> tuple[Array, Array | None]:
    """(f [N, d], gain): the field at x [N, d].

    gain [N * columns] is what `rhs_vjp` needs (None if linear or not keep).
    """
    plan, dtype = plan_flow(layout.n, x.shape[1], 1, 1, linear=linear, dtype=x.dtype.type), x.dtype
    kept, size = keep and not linear, plan.n * plan.columns
    gain, out = workspace.empty((size if kept else 0,), dtype), workspace.empty((size,), dtype)
    _evaluate(
        *Tiling.of(layout, plan, dtype, plan.planes, size, size, size, layout.size),
        Units.of_field(linear, strength, dtype),
        (padded(x, plan), padded(drive, plan), a),
        layout.entries,
        (layout.chunks, plan.n, Kind.of(plan), kept, layout.rowptr, layout.col),
        gain,
        out,
    )
    return trimmed(out, plan), gain if kept else None


@in_lanes
@part
def _pull_back_tile(
    number,
    start,
    width,
    room,
    crew,
    bounds,
    n,
    kind,
    t_rowptr,
    t_col,
    t_a,
    factor,
    x,
    gain,
    grad,
    grad_x,
    all_dots,
    all_strengths,
):
    state, kappa = rows_from(pointer(x), n * start, width), rows_from(pointer(grad), n * start, width)
    query, out = rows_from(room, 0, width), rows_from(pointer(grad_x), n * start, width)
    sources, gains = (
        ahead(query, planes(kind) * n),
        ahead_if(kind.phases, rows_from(pointer(gain), n * start, width), 0),
    )
    dots, strengths = own_sums(number, n, all_dots, all_strengths)
    shown, matrix = (query, sources, gains), (pointer(t_rowptr), pointer(t_col), pointer(t_a))
    operands = (*matrix, factor, kappa, *shown, dots, strengths, out)
    if crew is None:
        field_show_adjoint(np.int64(0), n, state, kappa, *shown)
        field_adjoint(np.int64(0), n, *operands)
    else:
        share(crew, bounds.size - 1, _show_adjoint_share, (bounds, state, kappa, *shown))
        share(crew, bounds.size - 1, _adjoint_share, (bounds, *operands))


@kernel
def _pull_back(
    team, hands, packing, tiles, shape, scratch, units, given, t_perm, field, matrix, gain, row_strength, gradients
):
    """All of it; returns the sum of products of couplings and their gradients."""
    (x, grad_out, a), (all_dots, states, kappas, values, t_couplings) = given, scratch
    (grad_x, grad_a), (t_rowptr, t_col), dots = gradients, matrix, all_dots.reshape((tiles, a.size))
    pack(hands, packing, x, units.inward, states)
    pack(hands, packing, grad_out, units.one, kappas)
    take(hands, a, t_perm, units.t_coupling, t_couplings)
    operands = (t_rowptr, t_col, t_couplings, units.factor, states, gain, kappas, values, dots, row_strength)
    share(team, tiles, _pull_back_tile, (*shape, *field, *operands))
    unpack(hands, packing, values, None, units.one, grad_x)
    return add_up(hands, dots, t_perm, a, units.grad_a, grad_a)


def rhs_vjp(
    layout: Layout,
    a: Array,
    x: Array,
    strength: float,
    grad_out: Array,
    *,
    linear: bool = False,
    gain: Array | None = None,
) -> tuple[Array, Array, float]:
    """(grad_x [N, d], grad_a [E], grad_strength) of `rhs`; grad_drive is grad_out. `gain` is what `rhs` gave."""
    plan, dtype = plan_flow(layout.n, x.shape[1], 1, 1, linear=linear, dtype=x.dtype.type), x.dtype
    size, edges, tiles = plan.n * plan.columns, layout.size, plan.cut.count
    row_strength = np.zeros((tiles, plan.n if linear else 0), np.float64)
    grad_x, grad_a = workspace.empty((size,), dtype), workspace.empty((edges,), dtype)
    total = _pull_back(
        *Tiling.of(layout, plan, dtype, 2 * plan.planes, tiles * edges, size, size, size, edges),
        Units.of_field(linear, strength, dtype),
        (padded(x, plan), padded(grad_out, plan), a),
        layout.t_perm,
        (layout.t_chunks, plan.n, Kind.of(plan)),
        (layout.t_rowptr, layout.t_col),
        grad_x if gain is None else gain,  # Not looked at where linear.
        row_strength,
        (grad_x, grad_a),
    )
    return trimmed(grad_x, plan), grad_a, strength_gradient(total, row_strength, linear)
