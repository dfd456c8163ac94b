"""One right-hand side and its gradient, on numpy arrays."""

import numpy as np

from kuramotognn.kernels.cpu.edges import EdgeSums, own_sums, taken
from kuramotognn.kernels.cpu.flow import Kind, in_lanes, planes, rooms_for, teams_for, widths
from kuramotognn.kernels.cpu.jit import kernel, part
from kuramotognn.kernels.cpu.lanes import ahead, ahead_if, pointer, rows_from
from kuramotognn.kernels.cpu.layout import Array, Layout
from kuramotognn.kernels.cpu.packing import pack, pack_states, unpack
from kuramotognn.kernels.cpu.plan import plan_flow
from kuramotognn.kernels.cpu.stages import field_adjoint, field_rows, field_show_adjoint, show
from kuramotognn.kernels.cpu.team import of_rows, share
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
def _evaluate(team, tiles, *operands):
    share(team, tiles, _evaluate_tile, operands)


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
    plan = plan_flow(layout.n, x.shape[1], 1, 1, linear=linear, dtype=x.dtype)
    (team, crew), kept = teams_for(layout, plan), keep and not linear
    drives, states = pack(drive, layout, plan), pack_states(x, layout, plan)
    values, gain = workspace.empty(drives.shape, x.dtype), workspace.empty((drives.size if kept else 0,), x.dtype)
    _evaluate(
        team,
        plan.cut.count,
        plan.cut,
        *widths(plan.cut, x.dtype),
        rooms_for(team, plan, plan.planes, x.dtype),
        crew,
        layout.chunks,
        plan.n,
        Kind.of(plan),
        kept,
        layout.rowptr,
        layout.col,
        taken(a, layout.entries, 1.0 if linear else strength),
        drives,
        x.dtype.type(strength),
        states,
        gain,
        values,
    )
    return unpack(values, layout, plan), gain if kept else None


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
def _pull_back(team, tiles, *operands):
    share(team, tiles, _pull_back_tile, operands)


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
    plan = plan_flow(layout.n, x.shape[1], 1, 1, linear=linear, dtype=x.dtype)
    team, crew = teams_for(layout, plan)
    states, kappas = pack_states(x, layout, plan), pack(grad_out, layout, plan)
    sums, grads = EdgeSums(layout, plan.cut.count, a, strength, linear), workspace.empty(states.shape, x.dtype)
    _pull_back(
        team,
        plan.cut.count,
        plan.cut,
        *widths(plan.cut, x.dtype),
        rooms_for(team, plan, 2 * plan.planes, x.dtype),
        crew,
        layout.t_chunks,
        plan.n,
        Kind.of(plan),
        layout.t_rowptr,
        layout.t_col,
        taken(a, layout.t_perm, 1.0 if linear else strength),
        x.dtype.type(strength if linear else 1.0),
        states,
        states if gain is None else gain,  # Not looked at where linear.
        kappas,
        grads,
        sums.dots,
        sums.row_strength,
    )
    return unpack(grads, layout, plan), *sums.gradients()
