"""Integrations by the compiled kernels as an operator with an exact discrete gradient (csrc/flow.h)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from kuramotognn.kernels.flow import reference
from kuramotognn.kernels.library import FlowJob, kernels
from kuramotognn.kernels.memory import pool
from kuramotognn.kernels.operators import define, differentiable
from kuramotognn.kernels.pattern_layout import pattern_of

UNIT = 32  # bytes; columns are filled up to whole units, and tiles are up to three units wide
TILES_AT_WORK = 2  # that the length of a segment allows for; it must not depend on the number of threads


class Plan(NamedTuple):
    """How much of an integration is kept for its gradient; depends on the sizes only, so both directions agree."""

    segment: int  # steps between kept states; all of them: everything is kept
    kept: int  # numbers on the tape

    @classmethod
    def of(cls, x: Tensor, linear: bool, table: Sequence[float], steps: int, memory: int) -> Plan:
        """Keep everything that fits ``memory`` bytes, else the checkpoints that cost the least time."""
        (n, channels), size = x.shape, x.dtype.itemsize
        units, per_step = -(-channels * size // UNIT), math.isqrt(len(table)) * (1 if linear else 2)
        state = n * units * UNIT  # bytes
        if steps * per_step * state <= memory or steps < 4:
            return cls(steps, steps * per_step * state // size)
        # Longer segments cost less time (each begins with the sines of all nodes) and more memory: those of the tiles
        # at work may take a quarter of it. They need the least where they take as much as all checkpoints.
        width = min(units, 3)
        affordable = memory // 4 // (TILES_AT_WORK * per_step * n * width * UNIT)
        frugal = round(math.sqrt(units / width * steps / (TILES_AT_WORK * per_step)))
        segments = max(-(-steps // max(affordable, frugal, 1)), 2)
        segment = -(-steps // segments)
        return cls(segment, -(-steps // segment) * state // size)


def _run(kernel: str, operands: Sequence[Tensor], settings: Sequence[Any], **arrays: Tensor | None) -> None:
    """Run a kernel on (layout, a, x, source, strength), with (linear, only_slope, table, steps, memory)."""
    layout, a, x, source, strength = (tensor.contiguous() for tensor in operands)
    linear, only_slope, table, steps, memory = settings
    assert len(table) <= 64, "the kernels take at most eight stages"
    weights = torch.tensor(table, dtype=torch.float64)
    job = FlowJob(
        layout=layout, table=weights, strength=float(strength), channels=x.size(1), steps=steps,
        stages=math.isqrt(len(table)), segment=Plan.of(x, linear, table, steps, memory).segment,
        is_double=x.dtype == torch.float64, linear=linear, only_slope=only_slope, threads=torch.get_num_threads(),
        a=a, x=x, source=source, **arrays,
    )  # fmt: skip
    scratch = pool.empty(kernels()("flow_scratch", job), torch.uint8)
    job.scratch = scratch.data_ptr()
    kernels()(kernel, job)


def _forward(*inputs: Any) -> tuple[Tensor, Tensor]:
    """The state after the steps (or the slope at ``x``), and the tape for its gradient (empty unless ``keep``)."""
    out, tape = _empty(*inputs, new=lambda x, count: pool.empty(count, x.dtype))
    if out.numel():
        _run("flow_forward", inputs[:5], inputs[5:10], out=out, tape=tape if inputs[10] else None)
    return out, tape


def _empty(*inputs: Any, new: Callable[[Tensor, int], Tensor] = Tensor.new_empty) -> tuple[Tensor, Tensor]:
    x, linear, table, steps, memory, keep = (inputs[place] for place in (2, 5, 7, 8, 9, 10))
    return x.new_empty(x.shape), new(x, Plan.of(x, linear, table, steps, memory).kept if keep else 0)


def _backward(*inputs: Any) -> tuple[Tensor, ...]:
    """Gradients of ``a``, ``x``, ``source`` (none of a slope: it is the upstream one) and ``strength``."""
    gradients, total = _empty_gradients(*inputs), torch.zeros((), dtype=torch.float64)
    grad_a, grad_x, grad_source, _ = gradients
    if not grad_x.numel():
        return grad_a.zero_(), grad_x, grad_source, total.to(grad_a.dtype)
    arrays = {"grad_a": grad_a, "grad_x": grad_x, "grad_source": grad_source if grad_source.numel() else None}
    arrays |= {"tape": inputs[5], "grad": inputs[6].contiguous(), "grad_strength": total}
    _run("flow_backward", inputs[:5], inputs[7:12], **arrays)
    return grad_a, grad_x, grad_source, total.to(grad_a.dtype)


def _empty_gradients(*inputs: Any) -> tuple[Tensor, ...]:
    a, x, strength, only_slope = (inputs[place] for place in (1, 2, 4, 8))
    source = x.new_empty(0 if only_slope else x.shape)
    return a.new_empty(a.shape), x.new_empty(x.shape), source, strength.new_empty(())


SETTINGS = "bool linear, bool only_slope, float[] table, int steps, int memory, bool keep"
OPERANDS = "Tensor layout, Tensor a, Tensor x, Tensor source, Tensor strength"
flow = define(f"flow({OPERANDS}, {SETTINGS}) -> (Tensor, Tensor)", _forward, _empty)
flow_backward = define(
    f"flow_backward({OPERANDS}, Tensor tape, Tensor grad, {SETTINGS}) -> (Tensor, Tensor, Tensor, Tensor)",
    _backward,
    _empty_gradients,
)


def _gradient(_: Sequence[bool], *inputs: Any) -> tuple[Tensor | None, ...]:
    grad, only_slope, keep = inputs[6], inputs[8], inputs[12]
    assert keep, "a flow that was run without keeping its tape has no gradient"
    grad_a, grad_x, grad_source, grad_strength = flow_backward(*inputs)
    return None, grad_a, grad_x, grad if only_slope else grad_source, grad_strength


def _by_torch(layout: Tensor, a: Tensor, x: Tensor, source: Tensor, strength: Tensor, *settings: Any) -> Tensor:
    pattern, (linear, only_slope, table, steps, *_) = pattern_of(layout), settings

    def field(x: Tensor) -> Tensor:
        return reference.velocity(pattern, a, x, source, strength, linear)

    return field(x) if only_slope else reference.flow(field, x, table, steps)


differentiable(flow, _gradient, _by_torch)
