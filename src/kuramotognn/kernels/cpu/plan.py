"""How an integration lies in memory."""

import math
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from kuramotognn.kernels.cpu.lanes import unit

TILES_AT_WORK = 2  # what the length of a segment reckons with; it must not depend on the number of threads


class Tile(NamedTuple):
    """Columns that are integrated together."""

    start: int
    width: int


class Cut(NamedTuple):
    """How columns are cut into tiles, wide ones first; members of numbers only, for kernels to see."""

    triples: int  # tiles of three units
    doubles: int
    singles: int
    unit: int  # columns per unit, half a cache line

    @classmethod
    def of(cls, columns: int, unit: int) -> "Cut":
        """Two threads (or four) find the same work: twice the same tiles, and what remains.

        Tiles are two units wide. A row of three takes less time than a row of two and another of one.
        """
        units = columns // unit
        share = units // 2
        triples = 2 * (share % 2) if share > 1 else 0
        doubles = 2 * ((share - 3 * triples // 2) // 2)
        return cls(triples, doubles, units - 3 * triples - 2 * doubles, unit)

    @property
    def tiles(self) -> list[Tile]:
        """All of them, in order."""
        units = [3] * self.triples + [2] * self.doubles + [1] * self.singles
        starts = accumulate(units, initial=0)
        return [Tile(self.unit * start, self.unit * width) for start, width in zip(starts, units, strict=False)]

    @property
    def count(self) -> int:
        """How many tiles there are."""
        return self.triples + self.doubles + self.singles

    @property
    def widest(self) -> int:
        """Columns of the widest tile."""
        return self.unit * (3 if self.triples else 2 if self.doubles else 1)


class FlowPlan(NamedTuple):
    """How an integration is laid out in memory; a pure function of the sizes, so both directions agree on it."""

    n: int
    d: int
    steps: int
    stages: int
    segment: int  # steps between kept states; >= steps keeps everything
    unit: int  # columns per unit
    linear: bool

    @property
    def keeps_all(self) -> bool:
        """Whether the tape holds every stage, not checkpoints."""
        return self.segment >= self.steps

    @property
    def columns(self) -> int:
        """Columns, with those that fill the last unit."""
        return -(-self.d // self.unit) * self.unit

    @property
    def cut(self) -> Cut:
        """How the columns are cut into tiles."""
        return Cut.of(self.columns, self.unit)

    def tape_rows(self, steps):
        """Numbers per node and column that the adjoint of `steps` steps needs: states, and gains for kuramoto."""
        return steps * self.stages * self.planes

    @property
    def planes(self) -> int:
        """What neighbours see of a state: sine and cosine, or itself."""
        return 1 if self.linear else 2

    @property
    def forward_rows(self) -> int:
        """Scratch rows per node of a tile on its way forward: features twice, and slopes between stages."""
        return 2 * self.planes + self.stages - 1

    @property
    def backward_rows(self) -> int:
        """Scratch rows per node on the way back: query, sources twice, mus; with checkpoints, a segment's tape.

        A segment is recomputed in the room of the former, which its state and `forward_rows` never exceed.
        """
        again = 0 if self.keeps_all else self.tape_rows(self.segment)
        return 3 * self.planes + self.stages - 1 + again

    @property
    def segments(self):
        """Ranges of steps between kept states."""
        return [(lo, min(lo + self.segment, self.steps)) for lo in range(0, self.steps, max(self.segment, 1))]

    @property
    def tape_size(self) -> int:
        """Elements of the flat tape that `flow_forward` returns."""
        return self.kept * self.n * self.columns

    @property
    def kept(self) -> int:
        """Numbers per node and column on the tape."""
        return self.tape_rows(self.steps) if self.keeps_all else len(self.segments)


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
    full = FlowPlan(n, d, steps, stages, max(steps, 1), unit(dtype), linear)
    if memory is None or full.tape_size * np.dtype(dtype).itemsize <= memory or steps < 4:
        return full
    # Longer segments cost less time (each begins with the features of all nodes) and more memory: those of the tiles at
    # work may take a quarter of it. Least memory is needed where they take as much as the checkpoints of all tiles.
    row_bytes = full.tape_rows(1) * full.n * full.cut.widest * np.dtype(dtype).itemsize
    affordable = memory // 4 // (TILES_AT_WORK * row_bytes)
    frugal = round(math.sqrt(full.cut.count * steps / (TILES_AT_WORK * full.tape_rows(1))))
    segments = -(-steps // max(affordable, frugal, 1))
    return full._replace(segment=-(-steps // max(segments, 2)))
