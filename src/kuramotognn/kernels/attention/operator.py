"""Edge attention by the compiled kernels as an operator with a gradient (csrc/attention.h)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from kuramotognn.checks import check_shape
from kuramotognn.graph import Pattern
from kuramotognn.kernels.attention import reference
from kuramotognn.kernels.backend import runs_fused, widened
from kuramotognn.kernels.library import AttentionJob, kernels
from kuramotognn.kernels.operators import define, differentiable
from kuramotognn.kernels.pattern_layout import fits, layout, pattern_of
from kuramotognn.typing import EdgeWeight, Nodes


def attention(
    pattern: Pattern, x: Nodes, key: Tensor, query: Tensor, bias: Tensor, weight: EdgeWeight, heads: int
) -> EdgeWeight:
    r"""Scaled dot-product attention over each row's entries, averaged over heads.

    Args:
        pattern: the edges; row ``i`` has the neighbours ``j`` of node ``i``.
        x: ``[N, d]`` states.
        key: ``[H · d_k, d]`` makes the keys of the rows.
        query: ``[H · d_k, d]`` makes the queries of the columns.
        bias: ``[H · d_k]`` of the keys; one of the queries would shift all scores of a row alike.
        weight: ``[E]`` non-negative factors of the exponentials; an edge of weight zero is absent.
        heads: the number ``H``.
    """
    check_shape("the states", x, (pattern.num_rows, key.size(1)))
    check_shape("the query", query, tuple(key.shape))
    check_shape("the bias", bias, tuple(key.shape[:1]))
    check_shape("weights", weight, (pattern.num_entries,))
    return projected_attention(pattern, F.linear(x, key, bias), F.linear(x, query), weight, heads)


def projected_attention(pattern: Pattern, keys: Nodes, queries: Nodes, weight: EdgeWeight, heads: int) -> EdgeWeight:
    """:func:`attention` of keys and queries ``[N, H · d_k]``."""
    keys, queries = widened(keys), widened(queries)
    kind, weight = weight.dtype, widened(weight)
    if keys.dtype == queries.dtype == weight.dtype and runs_fused(keys) and fits(pattern):
        a: EdgeWeight = edge_attention(layout(pattern), keys, queries, weight, heads)[0]
    else:
        with torch.autocast(keys.device.type, enabled=False):
            a = _by_torch(pattern, keys, queries, weight, heads)
    return a.to(kind)


def _by_torch(pattern: Pattern, keys: Tensor, queries: Tensor, weight: EdgeWeight, heads: int) -> EdgeWeight:
    shape = (keys.size(0), heads, keys.size(1) // heads)
    return reference.attention_per_edge(pattern, keys.view(shape), queries.view(shape), weight)


def _run(kernel: str, layout: Tensor, operands: Sequence[Tensor], heads: int, **arrays: Tensor) -> None:
    arrays |= dict(zip(("keys", "queries", "weight"), (tensor.contiguous() for tensor in operands), strict=True))
    keys, threads = operands[0], torch.get_num_threads()
    sizes = {"heads": heads, "width": keys.size(1) // heads, "is_double": keys.dtype == torch.float64}
    kernels()(kernel, AttentionJob(layout=layout, threads=threads, **sizes, **arrays))


def _forward(layout: Tensor, *operands: Any) -> tuple[Tensor, Tensor]:
    """The attention ``[E]``, and the share of every head ``[H, E]`` for its gradient."""
    a, shares = _empty(layout, *operands)
    _run("attention_forward", layout, operands[:3], operands[3], a=a, shares=shares)
    return a, shares


def _empty(layout: Tensor, keys: Tensor, queries: Tensor, weight: Tensor, heads: int) -> tuple[Tensor, Tensor]:
    return weight.new_empty(weight.shape), weight.new_empty(heads, weight.size(0))


def _backward(layout: Tensor, *operands: Any) -> tuple[Tensor, ...]:
    """Gradients of keys, queries and weight."""
    (shares, grad), gradients = operands[3:5], _empty_gradients(layout, *operands)
    arrays = dict(zip(("grad_keys", "grad_queries", "grad_weight"), gradients, strict=True))
    arrays |= {"shares": shares, "grad_a": grad.contiguous(), "scratch": torch.empty_like(shares)}
    _run("attention_backward", layout, operands[:3], operands[5], **arrays)
    return gradients


def _empty_gradients(layout: Tensor, *operands: Any) -> tuple[Tensor, ...]:
    return tuple(tensor.new_empty(tensor.shape) for tensor in operands[:3])


OPERANDS = "Tensor layout, Tensor keys, Tensor queries, Tensor weight"
edge_attention = define(f"edge_attention({OPERANDS}, int heads) -> (Tensor, Tensor)", _forward, _empty)
edge_attention_backward = define(
    f"edge_attention_backward({OPERANDS}, Tensor shares, Tensor grad, int heads) -> (Tensor, Tensor, Tensor)",
    _backward,
    _empty_gradients,
)
differentiable(
    edge_attention,
    lambda needed, *inputs: (None, *edge_attention_backward(*inputs)),
    lambda layout, *operands: _by_torch(pattern_of(layout), *operands),
)
