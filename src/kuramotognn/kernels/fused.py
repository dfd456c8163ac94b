"""The fused CPU kernels as torch operators with gradients: they compile, trace and check like torch's own.

A pattern travels as the tensors of its layout (:attr:`kuramotognn.graph.Pattern.layout`). Operators come in pairs,
forward and ``_backward``; the second has no gradient of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from kuramotognn.graph import LayoutTensors
from kuramotognn.kernels import cpu

LAYOUT = len(cpu.Layout._fields)
Operator: TypeAlias = torch._library.custom_ops.CustomOpDef
_direct: dict[Operator, Callable[..., Any]] = {}
"""What each operator calls."""
Call: TypeAlias = Callable[[Operator], Callable[..., Any]]
"""How to call an operator: as it is, or what is behind it."""


def _array(tensor: Tensor) -> np.ndarray[Any, Any]:
    return (tensor.detach() if tensor.requires_grad else tensor).contiguous().numpy()


def _layout(layout: Sequence[Tensor]) -> cpu.Layout:
    """The layout for numba."""
    return layout.arrays if isinstance(layout, LayoutTensors) else LayoutTensors(layout).arrays


def _save(ctx: Any, layout: Sequence[Tensor], *tensors: Tensor) -> None:
    """Keep a layout and tensors for the gradient; a layout that nothing traces is kept as it is."""
    ctx.layout = layout if isinstance(layout, LayoutTensors) else None
    ctx.save_for_backward(*(() if ctx.layout else layout), *tensors)


def _saved(ctx: Any) -> tuple[Sequence[Tensor], tuple[Tensor, ...]]:
    """The layout and the tensors."""
    if ctx.layout:
        return ctx.layout, ctx.saved_tensors
    return ctx.saved_tensors[:LAYOUT], ctx.saved_tensors[LAYOUT:]


def _operator(function: Callable[..., Any]) -> Operator:
    """A function of tensors as an operator of torch, with its name."""
    name = f"kuramotognn::{function.__name__.lstrip('_')}"
    op = torch.library.custom_op(name, function, mutates_args=(), device_types="cpu")
    _direct[op] = function
    return op


def _with_gradient(
    op: Operator, setup_context: Callable[..., None], gradient: Callable[..., tuple[Any, ...]]
) -> Callable[..., Any]:
    """Give an operator its gradient, and call both the short way where nothing is compiled.

    Dispatching a custom operator costs 0.2 ms, as much as some of them take; an autograd function costs a tenth.
    ``gradient`` is told how to call the operators that it needs.
    """
    op.register_autograd(lambda ctx, *grads: gradient(ctx, lambda other: other, *grads), setup_context=setup_context)
    compute = _direct[op]

    class Eager(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *inputs: Any) -> Any:
            output = compute(*inputs)
            setup_context(ctx, inputs, output)
            return output

        @staticmethod
        @once_differentiable
        def backward(ctx: Any, *grads: Tensor | None) -> tuple[Any, ...]:
            return None, *gradient(ctx, _direct.__getitem__, *grads)[1:]

    def call(layout: Sequence[Tensor], *inputs: Any) -> Any:
        if torch.compiler.is_compiling():
            return op([*layout], *inputs)  # Torch knows lists, not classes made from them.
        if not torch.is_grad_enabled():
            return compute(layout, *inputs)
        return Eager.apply(layout, *inputs)  # type: ignore[no-untyped-call]

    return call


# One right-hand side: drive + strength * interaction.


def _field(
    layout: Sequence[Tensor], a: Tensor, x: Tensor, drive: Tensor, strength: Tensor, linear: bool
) -> tuple[Tensor, Tensor]:
    """The field at ``x`` ``[N, d]``, and the gain that its gradient needs."""
    value, gain = cpu.rhs(_layout(layout), _array(a), _array(x), _array(drive), float(strength), linear=linear)
    return torch.from_numpy(value), x.new_empty(0) if gain is None else torch.from_numpy(gain)


field_op = _operator(_field)


@field_op.register_fake
def _(*inputs: Any) -> tuple[Tensor, Tensor]:
    _, _, x, _, _, linear = inputs
    plan = cpu.plan_flow(x.size(0), x.size(1), 1, 1, dtype=_numpy_type(x.dtype))
    gain = x.new_empty(0 if linear else x.size(0) * plan.columns)
    return torch.empty_like(x, memory_format=torch.contiguous_format), gain


@_operator
def field_backward(
    layout: Sequence[Tensor], a: Tensor, x: Tensor, strength: Tensor, gain: Tensor, grad: Tensor, linear: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of ``x``, ``a`` and ``strength``."""
    kept = None if linear else _array(gain)
    grad_x, grad_a, grad_strength = cpu.rhs_vjp(
        _layout(layout), _array(a), _array(x), float(strength), _array(grad), linear=linear, gain=kept
    )
    return torch.from_numpy(grad_x), torch.from_numpy(grad_a), strength.new_full((), grad_strength)


