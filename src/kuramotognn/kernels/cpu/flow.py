"""Whole integrations on numpy arrays: forward, and the exact discrete adjoint.

The columns of the state never meet (except in the gradient of the couplings), so it is cut into tiles of L columns, a
cache line per node, and a tile is integrated to the end before the next begins. It stays in cache while neighbours
are gathered, and a row of it stays in vector registers from the first neighbour to the features of the next state.
Threads take tiles each, without waiting for each other; where there are fewer tiles than threads, they share the
rows of every stage.
"""

from typing import Any, NamedTuple

import numpy as np

from kuramotognn.kernels.cpu.jit import kernel, share_out, share_rows, thread_count
from kuramotognn.kernels.cpu.layout import Array, Layout
from kuramotognn.kernels.cpu.packing import pack, unpack
from kuramotognn.kernels.cpu.plan import FlowPlan, plan_flow
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


class _Flow(NamedTuple):
    """The arguments that every kernel call of one integration shares."""

    layout: Layout
    plan: FlowPlan
    coef: Array
    strength: np.floating[Any]

    @property
    def dtype(self):
        return self.coef.dtype

    def tile(self, *lead):
        """Uninitialised [*lead, N, L]."""
        return workspace.empty((*lead, self.plan.n, self.plan.tile), self.dtype)

    def features(self, *lead):
        """Uninitialised [*lead, N, P, L]."""
        planes = 1 if self.plan.linear else 2
        return workspace.empty((*lead, self.plan.n, planes, self.plan.tile), self.dtype)

    def pack(self, x):
        """[T, N, L] from [N, d]."""
        out = self.tile(self.plan.n_tiles)
        pack(x, self.layout, out)
        return out

    def unpack(self, tiles):
        """[N, d] from [T, N, L]."""
        out = workspace.empty((self.plan.n, self.plan.d), self.dtype)
        unpack(tiles, self.layout, out)
        return out

    def for_tiles(self, function):
        """Call function(number, by_rows) for every tile: side by side, or one by one with threads inside."""
        plan, work_of_stage = self.plan, self.layout.col.size + self.plan.n
        if plan.n_tiles < thread_count() and work_of_stage > SHARED_STAGE:
            for number in range(plan.n_tiles):
                function(number, True)
        else:
            share_out(function, [(number, False) for number in range(plan.n_tiles)])

    def run_forward(self, a, drive, steps, states, gains, by_rows, *, from_zero=False):
        """Fill states [ring, N, L] (slot 0 given) and gains; returns the slot of the end state.

        from_zero adds the increments to zero instead of slot 0: one euler step of size 1 is then the field itself.
        """
        linear, passes = self.plan.linear, steps * self.plan.stages
        features, slopes = self.features(2), self.tile(self.plan.stages - 1)
        show(linear, 0, self.plan.n, states, features)
        if from_zero:
            states[0] = 0

        def stages(lo, hi, first, last):
            forward(
                linear,
                first,
                last,
                passes,
                lo,
                hi,
                self.layout.rowptr,
                self.layout.col,
                a,
                drive,
                self.strength,
                self.coef,
                states,
                gains,
                features,
                slopes,
            )

        _march(stages, passes, self.layout.chunks, by_rows)
        return passes % states.shape[0]

    def run_backward(self, t_a, steps, states, gains, lam, grad_drive, dots, row_strength, by_rows, *, carry=1):
        """Pull lam [N, L] back over `steps` steps in place and add to the other gradients.

        carry=0 leaves out the identity part of a step, so one euler step of size 1 gives the field's own vjp.
        """
        linear, passes = self.plan.linear, steps * self.plan.stages
        mus, query, sources = self.tile(self.plan.stages - 1), self.features(), self.features(2)
        show_adjoint(linear, self.coef, passes - 1, 0, self.plan.n, states, lam, mus, query, sources)

        def stages(lo, hi, first, last):
            backward(
                linear,
                first,
                last,
                passes,
                lo,
                hi,
                self.layout.t_rowptr,
                self.layout.t_col,
                t_a,
                self.strength,
                self.coef,
                self.dtype.type(carry),
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

        _march(stages, passes, self.layout.t_chunks, by_rows)

    def tape_views(self, flat, steps):
        """(states, gains) of a fully kept stretch, as views of a flat array."""
        n, slots, tile = self.plan.n, self.plan.slots(steps), self.plan.tile
        states = flat[: slots * n * tile].reshape(slots, n, tile)
        if self.plan.linear:
            return states, self.no_gains
        return states, flat[slots * n * tile :][: (slots - 1) * n * tile].reshape(slots - 1, n, tile)

    @property
    def no_gains(self):
        return np.empty((1, 0, self.plan.tile), self.dtype)

    def checkpoints(self, tape):
        """[segments, N, L], the kept states of a tile."""
        return tape.reshape(-1, self.plan.n, self.plan.tile)

    def recall(self, a, drive, tape, segment, steps, by_rows):
        """(states, gains) of a segment: from the tape, or recomputed from its checkpoint."""
        if self.plan.keeps_all:
            return self.tape_views(tape, steps)
        states, gains = self.tape_views(self.tile(self.plan.tape_rows(steps)).reshape(-1), steps)
        states[0] = self.checkpoints(tape)[segment]
        self.run_forward(a, drive, steps, states, gains, by_rows)
        return states, gains


def _march(stages, passes, chunks, by_rows):
    """All stages at once for all rows, or one after the other with the rows shared among the threads."""
    if not by_rows:
        stages(chunks[0], chunks[-1], 0, passes)
        return
    for m in range(passes):
        share_rows(stages, chunks, m, m + 1)


def _make_flow(layout, plan, coef, strength, dtype):
    return _Flow(layout, plan, np.ascontiguousarray(coef, dtype), np.dtype(dtype).type(strength))


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
    flow = _make_flow(layout, plan, coef, strength, x0.dtype)
    tape = workspace.empty((plan.n_tiles, plan.tape_size // max(plan.n_tiles, 1) if keep else 0), x0.dtype)
    own_a, drives, ends = _taken(a, layout.entries), flow.pack(drive), flow.tile(plan.n_tiles)
    # KuramotoGNN starts from its own natural frequencies.
    starts = drives if x0.ctypes.data == drive.ctypes.data else flow.pack(x0)

    def integrate(number, by_rows):
        if keep and plan.keeps_all:
            states, gains = flow.tape_views(tape[number], plan.steps)
            states[0] = starts[number]
            end = flow.run_forward(own_a, drives[number], plan.steps, states, gains, by_rows)
        else:
            states, end = flow.tile(plan.stages + 1), 0
            states[0] = starts[number]
            for segment, (first, last) in enumerate(plan.segments):
                states[0] = states[end]
                if keep:
                    flow.checkpoints(tape[number])[segment] = states[0]
                end = flow.run_forward(own_a, drives[number], last - first, states, flow.no_gains, by_rows)
        ends[number] = states[end]

    flow.for_tiles(integrate)
    return flow.unpack(ends), tape.reshape(-1)


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
    flow = _make_flow(layout, plan, coef, strength, grad_out.dtype)
    own_a, t_a, sums = _taken(a, layout.entries), _taken(a, layout.t_perm), _Sums(flow, a)
    lams, drive_sums = flow.pack(grad_out), flow.tile(plan.n_tiles)
    drives = drive_sums if plan.keeps_all else flow.pack(drive)  # Looked at by a recomputation only.
    tapes = tape.reshape(plan.n_tiles, -1)

    def pull_back(number, by_rows):
        drive_sums[number] = 0
        for segment, (first, last) in reversed(list(enumerate(plan.segments))):
            states, gains = flow.recall(own_a, drives[number], tapes[number], segment, last - first, by_rows)
            gradients = (lams[number], drive_sums[number], *sums.of_tile(number))
            flow.run_backward(t_a, last - first, states, gains, *gradients, by_rows)

    flow.for_tiles(pull_back)
    grad_a, grad_strength = sums.gradients()
    return flow.unpack(lams), grad_a, flow.unpack(drive_sums), grad_strength


class _Sums:
    """What the adjoints of the tiles add up to: each tile has its own row, and rows are added in order."""

    def __init__(self, flow, a):
        plan = flow.plan
        self.flow, self.a = flow, a
        self.dots = workspace.zeros((plan.n_tiles, a.size), flow.dtype)
        self.row_strength = np.zeros((plan.n_tiles, plan.n if plan.linear else 0), np.float64)

    def of_tile(self, number):
        return self.dots[number], self.row_strength[number]

    def gradients(self):
        """(grad_a [E], grad_strength)."""
        flow, grad_a = self.flow, workspace.zeros(self.a.shape, self.a.dtype)
        if flow.plan.n_tiles:
            _put_sum(self.dots, flow.layout.t_perm, grad_a)
        if flow.plan.linear:
            grad_strength = float(self.row_strength.sum())
        else:
            # The interaction is linear in a: its sum with the gradient is <a, dots>. Not np.dot: BLAS starts threads.
            grad_strength = float(np.multiply(self.a, grad_a, dtype=np.float64).sum())
        grad_a *= flow.strength
        return grad_a, grad_strength


def _taken(a, places):
    """a[places], in memory that is used again."""
    out = workspace.empty(a.shape, a.dtype)
    _take(a, places, out)
    return out


_WHOLE_STEP = np.ones((1, 1))


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
    """(f [N, d], gain): the field at x [N, d]. gain [T, N, L] is what `rhs_vjp` needs (None if linear or not keep)."""
    plan = plan_flow(layout.n, x.shape[1], 1, 1, linear=linear, dtype=x.dtype)
    flow = _make_flow(layout, plan, _WHOLE_STEP, strength, x.dtype)
    gain = None if linear or not keep else workspace.empty((plan.n_tiles, plan.n, plan.tile), x.dtype)
    own_a, drives, values = _taken(a, layout.entries), flow.pack(drive), flow.tile(plan.n_tiles)
    starts = drives if x.ctypes.data == drive.ctypes.data else flow.pack(x)

    def evaluate(number, by_rows):
        states = flow.tile(2)
        states[0] = starts[number]
        gains = flow.no_gains if gain is None else gain[number : number + 1]
        flow.run_forward(own_a, drives[number], 1, states, gains, by_rows, from_zero=True)
        values[number] = states[1]

    flow.for_tiles(evaluate)
    return flow.unpack(values), gain


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
    flow = _make_flow(layout, plan, _WHOLE_STEP, strength, x.dtype)
    t_a, sums = _taken(a, layout.t_perm), _Sums(flow, a)
    states, lams, drive_sum = flow.pack(x), flow.pack(grad_out), flow.tile(plan.n_tiles)

    def pull_back(number, by_rows):
        drive_sum[number] = 0
        gains = flow.no_gains if gain is None else gain[number : number + 1]
        gradients = (lams[number], drive_sum[number], *sums.of_tile(number))
        flow.run_backward(t_a, 1, states[number : number + 1], gains, *gradients, by_rows, carry=0)

    flow.for_tiles(pull_back)
    return flow.unpack(lams), *sums.gradients()
