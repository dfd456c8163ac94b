"""Whole integrations on numpy arrays: forward, and the exact discrete adjoint.

The columns of the state never meet (except in the gradient of the couplings), so it is cut into tiles, a cache line or
half of one per node, and a tile is integrated to the end before the next begins. It stays in cache while neighbours
are gathered, and a row of it stays in vector registers from the first neighbour to the features of the next state.
Threads take tiles each, without waiting for each other; where there are fewer tiles than threads, they share the
rows of every stage.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from kuramotognn.kernels.cpu.jit import kernel, share_out, share_rows, thread_count
from kuramotognn.kernels.cpu.lanes import rows
from kuramotognn.kernels.cpu.layout import Array, Layout
from kuramotognn.kernels.cpu.packing import pack, pack_states, unpack, unpack_states
from kuramotognn.kernels.cpu.plan import FlowPlan, Tile
from kuramotognn.kernels.cpu.stages import backward, forward, show, show_adjoint
from kuramotognn.kernels.cpu.workspace import workspace

SHARED_STAGE = 200_000  # entries and rows of a stage that are worth waking the other threads for


@kernel
def _take(values, perm, out):
    for e in range(perm.size):
        out[e] = values[perm[e]]


@kernel
def _put_sum(values, perm, out):
    """out[perm] = values [T, E] summed over T, in order."""
    for e in range(perm.size):
        acc = values[0, e]
        for t in range(1, values.shape[0]):
            acc += values[t, e]
        out[perm[e]] = acc


def taken(a, places):
    """a[places], in memory that is used again."""
    out = workspace.empty(a.shape, a.dtype)
    _take(a, places, out)
    return out


def for_tiles(layout, plan, function):
    """Call function(number, by_rows) for every tile: side by side, or one by one with threads inside."""
    tiles = plan.tiles
    if len(tiles) < thread_count() and layout.size + layout.n > SHARED_STAGE:
        for number in range(len(tiles)):
            function(number, True)
    else:
        work = (layout.size + layout.n) * plan.columns * plan.steps * plan.stages
        share_out(function, [(number, False) for number in range(len(tiles))], work=work)


class EdgeSums:
    """What the adjoints of the tiles add up to: each tile has its own row, and rows are added in order."""

    def __init__(self, layout, tiles, a, strength, linear, step=1.0):
        self.layout, self.a, self.strength, self.linear, self.step = layout, a, strength, linear, step
        self.dots = workspace.zeros((len(tiles), a.size), a.dtype)
        self.row_strength = np.zeros((len(tiles), layout.n if linear else 0), np.float64)

    def of_tile(self, number):
        """(dots [E], row_strength [N or 0])."""
        return self.dots[number], self.row_strength[number]

    def gradients(self):
        """(grad_a [E], grad_strength)."""
        grad_a = workspace.zeros(self.a.shape, self.a.dtype)
        if len(self.dots):
            _put_sum(self.dots, self.layout.t_perm, grad_a)
        if self.linear:
            grad_strength = self.step * float(self.row_strength.sum())
        else:
            # The interaction is linear in a: its sum with the gradient is <a, dots>. Not np.dot: BLAS starts threads.
            grad_strength = self.step * float(np.multiply(self.a, grad_a, dtype=np.float64).sum())
        grad_a *= self.a.dtype.type(self.step * self.strength)
        return grad_a, grad_strength


class _TileFlow(NamedTuple):
    """One tile's integration; arrays are rows of the tile."""

    layout: Layout
    plan: FlowPlan
    tile: Tile
    coef: Array
    strength: np.floating[Any]  # in the units of the states, per step
    pull: np.floating[Any]  # the same in the caller's units
    by_rows: bool

    def rows(self, numbers):
        """Numbers as rows of this tile."""
        return rows(numbers, self.tile.width)

    def scratch(self, count):
        """`count` uninitialised rows per node."""
        return self.rows(workspace.empty((count * self.plan.n * self.tile.width,), self.coef.dtype))

    def part(self, numbers, each=1):
        """This tile's rows of an array that holds `each` numbers per node and column."""
        return self.rows(self.plan.part(numbers, self.tile, each))

    def between_stages(self):
        """A row per node and stage but the last; None where there is one stage."""
        return self.scratch(self.plan.stages - 1) if self.plan.stages > 1 else None

    @property
    def planes(self):
        return 1 if self.plan.linear else 2

    def tape_views(self, tape, steps):
        """(states, gains) of a fully kept stretch."""
        end = steps * self.plan.stages * self.plan.n
        return tape[:end], None if self.plan.linear else tape[end:]

    def run_forward(self, a, drive, steps, x, states, gains, keep=True):
        """Integrate x [N] in place; fill states and gains if they are to be kept."""
        passes = steps * self.plan.stages
        features, slopes = self.scratch(2 * self.planes), self.between_stages()
        show(0, self.plan.n, keep, x, states, features, gains)

        def stages(lo, hi, first, last):
            forward(
                first,
                last,
                passes,
                lo,
                hi,
                keep,
                self.layout.rowptr,
                self.layout.col,
                a,
                drive,
                self.strength,
                self.coef,
                x,
                states,
                gains,
                features,
                slopes,
            )

        self._march(stages, passes, self.layout.chunks)

    def run_forward_without_tape(self, a, drive, steps, x):
        """Integrate x [N] in place."""
        self.run_forward(a, drive, steps, x, *self.tape_views(self.scratch(0), 0), keep=False)

    def run_backward(self, t_a, steps, states, gains, lam, grad_drive, dots, row_strength):
        """Pull lam [N] back over `steps` steps in place and add to the other gradients."""
        passes = steps * self.plan.stages
        mus, query, sources = (
            self.between_stages(),
            self.scratch(self.planes),
            self.scratch(2 * self.planes),
        )
        show_adjoint(0, self.plan.n, self.coef, passes - 1, states, gains, lam, mus, query, sources)

        def stages(lo, hi, first, last):
            backward(
                first,
                last,
                passes,
                lo,
                hi,
                self.layout.t_rowptr,
                self.layout.t_col,
                t_a,
                self.pull,
                self.coef,
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

        self._march(stages, passes, self.layout.t_chunks)

    def _march(self, stages, passes, chunks):
        """All stages at once for all rows, or one after the other with the rows shared among the threads."""
        if not self.by_rows:
            stages(chunks[0], chunks[-1], 0, passes)
            return
        for m in range(passes):
            share_rows(stages, chunks, m, m + 1)

    def recall(self, a, drive, tape, segment, steps):
        """(states, gains) of a segment: from the tape, or recomputed from its checkpoint."""
        if self.plan.keeps_all:
            return self.tape_views(tape, steps)
        states, gains = self.tape_views(self.scratch(self.plan.tape_rows(steps)), steps)
        x, n = self.scratch(1), self.plan.n
        x[:] = tape[segment * n : (segment + 1) * n]
        self.run_forward(a, drive, steps, x, states, gains)
        return states, gains


class _Units(NamedTuple):
    """The kernels' units in the caller's."""

    step: float  # of time
    state: float

    @classmethod
    def of(cls, coef, linear):
        """The weights of a step's slopes add up to its length."""
        return cls(float(coef[-1].sum()), 1.0 if linear else math.pi)


def _tile_flows(layout, plan, coef, strength, dtype):
    """The units, and a function from (number of tile, by_rows) to its flow."""
    units, real, tiles = _Units.of(coef, plan.linear), np.dtype(dtype).type, plan.tiles
    table, pull = np.ascontiguousarray(coef / units.step, dtype), units.step * strength
    strengths = real(pull / units.state), real(pull)
    return units, lambda number, by_rows: _TileFlow(layout, plan, tiles[number], table, *strengths, by_rows)


def flow_forward(
    layout: Layout,
    plan: FlowPlan,
    a: Array,
    x0: Array,
    drive: Array,
    strength: float,
    coef: Array,
    *,
    keep: bool = True,
) -> tuple[Array, Array]:
    """Integrate from x0 [N, d] over plan.steps fixed steps.

    a [E] coupling values in CSR order, drive [N, d], coef [S, S] the step-sized Runge-Kutta table (see `stages`).
    Returns (x_T [N, d], tape): the tape is a flat array of plan.tape_size for `flow_backward`, empty if not keep.
    """
    units, flow_of = _tile_flows(layout, plan, coef, strength, x0.dtype)
    tape = workspace.empty((plan.tape_size if keep else 0,), x0.dtype)
    own_a, drives = taken(a, layout.entries), pack(drive, layout, plan, units.step / units.state)
    states_now, n = pack_states(x0, layout, plan), plan.n

    def integrate(number, by_rows):
        flow = flow_of(number, by_rows)
        x, own_drive = flow.part(states_now), flow.part(drives)
        if keep and plan.keeps_all:
            states, gains = flow.tape_views(flow.part(tape, plan.kept), plan.steps)
            flow.run_forward(own_a, own_drive, plan.steps, x, states, gains)
            return
        for segment, (first, last) in enumerate(plan.segments):
            if keep:
                flow.part(tape, plan.kept)[segment * n : (segment + 1) * n] = x
            flow.run_forward_without_tape(own_a, own_drive, last - first, x)

    for_tiles(layout, plan, integrate)
    return unpack_states(states_now, x0, layout, plan), tape


def flow_backward(
    layout: Layout,
    plan: FlowPlan,
    a: Array,
    drive: Array,
    strength: float,
    coef: Array,
    tape: Array,
    grad_out: Array,
) -> tuple[Array, Array, Array, float]:
    """The exact discrete adjoint of `flow_forward`.

    Returns (grad_x0 [N, d], grad_a [E], grad_drive [N, d], grad_strength float).
    """
    units, flow_of = _tile_flows(layout, plan, coef, strength, grad_out.dtype)
    own_a, t_a = taken(a, layout.entries), taken(a, layout.t_perm)
    sums = EdgeSums(layout, plan.tiles, a, strength, plan.linear, units.step)
    lams = pack(grad_out, layout, plan)
    drive_sums = workspace.empty(lams.shape, lams.dtype)
    # The drive is looked at by a recomputation only.
    drives = drive_sums if plan.keeps_all else pack(drive, layout, plan, units.step / units.state)

    def pull_back(number, by_rows):
        flow = flow_of(number, by_rows)
        plan.part(drive_sums, flow.tile).fill(0)
        gradients = (flow.part(lams), flow.part(drive_sums), *sums.of_tile(number))
        for segment, (first, last) in reversed(list(enumerate(plan.segments))):
            states, gains = flow.recall(own_a, flow.part(drives), flow.part(tape, plan.kept), segment, last - first)
            flow.run_backward(t_a, last - first, states, gains, *gradients)

    for_tiles(layout, plan, pull_back)
    grad_a, grad_strength = sums.gradients()
    return unpack(lams, layout, plan), grad_a, unpack(drive_sums, layout, plan, units.step), grad_strength