@field_backward.register_fake
def _(layout: Sequence[Tensor], a: Tensor, x: Tensor, strength: Tensor, *_: Any) -> tuple[Tensor, Tensor, Tensor]:
    return torch.empty_like(x, memory_format=torch.contiguous_format), torch.empty_like(a), strength.new_empty(())


def _field_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    layout, a, x, _, strength, ctx.linear = inputs
    _save(ctx, layout, a, x, strength, output[1])
    ctx.mark_non_differentiable(output[1])
    ctx.set_materialize_grads(False)


def _field_gradient(ctx: Any, call: Call, grad: Tensor | None, _: Tensor | None) -> tuple[Any, ...]:
    if grad is None:
        return [None] * LAYOUT, None, None, None, None, None
    layout, (a, x, strength, gain) = _saved(ctx)
    grad_x, grad_a, grad_strength = call(field_backward)(layout, a, x, strength, gain, grad, ctx.linear)
    return [None] * LAYOUT, grad_a, grad_x, grad, grad_strength, None


field = _with_gradient(field_op, _field_context, _field_gradient)


# A whole fixed-step integration.


def _flow(
    layout: Sequence[Tensor],
    a: Tensor,
    x0: Tensor,
    drive: Tensor,
    strength: Tensor,
    linear: bool,
    coefficients: Sequence[float],
    steps: int,
    memory: int,
    keep: bool,
) -> tuple[Tensor, Tensor]:
    """The state after ``steps`` steps, and the tape that its gradient needs (empty unless ``keep``)."""
    plan = _plan(x0, coefficients, steps, memory, linear)
    end, tape = cpu.flow_forward(
        _layout(layout), plan, _array(a), _array(x0), _array(drive), float(strength), coefficients, keep=keep
    )
    return torch.from_numpy(end), torch.from_numpy(tape)


flow_op = _operator(_flow)


@flow_op.register_fake
def _(*inputs: Any) -> tuple[Tensor, Tensor]:
    _, _, x0, _, _, linear, coefficients, steps, memory, keep = inputs
    size = _plan(x0, coefficients, steps, memory, linear).tape_size if keep else 0
    return torch.empty_like(x0, memory_format=torch.contiguous_format), x0.new_empty(size)


