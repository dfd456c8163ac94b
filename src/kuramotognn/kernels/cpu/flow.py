"""Whole integrations on numpy arrays: forward, and the exact discrete adjoint.

The columns of the state never meet (except in the gradient of the couplings), so it is cut into tiles, one to three
vectors per node, and a tile is integrated to the end before the next begins. It stays in cache while neighbours
are gathered, and a row of it stays in vector registers from the first neighbour to the features of the next state.
Threads take tiles each, without waiting for each other; where there are fewer tiles than threads, they share the
rows of every stage.

In kernels, `crew` is the team that shares the rows of a stage, if any, and `room` the scratch rows of one worker.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kuramotognn.kernels.cpu.edges import add_up, own_sums, strength_gradient, take
from kuramotognn.kernels.cpu.jit import inner, kernel, part
from kuramotognn.kernels.cpu.lanes import like, splat
from kuramotognn.kernels.cpu.layout import Array, Layout
from kuramotognn.kernels.cpu.memory import ahead, ahead_if, at, pointer, put, rows_from
from kuramotognn.kernels.cpu.packing import Packing, pack, padded, trimmed, unpack
from kuramotognn.kernels.cpu.plan import Cut, FlowPlan
from kuramotognn.kernels.cpu.stages import backward, forward, show, show_adjoint
from kuramotognn.kernels.cpu.team import Team, of_rows, share, team_for
from kuramotognn.kernels.cpu.units import Units
from kuramotognn.kernels.cpu.workspace import workspace

SHARED_STAGE = 200_000  # entries and rows of a stage that are worth waking the other threads for


class Kind(NamedTuple):
    """What has kernels of its own: a member that is None tells the compiler to leave something out."""

    phases: int | None  # None for the linear field
    between: int | None  # None where there is nothing between the stages of a step, which are one

    @classmethod
    def of(cls, plan: FlowPlan) -> "Kind":
        """That of a plan."""
        return cls(None if plan.linear else 1, 1 if plan.stages > 1 else None)


def teams_for(layout: Layout, plan: FlowPlan) -> tuple[Team, Team | None]:
    """(who shares the tiles, who shares the rows of each; None: its thread does them all)."""
    tiles = plan.cut.count
    team = team_for((layout.size + layout.n) * plan.columns * plan.steps * plan.stages)
    if tiles < team.threads and layout.size + layout.n > SHARED_STAGE:
        return team._replace(threads=1), team
    return team._replace(threads=max(min(team.threads, tiles), 1)), None


def widths(cut: Cut, dtype: np.dtype) -> tuple[Array | None, Array, Array]:
    """What tells kernels the lanes of tiles; None for triples where there are none, which saves compiling for them."""
    return like(dtype, 3) if cut.triples else None, like(dtype, 2), like(dtype)


class Tiling(NamedTuple):
    """What kernels need to go from the caller's rows to tiles and to work on these."""

    team: Team  # shares the tiles
    hands: Team  # share what is not cut into tiles
    packing: Packing
    count: int  # of tiles
    shape: tuple  # cut, widths, room of each worker, crew: the first operands of `in_lanes`
    scratch: tuple[Array, ...]

    @classmethod
    def of(cls, layout: Layout, plan: FlowPlan, dtype: np.dtype, room: int, *sizes: int) -> "Tiling":
        """With `room` scratch rows per node for each worker, and scratch arrays of these sizes."""
        cut, (team, crew) = plan.cut, teams_for(layout, plan)
        rooms = team.threads, room * plan.n * cut.widest
        first, *scratch = workspace.several(dtype, math.prod(rooms), *sizes)
        shape = (cut, *widths(cut, dtype), first.reshape(rooms), crew)
        return cls(team, crew or team, Packing.of(layout, plan, dtype), cut.count, shape, tuple(scratch))


def in_lanes(function):
    """What :func:`share` calls for tiles of any width, from a function for one width.

    That is called with the tile's number, where its columns begin, a pointer to lanes of its width, the room of the
    worker, and the operands.
    """

    @inner
    def tile(number, worker, cut, three, two, one, rooms, *operands):
        room, doubles = ahead(pointer(rooms), worker * rooms.shape[1]), number - cut.triples
        singles = doubles - cut.doubles
        if singles >= 0:
            function(number, cut.unit * (3 * cut.triples + 2 * cut.doubles + singles), pointer(one), room, *operands)
        elif doubles >= 0:
            function(number, cut.unit * (3 * cut.triples + 2 * doubles), pointer(two), room, *operands)
        elif three is not None:
            function(number, cut.unit * 3 * number, pointer(three), room, *operands)

    return tile


@part
def planes(kind):
    """Features of a node."""
    return 1 if kind.phases is None else 2


@part
def _copy(n, source, target):
    for i in range(n):
        put(target, i, at(source, i))


_forward_share, _backward_share = of_rows(forward), of_rows(backward)


