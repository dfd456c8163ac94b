"""How an integration lies in memory."""

import math
from typing import Any, NamedTuple

import numpy as np

from kuramotognn.kernels.cpu.lanes import lanes

TILES_AT_WORK = 2  # what the length of a segment reckons with; it must not depend on the number of threads


class FlowPlan(NamedTuple):
    """How an integration is laid out in memory; a pure function of the sizes, so both directions agree on it."""

    n: int
    d: int
    steps: int
    stages: int
    segment: int  # steps between kept states; >= steps keeps everything
    tile: int  # columns per tile, L
    linear: bool

    @property
    def keeps_all(self) -> bool:
        """Whether the tape holds every stage, not checkpoints."""
        return self.segment >= self.steps

    @property
    def n_tiles(self):
        """Tiles that cover the columns."""
        return -(-self.d // self.tile)

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
    """FlowPlan that keeps everything when it fits `memory` bytes (None: always), else the cheapest checkpoints."""
    full = FlowPlan(n, d, steps, stages, max(steps, 1), lanes(dtype), linear)
    if memory is None or full.tape_size * np.dtype(dtype).itemsize <= memory or steps < 4:
        return full
    # The checkpoints of all tiles and the recomputed segment of a few: least memory where the two are equal.
    segment = max(1, round(math.sqrt(full.n_tiles * steps / (TILES_AT_WORK * full.tape_rows(1)))))
    return full._replace(segment=min(segment, steps - 1))
