"""One right-hand side and its gradient, on numpy arrays."""

from kuramotognn.kernels.cpu.flow import EdgeSums, for_tiles, taken
from kuramotognn.kernels.cpu.jit import share_rows
from kuramotognn.kernels.cpu.lanes import rows
from kuramotognn.kernels.cpu.layout import Array, Layout
from kuramotognn.kernels.cpu.packing import pack, pack_states, unpack
from kuramotognn.kernels.cpu.plan import plan_flow
from kuramotognn.kernels.cpu.stages import field_adjoint, field_rows, field_show_adjoint, show
from kuramotognn.kernels.cpu.workspace import workspace


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
    gain = None if linear or not keep else workspace.empty((plan.n * plan.columns,), x.dtype)
    drives, states = pack(drive, layout, plan), pack_states(x, layout, plan)
    values, matrix = workspace.empty(drives.shape, x.dtype), (layout.rowptr, layout.col, taken(a, layout.entries))

    def evaluate(number, by_rows):
        tile, share = _Tile(plan, number), share_rows if by_rows else _all_rows
        features, gains = tile.scratch(1 if linear else 2, x.dtype), tile.gains(gain, x.dtype)
        share(show, layout.chunks, False, tile.part(states), tile.part(states), features, gains)
        operands = (*matrix, tile.part(drives), x.dtype.type(strength), features, gains)
        share(field_rows, layout.chunks, gain is not None, *operands, tile.part(values))

    for_tiles(layout, plan, evaluate)
    return unpack(values, layout, plan), gain


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
    strength, matrix = x.dtype.type(strength), (layout.t_rowptr, layout.t_col, taken(a, layout.t_perm))
    states, kappas, sums = (
        pack_states(x, layout, plan),
        pack(grad_out, layout, plan),
        EdgeSums(layout, plan.tiles, a, strength, linear),
    )
    grads = workspace.empty(states.shape, x.dtype)

    def pull_back(number, by_rows):
        tile, share = _Tile(plan, number), share_rows if by_rows else _all_rows
        query, sources = (tile.scratch(1 if linear else 2, x.dtype) for _ in range(2))
        gains, kappa = tile.gains(gain, x.dtype), tile.part(kappas)
        share(field_show_adjoint, layout.t_chunks, tile.part(states), kappa, query, sources, gains)
        operands = (*matrix, strength, kappa, query, sources, gains, *sums.of_tile(number))
        share(field_adjoint, layout.t_chunks, *operands, tile.part(grads))

    for_tiles(layout, plan, pull_back)
    return unpack(grads, layout, plan), *sums.gradients()


class _Tile:
    """Rows of one tile."""

    def __init__(self, plan, number):
        self.plan, self.tile = plan, plan.tiles[number]

    def part(self, numbers):
        """Its rows of an array of all tiles."""
        return rows(self.plan.part(numbers, self.tile), self.tile.width)

    def scratch(self, count, dtype):
        """`count` uninitialised rows per node."""
        return rows(workspace.empty((count * self.plan.n * self.tile.width,), dtype), self.tile.width)

    def gains(self, gain, dtype):
        """Its rows of the gain: none if it is not kept, None for the linear field."""
        if self.plan.linear:
            return None
        return self.scratch(0, dtype) if gain is None else self.part(gain)


def _all_rows(function, bounds, *arguments):
    function(bounds[0], bounds[-1], *arguments)
