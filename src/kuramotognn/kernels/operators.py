"""torch operators from compiled kernels: they trace, compile and check like torch's own.

An operator returns its result, and after it what only its gradient needs. Calls of operators defined in this way cost a
third of those of ``torch.library.custom_op``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

LIBRARY: Any = torch.library.Library("kuramotognn", "DEF")  # type: ignore[no-untyped-call]


def define(schema: str, compute: Callable[..., Any], fake: Callable[..., Any]) -> Callable[..., Any]:
    """The operator of this schema: its kernel for CPUs, and the function that gives the shapes of its results."""
    name = schema.split("(")[0]
    LIBRARY.define(schema)
    LIBRARY.impl(name, compute, "CPU")
    torch.library.register_fake(f"kuramotognn::{name}", fake, lib=LIBRARY)
    operator: Callable[..., Any] = getattr(torch.ops.kuramotognn, name).default
    return operator


def differentiable(
    operator: Callable[..., Any],
    gradient: Callable[..., Sequence[Tensor | None]],
    reference: Callable[..., Tensor],
) -> None:
    """Give an operator, whose tensors come first among its arguments, its gradient.

    ``gradient`` is called with which of the tensors need one, those tensors, what the operator returned after its
    result, the upstream gradient and the other arguments, and returns the gradients of the tensors. ``reference`` gives
    the same result in torch; second derivatives are taken of it.
    """

    class Function(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *inputs: Any) -> Any:
            with torch._C._AutoDispatchBelowAutograd():
                outputs = operator(*inputs)
            kept = outputs[1:] if isinstance(outputs, tuple) else ()
            tensors = [each for each in inputs if isinstance(each, Tensor)]
            ctx.count, ctx.settings = len(tensors), inputs[len(tensors) :]
            ctx.save_for_backward(*tensors, *kept)
            ctx.mark_non_differentiable(*kept)
            ctx.set_materialize_grads(False)
            return outputs

        @staticmethod
        def backward(ctx: Any, *upstream: Tensor | None) -> Any:
            tensors, kept = ctx.saved_tensors[: ctx.count], ctx.saved_tensors[ctx.count :]
            rest = [None] * len(ctx.settings)
            if upstream[0] is None:
                return *(None for _ in tensors), *rest
            if not torch.is_grad_enabled():
                return *gradient(ctx.needs_input_grad, *tensors, *kept, upstream[0], *ctx.settings), *rest
            wanted = [each for each, needed in zip(tensors, ctx.needs_input_grad, strict=False) if needed]
            y = reference(*tensors, *ctx.settings)
            found = iter(torch.autograd.grad(y, wanted, upstream[0], create_graph=True, allow_unused=True))
            return *(next(found) if needed else None for needed in ctx.needs_input_grad[: ctx.count]), *rest

    def with_gradient(*inputs: Any) -> Any:
        if torch.is_grad_enabled():
            return Function.apply(*inputs)  # type: ignore[no-untyped-call]
        with torch._C._AutoDispatchBelowAutograd():
            return operator(*inputs)

    LIBRARY.impl(operator.__name__.split(".")[0], with_gradient, "Autograd")