@_operator
def flow_backward(
    layout: Sequence[Tensor],
    a: Tensor,
    drive: Tensor,
    strength: Tensor,
    linear: bool,
    coefficients: Sequence[float],
    steps: int,
    memory: int,
    tape: Tensor,
    grad: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Gradients of ``a``, ``x0``, ``drive`` and ``strength``."""
    plan = _plan(grad, coefficients, steps, memory, linear)
    grad_x0, grad_a, grad_drive, grad_strength = cpu.flow_backward(
        _layout(layout), plan, _array(a), _array(drive), float(strength), coefficients, _array(tape), _array(grad)
    )
    return (
        torch.from_numpy(grad_a),
        torch.from_numpy(grad_x0),
        torch.from_numpy(grad_drive),
        strength.new_full((), grad_strength),
    )


@flow_backward.register_fake
def _(layout: Sequence[Tensor], a: Tensor, drive: Tensor, strength: Tensor, *rest: Any) -> tuple[Tensor, ...]:
    *_, grad = rest
    state = torch.empty_like(grad, memory_format=torch.contiguous_format)
    return torch.empty_like(a), state, torch.empty_like(state), strength.new_empty(())


def _flow_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    layout, a, _, drive, strength, *ctx.settings, keep = inputs
    ctx.differentiable = keep
    _save(ctx, layout, a, drive, strength, output[1])
    ctx.mark_non_differentiable(output[1])
    ctx.set_materialize_grads(False)


def _flow_gradient(ctx: Any, call: Call, grad: Tensor | None, _: Tensor | None) -> tuple[Any, ...]:
    rest = [None] * 5
    if grad is None:
        return [None] * LAYOUT, None, None, None, None, *rest
    assert ctx.differentiable, "a flow that was run without keeping its tape has no gradient"
    layout, (a, drive, strength, tape) = _saved(ctx)
    gradients = call(flow_backward)(layout, a, drive, strength, *ctx.settings, tape, grad)
    return [None] * LAYOUT, *gradients, *rest


flow = _with_gradient(flow_op, _flow_context, _flow_gradient)


# Attention over the edges, with the projections on both sides of it.


def _attention(
    layout: Sequence[Tensor], x: Tensor, key: Tensor, query: Tensor, bias: Tensor, weight: Tensor, heads: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Mean attention ``[E]`` of states ``[N, d]``; keys and queries ``[N, 2 H d_k]`` and shares, for its gradient."""
    a, projected, shares = cpu.attention(
        _layout(layout), _array(x), _array(key), _array(query), _array(bias), _array(weight), heads
    )
    return torch.from_numpy(a), torch.from_numpy(projected), torch.from_numpy(shares)


attention_op = _operator(_attention)


@attention_op.register_fake
def _(*inputs: Any) -> tuple[Tensor, Tensor, Tensor]:
    _, x, key, _, _, weight, heads = inputs
    projected = x.new_empty(x.size(0), 2 * key.size(0))
    return torch.empty_like(weight), projected, x.new_empty(weight.size(0), heads)


@_operator
def attention_backward(
    layout: Sequence[Tensor],
    x: Tensor,
    key: Tensor,
    query: Tensor,
    weight: Tensor,
    projected: Tensor,
    shares: Tensor,
    grad: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Gradients of ``x``, of ``key`` and ``query`` in one piece, of ``bias`` and of ``weight``."""
    operands = (_array(tensor) for tensor in (x, key, query, weight, projected, shares, grad))
    grad_x, grad_both, grad_bias, grad_weight = cpu.attention_vjp(_layout(layout), *operands)
    return (
        torch.from_numpy(grad_x),
        torch.from_numpy(grad_both),
        torch.from_numpy(grad_bias),
        torch.from_numpy(grad_weight),
    )


@attention_backward.register_fake
def _(
    layout: Sequence[Tensor], x: Tensor, key: Tensor, query: Tensor, weight: Tensor, *_: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    grad_x = torch.empty_like(x, memory_format=torch.contiguous_format)
    grad_both = key.new_empty(2 * key.size(0), key.size(1))
    return grad_x, grad_both, key.new_empty(key.size(0)), torch.empty_like(weight)


def _attention_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor, Tensor]) -> None:
    layout, x, key, query, _, weight, _ = inputs
    _save(ctx, layout, x, key, query, weight, *output[1:])
    ctx.mark_non_differentiable(*output[1:])
    ctx.set_materialize_grads(False)


def _attention_gradient(ctx: Any, call: Call, grad: Tensor | None, *_: Tensor | None) -> tuple[Any, ...]:
    if grad is None:
        return [None] * LAYOUT, *[None] * 6
    layout, saved = _saved(ctx)
    grad_x, grad_both, grad_bias, grad_weight = call(attention_backward)(layout, *saved, grad)
    return [None] * LAYOUT, grad_x, *grad_both.chunk(2), grad_bias, grad_weight, None


attention = _with_gradient(attention_op, _attention_context, _attention_gradient)


# Sparse times dense, for sparse features.


def _spmm(layout: Sequence[Tensor], values: Tensor, dense: Tensor) -> Tensor:
    """``[rows, columns] @ [columns, d]`` with the stored ``values`` ``[E]``."""
    return torch.from_numpy(cpu.spmm(_layout(layout), _array(values), _array(dense)))


spmm_op = _operator(_spmm)


@spmm_op.register_fake
def _(layout: Sequence[Tensor], values: Tensor, dense: Tensor) -> Tensor:
    return dense.new_empty(layout[0].size(0) - 1, dense.size(1))


@_operator
def spmm_transposed(layout: Sequence[Tensor], values: Tensor, dense: Tensor) -> Tensor:
    """``[rows, columns].T @ [rows, d]``."""
    return torch.from_numpy(cpu.spmm_transposed(_layout(layout), _array(values), _array(dense)))


@spmm_transposed.register_fake
def _(layout: Sequence[Tensor], values: Tensor, dense: Tensor) -> Tensor:
    return dense.new_empty(layout[2].size(0) - 1, dense.size(1))


@_operator
def sampled_product(layout: Sequence[Tensor], left: Tensor, right: Tensor) -> Tensor:
    """``<left_i, right_j>`` for every stored entry ``(i, j)``."""
    return torch.from_numpy(cpu.sampled_product(_layout(layout), _array(left), _array(right)))


@sampled_product.register_fake
def _(layout: Sequence[Tensor], left: Tensor, right: Tensor) -> Tensor:
    return left.new_empty(layout[cpu.Layout._fields.index("entries")].size(0))


def _spmm_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    layout, values, dense = inputs
    _save(ctx, layout, values, dense)


def _spmm_gradient(ctx: Any, call: Call, grad: Tensor) -> tuple[Any, ...]:
    layout, (values, dense) = _saved(ctx)
    grad_values = call(sampled_product)(layout, grad, dense) if ctx.needs_input_grad[1] else None
    grad_dense = call(spmm_transposed)(layout, values, grad) if ctx.needs_input_grad[2] else None
    return [None] * LAYOUT, grad_values, grad_dense


spmm = _with_gradient(spmm_op, _spmm_context, _spmm_gradient)


# Sparse features through an affine map: the weight stays as torch has it, and the bias needs no pass of its own.


def _affine(layout: Sequence[Tensor], values: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """``X @ weight.T + bias`` for sparse ``X`` with the stored ``values`` ``[E]`` and ``weight`` ``[d, columns]``."""
    start = None if bias is None else _array(bias)
    return torch.from_numpy(cpu.affine(_layout(layout), _array(values), _array(weight), start))


affine_op = _operator(_affine)


@affine_op.register_fake
def _(layout: Sequence[Tensor], values: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    return weight.new_empty(layout[0].size(0) - 1, weight.size(0))


@_operator
def affine_backward(
    layout: Sequence[Tensor], values: Tensor, weight: Tensor, grad: Tensor, of_values: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of ``values`` (empty unless asked for), ``weight`` and bias."""
    arrays, upstream = _layout(layout), _array(grad)
    grad_weight, grad_bias = cpu.affine_vjp(arrays, _array(values), upstream)
    grad_values = values.new_empty(0)
    if of_values:
        columns = cpu.transposed(_array(weight))
        grad_values = torch.from_numpy(cpu.sampled_product(arrays, upstream, columns))
    return grad_values, torch.from_numpy(grad_weight), torch.from_numpy(grad_bias)


@affine_backward.register_fake
def _(
    layout: Sequence[Tensor], values: Tensor, weight: Tensor, grad: Tensor, of_values: bool
) -> tuple[Tensor, Tensor, Tensor]:
    grad_values = torch.empty_like(values) if of_values else values.new_empty(0)
    return grad_values, torch.empty_like(weight, memory_format=torch.contiguous_format), grad.new_empty(grad.size(1))


def _affine_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    layout, values, weight, bias = inputs
    ctx.has_bias = bias is not None
    _save(ctx, layout, values, weight)


def _affine_gradient(ctx: Any, call: Call, grad: Tensor) -> tuple[Any, ...]:
    layout, (values, weight) = _saved(ctx)
    of_values = ctx.needs_input_grad[1]
    grad_values, grad_weight, grad_bias = call(affine_backward)(layout, values, weight, grad, of_values)
    return (
        [None] * LAYOUT,
        grad_values if of_values else None,
        grad_weight,
        grad_bias if ctx.has_bias else None,
    )


affine = _with_gradient(affine_op, _affine_context, _affine_gradient)


# Dropout.


def thin(x: Tensor, p: float) -> Tensor:
    """Dropout, its coins seeded by torch's generator."""
    key = int(torch.randint(-(2**63), 2**63 - 1, ()).item()) % 2**64
    if not x.requires_grad:
        return torch.from_numpy(cpu.thinned(key, p, _array(x)))
    return x * torch.from_numpy(cpu.kept_or_not(key, p, tuple(x.shape), np.dtype(_numpy_type(x.dtype))))


def _plan(x: Tensor, coefficients: Sequence[float], steps: int, memory: int, linear: bool) -> cpu.FlowPlan:
    kind, stages = _numpy_type(x.dtype), math.isqrt(len(coefficients))
    return cpu.plan_flow(x.size(0), x.size(1), steps, stages, linear=linear, dtype=kind, memory=memory)


def _numpy_type(dtype: torch.dtype) -> type[np.floating[Any]]:
    return np.float32 if dtype == torch.float32 else np.float64
