"""What the machine can do at best, and how near one right-hand side comes."""

from __future__ import annotations

import torch

from benchmarks.timing import once
from benchmarks.workloads import Workload
from kuramotognn.kernels import spmm

SINCOS_FLOPS = 30  # multiplications and additions of both polynomials and the reduction, in float32


def fma_peak(size: int = 2048) -> float:
    """Floating-point operations a second of a dense product on all threads, float32."""
    a, b, out = torch.ones(size, size), torch.ones(size, size), torch.empty(size, size)
    torch.mm(a, b, out=out)
    return 2.0 * size**3 / min(once(lambda: torch.mm(a, b, out=out)) for _ in range(5))


def copy_bandwidth(size: int = 1 << 28) -> float:
    """Bytes read and written a second by a large copy on all threads."""
    source, target = torch.ones(size // 4), torch.empty(size // 4)
    target.copy_(source)
    return 2 * size / min(once(lambda: target.copy_(source)) for _ in range(5))


@torch.no_grad()
def sparse_product(work: Workload) -> float:
    """Seconds of one product ``A [sin X | cos X]``, the part of a right-hand side that reads every neighbour's row.

    The roofline reads each operand once; a right-hand side must read a neighbour's row for every edge.
    """
    rows = torch.cat([work.x.sin(), work.x.cos()], dim=1)
    spmm(work.graph.pattern, work.a, rows)
    return min(once(lambda: spmm(work.graph.pattern, work.a, rows)) for _ in range(3))


def bound(work: Workload, peak: float, bandwidth: float) -> dict[str, float]:
    """The least time of one right-hand side: arithmetic at peak, or its operands once through memory."""
    nodes, edges, d = work.graph.num_nodes, work.graph.num_edges, work.x.size(1)
    flops = edges * d * 4 + nodes * d * (SINCOS_FLOPS + 6)
    traffic = 4 * (3 * nodes * d + 2 * edges + nodes)
    return {"flops": flops, "bytes": traffic, "seconds": max(flops / peak, traffic / bandwidth)}
