"""What the machine can do at best, and how near one right-hand side comes."""

from __future__ import annotations

import numpy as np
import torch

from benchmarks.timing import once
from benchmarks.workloads import Workload
from kuramotognn.kernels.cpu import AHEAD, plan_flow
from kuramotognn.kernels.cpu.flow import in_lanes, widths
from kuramotognn.kernels.cpu.jit import inner, kernel, part
from kuramotognn.kernels.cpu.lanes import fma, rows, splat
from kuramotognn.kernels.cpu.memory import ahead, at, pointer, prefetch, put, rows_from
from kuramotognn.kernels.cpu.team import share, team_for

SINCOS_FLOPS = 30  # multiplications and additions of both polynomials and the reduction, in float32
WIDTH = 16  # numbers of a row that the microbenchmarks work on: a cache line
CHAINS = 6  # Two vector registers each where they hold 8 numbers: enough to hide the latency, few enough not to spill.


@inner
def _fma_chains(number, worker, rounds, out):
    items = ahead(pointer(out), CHAINS * number)
    a, b = splat(items, 1.0000001), splat(items, 1e-9)
    x0, x1, x2, x3, x4, x5 = at(items, 0), at(items, 1), at(items, 2), at(items, 3), at(items, 4), at(items, 5)
    for _ in range(rounds):
        x0, x1, x2 = fma(x0, a, b), fma(x1, a, b), fma(x2, a, b)
        x3, x4, x5 = fma(x3, a, b), fma(x4, a, b), fma(x5, a, b)
    put(items, 0, x0 + x1 + x2 + x3 + x4 + x5)


@kernel
def _fma_on_all(team, *operands):
    share(team, team.threads, _fma_chains, operands)


def fma_peak() -> float:
    """Floating-point operations a second of independent multiply-adds on all threads, float32."""
    threads, rounds = torch.get_num_threads(), 2_000_000
    out = rows(np.ones((threads, CHAINS, WIDTH), np.float32), WIDTH)
    _fma_on_all(team_for(), rounds, out)
    seconds = min(once(lambda: _fma_on_all(team_for(), rounds, out)) for _ in range(5))
    return 2.0 * CHAINS * WIDTH * rounds * threads / seconds


def copy_bandwidth(size: int = 1 << 28) -> float:
    """Bytes read and written a second by a large copy on all threads."""
    source, target = torch.ones(size // 4), torch.empty(size // 4)
    target.copy_(source)
    return 2 * size / min(once(lambda: target.copy_(source)) for _ in range(5))


@part
def _move(n, sweeps, rowptr, entries, features, x, constant):
    """The reads and writes of a flow's steps, with additions for arithmetic and no trigonometry."""
    for sweep in range(sweeps):
        side = sweep % 2
        seen, shown = ahead(features, 2 * n * side), ahead(features, 2 * n * (1 - side))
        for i in range(n):
            s, c = at(seen, 2 * i), at(seen, 2 * i + 1)
            for e in range(rowptr[i], rowptr[i + 1]):
                prefetch(seen, 2 * at(entries, e + AHEAD), 2)
                j = at(entries, e)
                s, c = s + at(seen, 2 * j), c + at(seen, 2 * j + 1)
            put(x, n * (1 - side) + i, at(x, n * side + i) + at(constant, i))
            put(shown, 2 * i, s)
            put(shown, 2 * i + 1, c)


@in_lanes
@part
def _move_columns(number, start, width, room, n, sweeps, rowptr, col, features, states, drive):
    all_rows = rows_from(pointer(features), 4 * n * start, width), rows_from(pointer(states), 2 * n * start, width)
    _move(n, sweeps, rowptr, pointer(col), *all_rows, rows_from(pointer(drive), n * start, width))


@kernel
def _move_tiles(team, tiles, *operands):
    share(team, tiles, _move_columns, operands)


def moving(work: Workload, sweeps: int) -> float:
    """Seconds to move the rows of one step through the caches, without its arithmetic, tiles and threads as in a flow.

    The roofline reads each operand once; a step must read a neighbour's row for every edge.
    """
    rowptr, col = (tensor.numpy() for tensor in work.graph.pattern.flow_layout[:2])
    plan = plan_flow(work.graph.num_nodes, work.x.size(1), sweeps, 1)
    columns = tuple(np.zeros(count * plan.n * plan.columns, np.float32) for count in (4, 2, 1))
    team, kind = team_for(), np.dtype(np.float32)
    shape = (plan.cut, *widths(plan.cut, kind), np.empty((team.threads, 0), kind), plan.n, sweeps, rowptr, col)
    operands = (team, plan.cut.count, *shape, *columns)
    _move_tiles(*operands)
    return min(once(lambda: _move_tiles(*operands)) for _ in range(3)) / sweeps


def bound(work: Workload, peak: float, bandwidth: float) -> dict[str, float]:
    """The least time of one right-hand side: arithmetic at peak, or its operands once through memory."""
    nodes, edges, d = work.graph.num_nodes, work.graph.num_edges, work.x.size(1)
    flops = edges * d * 4 + nodes * d * (SINCOS_FLOPS + 6)
    traffic = 4 * (3 * nodes * d + 2 * edges + nodes)
    return {"flops": flops, "bytes": traffic, "seconds": max(flops / peak, traffic / bandwidth)}
