"""What the machine can do at best, and how near one right-hand side comes."""

from __future__ import annotations

import numpy as np
import torch

from benchmarks.timing import once
from benchmarks.workloads import Workload
from kuramotognn.kernels.cpu.jit import kernel, share_out
from kuramotognn.kernels.cpu.lanes import fma, lanes, load, splat, store

SINCOS_FLOPS = 34  # multiplications and additions of both polynomials and the reduction, in float32


@kernel
def _fma_chains(rounds, out):
    a, b = splat(np.float32(1.0000001)), splat(np.float32(1e-9))
    x0, x1, x2, x3 = load(out, 0), load(out, 1), load(out, 2), load(out, 3)
    x4, x5, x6, x7 = x0, x1, x2, x3
    for _ in range(rounds):
        x0, x1, x2, x3 = fma(x0, a, b), fma(x1, a, b), fma(x2, a, b), fma(x3, a, b)
        x4, x5, x6, x7 = fma(x4, a, b), fma(x5, a, b), fma(x6, a, b), fma(x7, a, b)
    store(out, 0, x0 + x1 + x2 + x3 + x4 + x5 + x6 + x7)


def fma_peak() -> float:
    """Floating-point operations a second of independent multiply-adds on all threads, float32."""
    threads, rounds = torch.get_num_threads(), 2_000_000
    outs = [np.ones((4, lanes(np.float32)), np.float32) for _ in range(threads)]
    shares = [(rounds, out) for out in outs]
    share_out(_fma_chains, shares)
    seconds = min(once(lambda: share_out(_fma_chains, shares)) for _ in range(5))
    return 2.0 * 8 * lanes(np.float32) * rounds * threads / seconds


def copy_bandwidth(size: int = 1 << 28) -> float:
    """Bytes read and written a second by a large copy on all threads."""
    source, target = torch.ones(size // 4), torch.empty(size // 4)
    target.copy_(source)
    return 2 * size / min(once(lambda: target.copy_(source)) for _ in range(5))


def gather_bandwidth(work: Workload) -> float:
    """Bytes a second that the rows of one tile are gathered with, in the graph's own order: the cache's bandwidth."""
    layout = work.graph.pattern.layout
    tile = np.ones((work.graph.num_nodes, 2, lanes(np.float32)), np.float32)
    out = np.zeros_like(tile)
    threads = torch.get_num_threads()
    shares = [(layout[0].numpy(), layout[1].numpy(), tile, out)] * threads
    share_out(_gather_only, shares)
    seconds = min(once(lambda: share_out(_gather_only, shares)) for _ in range(5))
    return threads * work.graph.num_edges * 128 / seconds


@kernel
def _gather_only(rowptr, col, tile, out):
    for i in range(rowptr.size - 1):
        s, c = load(tile, (i, 0)), load(tile, (i, 1))
        for e in range(rowptr[i], rowptr[i + 1]):
            s, c = s + load(tile, (col[e], 0)), c + load(tile, (col[e], 1))
        store(out, (i, 0), s)
        store(out, (i, 1), c)


def bound(work: Workload, peak: float, bandwidth: float) -> dict[str, float]:
    """The least time of one right-hand side: arithmetic at peak, or its operands once through memory."""
    nodes, edges, d = work.graph.num_nodes, work.graph.num_edges, work.x.size(1)
    flops = edges * d * 4 + nodes * d * (SINCOS_FLOPS + 6)
    traffic = 4 * (3 * nodes * d + 2 * edges + nodes)
    return {"flops": flops, "bytes": traffic, "seconds": max(flops / peak, traffic / bandwidth)}
