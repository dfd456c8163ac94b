"""Whole integrations on numpy arrays: how they lie in memory, forward, and the exact discrete adjoint.

The columns of the state never meet (except in the gradient of the couplings), so it is cut into tiles of L columns, a
cache line per node, and a group of tiles is integrated to the end before the next begins. A group stays in cache
while neighbours are gathered, and a row of a tile stays in vector registers from the first neighbour to the features
of the next state.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from kuramotognn.kernels.cpu.jit import parallel_sweep, prange
from kuramotognn.kernels.cpu.lanes import TILE_BYTES, lanes
from kuramotognn.kernels.cpu.layout import Array, Layout
from kuramotognn.kernels.cpu.stages import backward_kernel, forward_kernel, show_adjoint_kernel, show_kernel
from kuramotognn.kernels.cpu.workspace import workspace


class FlowPlan(NamedTuple):
    """How an integration is laid out in memory; a pure function of the sizes, so both directions agree on it."""

    n: int
    d: int
    steps: int
    stages: int
    segment: int  # steps between kept states; >= steps keeps everything
    tile: int  # columns per tile, L
    group: int  # tiles integrated together
    linear: bool

    @property
    def keeps_all(self) -> bool:
        """Whether the tape holds every stage, not checkpoints."""
        return self.segment >= self.steps

    @property
    def n_tiles(self):
        """Tiles that cover the columns."""
        return -(-self.d // self.tile)

    @property
    def groups(self):
        """Ranges of tiles that are integrated together."""
        return [(lo, min(lo + self.group, self.n_tiles)) for lo in range(0, self.n_tiles, self.group)]

    def slots(self, steps):
        """Stage inputs (and the end state) that `steps` steps produce."""
        return steps * self.stages + 1

    def tape_rows(self, steps):
        """Slices [N, L] that the adjoint of `steps` steps needs: states, and gains for kuramoto."""
        return self.slots(steps) + (0 if self.linear else steps * self.stages)

    @property
    def segments(self):
        """Ranges of steps between kept states."""
        return [(lo, min(lo + self.segment, self.steps)) for lo in range(0, self.steps, max(self.segment, 1))]

    @property
    def tape_size(self) -> int:
        """Elements of the flat tape that `flow_forward` returns."""
        rows = self.tape_rows(self.steps) if self.keeps_all else len(self.segments)
        return rows * self.n * self.tile * self.n_tiles


CACHE_BYTES = 10 << 20  # what a group's double-buffered features may take; a share of a common L3


def plan_flow(
    n: int,
    d: int,
    steps: int,
    stages: int,
    *,
    linear: bool = False,
    dtype: type[np.floating[Any]] = np.float32,
    memory: int | None = None,
) -> FlowPlan:
    """FlowPlan that keeps everything when it fits `memory` bytes (None: always), else the cheapest checkpoints.

    A group takes as many tiles as fit the cache: more would miss, fewer would synchronise the threads more often.
    """
    n_tiles = -(-d // lanes(dtype))
    per_tile = 2 * (1 if linear else 2) * TILE_BYTES * max(n, 1)
    n_groups = -(-n_tiles // max(1, CACHE_BYTES // per_tile))
    full = FlowPlan(n, d, steps, stages, max(steps, 1), lanes(dtype), -(-n_tiles // n_groups), linear)
    if memory is None or full.tape_size * np.dtype(dtype).itemsize <= memory or steps < 4:
        return full
    # n_tiles * steps / segment checkpoints and one group's segment: least memory where the two are equal
    segment = max(1, round(math.sqrt(n_tiles * steps / (full.group * full.tape_rows(1)))))
    return full._replace(segment=min(segment, steps - 1))


@parallel_sweep
def _take(values, perm, out):
    for e in prange(perm.size):
        out[e] = values[perm[e]]


@parallel_sweep
def _put_scaled_sum(values, scale, perm, out):
    """out[perm] = scale * (values [G, E] summed over G, in order)."""
    for e in prange(perm.size):
        acc = values[0, e]
        for g in range(1, values.shape[0]):
            acc += values[g, e]
        out[perm[e]] = scale * acc


def _taken(values, perm):
    out = workspace.empty(perm.shape, values.dtype)
    _take(values, perm, out)
    return out


@parallel_sweep
def _pack_kernel(x, lo, out):
    width = min(out.shape[1], x.shape[1] - lo)
    for i in prange(x.shape[0]):
        for k in range(width):
            out[i, k] = x[i, lo + k]
        for k in range(width, out.shape[1]):
            out[i, k] = 0


@parallel_sweep
def _unpack_kernel(tile, lo, out):
    width = min(tile.shape[1], out.shape[1] - lo)
    for i in prange(out.shape[0]):
        for k in range(width):
            out[i, lo + k] = tile[i, k]


class _Flow(NamedTuple):
    """The arguments that every kernel call of one integration shares."""

    layout: Layout
    plan: FlowPlan
    coef: np.ndarray
    strength: np.floating

    @property
    def dtype(self):
        return self.coef.dtype

    def tiles(self, *lead):
        """Uninitialised [*lead, N, L]."""
        return workspace.empty((*lead, self.plan.n, self.plan.tile), self.dtype)

    def features(self, *lead):
        """Uninitialised [*lead, N, P, L]."""
        planes = 1 if self.plan.linear else 2
        return workspace.empty((*lead, self.plan.n, planes, self.plan.tile), self.dtype)

    def pack(self, x, lo, out):
        """out [G, N, L] = tiles lo... of x [N, d], padded with zeros; x None gives zeros."""
        if x is None:
            out[...] = 0
            return
        for g in range(out.shape[0]):
            _pack_kernel(x, (lo + g) * self.plan.tile, out[g])

    def unpack(self, tiles, lo, out):
        for g in range(tiles.shape[0]):
            _unpack_kernel(tiles[g], (lo + g) * self.plan.tile, out)

    def forward(self, a, drive, steps, states, gains, *, from_zero=False):
        """Fill states [G, ring, N, L] (slot 0 given) and gains; returns the slot of the end state.

        from_zero adds the increments to zero instead of slot 0: one euler step of size 1 is then the field itself.
        """
        group = states.shape[0]
        features = self.features(group, 2)
        show_kernel(self.plan.linear, states, features)
        if from_zero:
            states[:, 0] = 0
        forward_kernel(
            self.plan.linear,
            self.layout.chunks,
            self.layout.rowptr,
            self.layout.col,
            a,
            drive,
            self.strength,
            self.coef,
            steps,
            states,
            gains,
            features,
            self.tiles(group, self.plan.stages - 1),
        )
        return steps * self.plan.stages % states.shape[1]

    def backward(self, t_a, steps, states, gains, lam, grad_drive, dots, row_strength, *, carry=1):
        """Pull lam [G, N, L] back over `steps` steps in place and add to the other gradients.

        carry=0 leaves out the identity part of a step, so one euler step of size 1 gives the field's own vjp.
        """
        group = states.shape[0]
        mus, query, sources = self.tiles(group, self.plan.stages - 1), self.features(group), self.features(group, 2)
        last = steps * self.plan.stages - 1
        show_adjoint_kernel(self.plan.linear, self.coef, last, states, lam, mus, query, sources)
        backward_kernel(
            self.plan.linear,
            self.layout.t_chunks,
            self.layout.t_rowptr,
            self.layout.t_col,
            t_a,
            self.strength,
            self.coef,
            steps,
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

    def group_tape(self, tape, lo, hi):
        """The part of the flat tape that belongs to tiles lo:hi."""
        return tape.reshape(self.plan.n_tiles, -1)[lo:hi].reshape(-1)

    def tape_views(self, flat, group, steps):
        """(states, gains) of a fully kept stretch, as views of a flat array."""
        n, slots, tile = self.plan.n, self.plan.slots(steps), self.plan.tile
        end = group * slots * n * tile
        states = flat[:end].reshape(group, slots, n, tile)
        if self.plan.linear:
            return states, self.no_gains
        return states, flat[end : end + group * (slots - 1) * n * tile].reshape(group, slots - 1, n, tile)

    @property
    def no_gains(self):
        return np.empty((1, 1, 0, self.plan.tile), self.dtype)

    def checkpoints(self, tape, lo, hi):
        """[G, segments, N, L], the kept states of tiles lo:hi."""
        return self.group_tape(tape, lo, hi).reshape(hi - lo, -1, self.plan.n, self.plan.tile)

    def recall(self, a, drive, tape, lo, hi, s, steps):
        """(states, gains) of segment s of tiles lo:hi: from the tape, or recomputed from its checkpoint."""
        if self.plan.keeps_all:
            return self.tape_views(self.group_tape(tape, lo, hi), hi - lo, steps)
        flat = self.tiles((hi - lo) * self.plan.tape_rows(steps)).reshape(-1)
        states, gains = self.tape_views(flat, hi - lo, steps)
        states[:, 0] = self.checkpoints(tape, lo, hi)[:, s]
        self.forward(a, drive, steps, states, gains)
        return states, gains


def _make_flow(layout, plan, coef, strength, dtype):
    return _Flow(layout, plan, np.ascontiguousarray(coef, dtype), np.dtype(dtype).type(strength))


def flow_forward(
    layout: Layout,
    plan: FlowPlan,
    a: Array,
    x0: Array,
    drive: Array | None,
    strength: float,
    coef: Array,
    *,
    keep: bool = True,
) -> tuple[Array, Array]:
    """Integrate from x0 [N, d] over plan.steps fixed steps.

    a [E] coupling values in CSR order, drive [N, d] or None (zero), coef [S, S] from `step_coefficients`.
    Returns (x_T [N, d], tape): the tape is a flat array of plan.tape_size for `flow_backward`, empty if not keep.
    """
    flow = _make_flow(layout, plan, coef, strength, x0.dtype)
    out = workspace.empty((plan.n, plan.d), x0.dtype)
    tape = workspace.empty((plan.tape_size if keep else 0,), x0.dtype)
    for lo, hi in plan.groups:
        group_drive = flow.tiles(hi - lo)
        flow.pack(drive, lo, group_drive)
        if keep and plan.keeps_all:
            states, gains = flow.tape_views(flow.group_tape(tape, lo, hi), hi - lo, plan.steps)
            flow.pack(x0, lo, states[:, 0])
            end = flow.forward(a, group_drive, plan.steps, states, gains)
        else:
            states, end = flow.tiles(hi - lo, plan.stages + 1), 0
            flow.pack(x0, lo, states[:, 0])
            for s, (first, last) in enumerate(plan.segments):
                states[:, 0] = states[:, end]
                if keep:
                    flow.checkpoints(tape, lo, hi)[:, s] = states[:, 0]
                end = flow.forward(a, group_drive, last - first, states, flow.no_gains)
        flow.unpack(states[:, end], lo, out)
    return out, tape


def flow_backward(
    layout: Layout,
    plan: FlowPlan,
    a: Array,
    drive: Array | None,
    strength: float,
    coef: Array,
    tape: Array,
    grad_out: Array,
) -> tuple[Array, Array, Array, float]:
    """The exact discrete adjoint of `flow_forward`.

    Returns (grad_x0 [N, d], grad_a [E], grad_drive [N, d], grad_strength float).
    """
    flow = _make_flow(layout, plan, coef, strength, grad_out.dtype)
    grad_x0, grad_drive = (workspace.empty((plan.n, plan.d), flow.dtype) for _ in range(2))
    t_a = _taken(a, layout.t_perm)
    dots = workspace.zeros((plan.group, a.size), flow.dtype)
    row_strength = np.zeros((plan.group, plan.n if plan.linear else 0), np.float64)
    for lo, hi in plan.groups:
        group_drive, lam, drive_sum = (flow.tiles(hi - lo) for _ in range(3))
        if not plan.keeps_all:
            flow.pack(drive, lo, group_drive)
        flow.pack(grad_out, lo, lam)
        drive_sum.fill(0)
        for s, (first, last) in reversed(list(enumerate(plan.segments))):
            states, gains = flow.recall(a, group_drive, tape, lo, hi, s, last - first)
            flow.backward(t_a, last - first, states, gains, lam, drive_sum, dots, row_strength)
        flow.unpack(lam, lo, grad_x0)
        flow.unpack(drive_sum, lo, grad_drive)
    grad_a = workspace.empty(a.shape, a.dtype)
    _put_scaled_sum(dots, flow.strength, layout.t_perm, grad_a)
    return grad_x0, grad_a, grad_drive, _strength_gradient(plan, flow.strength, a, grad_a, row_strength)


def _strength_gradient(plan, strength, a, grad_a, row_strength):
    """dL/dstrength: <a, grad_a> / strength, since the interaction is linear in a.

    The linear field also has the diagonal -x_i; there the rows were summed after subtracting it, to avoid cancellation.
    """
    if plan.linear:
        return float(row_strength.sum())
    return float(np.dot(a.astype(np.float64), grad_a) / np.float64(strength)) if strength else math.nan


_WHOLE_STEP = np.ones((1, 1))


def rhs(
    layout: Layout,
    a: Array,
    x: Array,
    drive: Array | None,
    strength: float,
    *,
    linear: bool = False,
    keep: bool = True,
) -> tuple[Array, Array | None]:
    """(f [N, d], gain): the field at x [N, d]. gain [T, N, L] is what `rhs_vjp` needs (None if linear or not keep)."""
    plan = plan_flow(layout.n, x.shape[1], 1, 1, linear=linear, dtype=x.dtype)
    flow = _make_flow(layout, plan, _WHOLE_STEP, strength, x.dtype)
    out = workspace.empty(x.shape, x.dtype)
    gain = None if linear or not keep else workspace.empty((plan.n_tiles, plan.n, plan.tile), x.dtype)
    for lo, hi in plan.groups:
        states, group_drive = flow.tiles(hi - lo, 2), flow.tiles(hi - lo)
        flow.pack(x, lo, states[:, 0])
        flow.pack(drive, lo, group_drive)
        flow.forward(a, group_drive, 1, states, flow.no_gains if gain is None else gain[lo:hi, None], from_zero=True)
        flow.unpack(states[:, 1], lo, out)
    return out, gain


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
    """(grad_x [N, d], grad_a [E], grad_strength) of `rhs`; grad_drive is grad_out. Without gain it is recomputed."""
    if gain is None and not linear:
        _, gain = rhs(layout, a, x, None, strength)
    plan = plan_flow(layout.n, x.shape[1], 1, 1, linear=linear, dtype=x.dtype)
    flow = _make_flow(layout, plan, _WHOLE_STEP, strength, x.dtype)
    grad_x, grad_a = workspace.empty(x.shape, x.dtype), workspace.empty(a.shape, a.dtype)
    t_a = _taken(a, layout.t_perm)
    dots = workspace.zeros((plan.group, a.size), x.dtype)
    row_strength = np.zeros((plan.group, plan.n if linear else 0), np.float64)
    for lo, hi in plan.groups:
        states, lam, drive_sum = flow.tiles(hi - lo, 1), flow.tiles(hi - lo), flow.tiles(hi - lo)
        flow.pack(x, lo, states[:, 0])
        flow.pack(grad_out, lo, lam)
        drive_sum.fill(0)
        flow.backward(
            t_a, 1, states, flow.no_gains if linear else gain[lo:hi, None], lam, drive_sum, dots, row_strength, carry=0
        )
        flow.unpack(lam, lo, grad_x)
    _put_scaled_sum(dots, flow.strength, layout.t_perm, grad_a)
    return grad_x, grad_a, _strength_gradient(plan, flow.strength, a, grad_a, row_strength)