@inner
def _run_forward(steps, room, crew, bounds, n, stages, kind, keep, rowptr, col, a, drive, strength, coef, x, states):
    """Integrate x [N] in place; fill the tape, states and then gains, if it is to be kept."""
    passes, features = steps * stages, room
    slopes, gains = ahead_if(kind.between, room, 2 * planes(kind) * n), ahead_if(kind.phases, states, passes * n)
    show(np.int64(0), n, keep, x, states, features, gains)  # A literal zero would be compiled for separately.
    operands = (n, keep, rowptr, col, a, drive, strength, stages, coef, x, states, gains, features, slopes)
    if crew is None:
        forward(np.int64(0), n, 0, passes, passes, *operands)
    else:
        for m in range(passes):
            share(crew, bounds.size - 1, _forward_share, (bounds, m, m + 1, passes, *operands))


@in_lanes
@part
def _forward_tile(
    number, start, width, room, crew, bounds, plan, kept, kind, keep, rowptr, col, a, drive, strength, coef, x, tape
):
    n = plan.n
    scratch, state = rows_from(room, 0, width), rows_from(pointer(x), n * start, width)
    own_tape, own_drive = rows_from(pointer(tape), kept * n * start, width), rows_from(pointer(drive), n * start, width)
    everything = keep and plan.segment >= plan.steps
    for segment in range(-(-plan.steps // plan.segment)):
        if keep and not everything:
            _copy(n, state, ahead(own_tape, segment * n))
        _run_forward(
            min(plan.segment, plan.steps - segment * plan.segment),
            scratch,
            crew,
            bounds,
            n,
            plan.stages,
            kind,
            everything,
            pointer(rowptr),
            pointer(col),
            pointer(a),
            own_drive,
            strength,
            pointer(coef),
            state,
            own_tape,
        )


@kernel
def integrate_tiles(team, hands, packing, tiles, shape, scratch, units, given, entries, field, tape, began, end):
    """All tiles, forward, from the caller's arrays to the caller's."""
    (x0, drive, a), (states, drives, couplings) = given, scratch
    pack(hands, packing, x0, units.inward, states)
    pack(hands, packing, drive, units.drive, drives)
    take(hands, a, entries, units.coupling, couplings)
    operands = (*shape, *field, couplings, drives, units.strength, units.coef, states, tape)
    share(team, tiles, _forward_tile, operands)
    unpack(hands, packing, states, began, units.outward, end)


@inner
def _run_backward(
    steps,
    room,
    crew,
    bounds,
    n,
    stages,
    kind,
    t_rowptr,
    t_col,
    t_a,
    factor,
    coef,
    states,
    lam,
    grad_drive,
    dots,
    row_strength,
):
    """Pull lam [N] back over `steps` steps in place and add to the other gradients."""
    passes, sources = steps * stages, ahead(room, planes(kind) * n)
    mus, gains = ahead_if(kind.between, room, 3 * planes(kind) * n), ahead_if(kind.phases, states, passes * n)
    show_adjoint(0, n, n, stages, coef, ahead(states, (passes - 1) * n), gains, lam, mus, room, sources)
    field = (n, t_rowptr, t_col, t_a, factor, stages, coef, states, gains)
    operands = (*field, lam, mus, room, sources, grad_drive, dots, row_strength)
    if crew is None:
        backward(np.int64(0), n, 0, passes, passes, *operands)
    else:
        for back in range(passes):
            share(crew, bounds.size - 1, _backward_share, (bounds, back, back + 1, passes, *operands))


@in_lanes
@part
def _backward_tile(
    number,
    start,
    width,
    room,
    crew,
    bounds,
    t_bounds,
    plan,
    kept,
    kind,
    rowptr,
    col,
    a,
    t_rowptr,
    t_col,
    t_a,
    drive,
    strength,
    factor,
    coef,
    tape,
    lams,
    drive_sums,
    all_dots,
    all_strengths,
):
    n, stages, between = plan.n, plan.stages, plan.stages - 1
    scratch, own_tape = rows_from(room, 0, width), rows_from(pointer(tape), kept * n * start, width)
    lam, grad_drive = rows_from(pointer(lams), n * start, width), rows_from(pointer(drive_sums), n * start, width)
    dots, strengths = own_sums(number, n, all_dots, all_strengths)
    for i in range(n):
        put(grad_drive, i, splat(grad_drive, 0))
    segments = -(-plan.steps // plan.segment)
    again = segments > 1
    for segment in range(segments - 1, -1, -1):
        steps, states = min(plan.segment, plan.steps - segment * plan.segment), own_tape
        if again:
            # Recomputed from its checkpoint. State, features and slopes lie where the way back has its query and
            # sources, which it makes anew; behind them lies the tape.
            state, features = scratch, ahead(scratch, n)
            states = ahead(scratch, (3 * planes(kind) + between) * n)
            _copy(n, ahead(own_tape, segment * n), state)
            _run_forward(
                steps,
                features,
                crew,
                bounds,
                n,
                stages,
                kind,
                again,
                pointer(rowptr),
                pointer(col),
                pointer(a),
                rows_from(pointer(drive), n * start, width),
                strength,
                pointer(coef),
                state,
                states,
            )
        _run_backward(
            steps,
            scratch,
            crew,
            t_bounds,
            n,
            stages,
            kind,
            pointer(t_rowptr),
            pointer(t_col),
            pointer(t_a),
            factor,
            pointer(coef),
            states,
            lam,
            grad_drive,
            dots,
            strengths,
        )


@kernel
def pull_back_tiles(
    team,
    hands,
    packing,
    tiles,
    shape,
    scratch,
    units,
    given,
    again,
    places,
    field,
    layout,
    tape,
    row_strength,
    gradients,
):
    """All tiles, backward; returns the sum of products of couplings and their gradients."""
    (grad_out, drive, a), (all_dots, lams, drive_sums, t_couplings, couplings, drives) = given, scratch
    (entries, t_perm), (grad_x0, grad_drive, grad_a) = places, gradients
    dots = all_dots.reshape((tiles, a.size))
    pack(hands, packing, grad_out, units.one, lams)
    take(hands, a, t_perm, units.t_coupling, t_couplings)
    if again:  # Couplings and drive themselves are looked at by a recomputation only.
        take(hands, a, entries, units.coupling, couplings)
        pack(hands, packing, drive, units.drive, drives)
    rowptr, col, t_rowptr, t_col = layout
    matrices = (rowptr, col, couplings, t_rowptr, t_col, t_couplings)
    constants = (drives, units.strength, units.factor, units.coef)
    sums = (lams, drive_sums, dots, row_strength)
    share(team, tiles, _backward_tile, (*shape, *field, *matrices, *constants, tape, *sums))
    unpack(hands, packing, lams, None, units.one, grad_x0)
    unpack(hands, packing, drive_sums, None, units.step, grad_drive)
    return add_up(hands, dots, t_perm, a, units.grad_a, grad_a)


def flow_forward(
    layout: Layout,
    plan: FlowPlan,
    a: Array,
    x0: Array,
    drive: Array,
    strength: float,
    coefficients: Sequence[float],
    *,
    keep: bool = True,
) -> tuple[Array, Array]:
    """Integrate from x0 [N, d] over plan.steps fixed steps.

    a [E] coupling values in CSR order, drive [N, d], coefficients [S * S] the step-sized Runge-Kutta table (see
    `stages`). Returns (x_T [N, d], tape): the tape is a flat array of plan.tape_size for `flow_backward`, empty if not
    keep.
    """
    dtype, size = x0.dtype, plan.n * plan.columns
    tape, end = workspace.empty((plan.tape_size if keep else 0,), dtype), workspace.empty((size,), dtype)
    start = padded(x0, plan)
    integrate_tiles(
        *Tiling.of(layout, plan, dtype, plan.forward_rows, size, size, layout.size),
        Units.of_flow(plan.linear, coefficients, strength, dtype),
        (start, padded(drive, plan), a),
        layout.entries,
        (layout.chunks, plan, plan.kept, Kind.of(plan), keep, layout.rowptr, layout.col),
        tape,
        None if plan.linear else start,
        end,
    )
    return trimmed(end, plan), tape


def flow_backward(
    layout: Layout,
    plan: FlowPlan,
    a: Array,
    drive: Array,
    strength: float,
    coefficients: Sequence[float],
    tape: Array,
    grad_out: Array,
) -> tuple[Array, Array, Array, float]:
    """The exact discrete adjoint of `flow_forward`.

    Returns (grad_x0 [N, d], grad_a [E], grad_drive [N, d], grad_strength float).
    """
    dtype, size, edges, again = grad_out.dtype, plan.n * plan.columns, layout.size, not plan.keeps_all
    units, tiles = Units.of_flow(plan.linear, coefficients, strength, dtype), plan.cut.count
    sizes = (tiles * edges, size, size, edges, edges * again, size * again)
    row_strength = np.zeros((tiles, plan.n if plan.linear else 0), np.float64)
    grad_x0, grad_drive, grad_a = (workspace.empty((count,), dtype) for count in (size, size, edges))
    total = pull_back_tiles(
        *Tiling.of(layout, plan, dtype, plan.backward_rows, *sizes),
        units,
        (padded(grad_out, plan), padded(drive, plan) if again else drive.reshape(-1), a),
        again,
        (layout.entries, layout.t_perm),
        (layout.chunks, layout.t_chunks, plan, plan.kept, Kind.of(plan)),
        (layout.rowptr, layout.col, layout.t_rowptr, layout.t_col),
        tape,
        row_strength,
        (grad_x0, grad_drive, grad_a),
    )
    grad_strength = units.step * strength_gradient(total, row_strength, plan.linear)
    return trimmed(grad_x0, plan), grad_a, trimmed(grad_drive, plan), grad_strength
