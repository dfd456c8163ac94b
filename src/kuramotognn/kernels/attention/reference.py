"""Attention over edges in torch, on any device; differentiable twice."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from kuramotognn.graph import Pattern
from kuramotognn.kernels.sparse.reference import row_normalise
from kuramotognn.typing import EdgeHeads, EdgeWeight


def attention_per_edge(pattern: Pattern, key: Tensor, query: Tensor, weight: EdgeWeight) -> EdgeWeight:
    r"""Attention of keys and queries ``[N, H, d_k]``: scaled dot products, row softmax, mean over heads."""
    scores = torch.einsum("ehk,ehk->eh", pattern.of_row(key), pattern.of_col(query)) / math.sqrt(key.size(-1))
    return row_softmax(pattern, scores, weight).mean(dim=-1)


def row_softmax(pattern: Pattern, scores: EdgeHeads, weight: EdgeWeight) -> EdgeHeads:
    r"""Softmax over the entries of each row: :math:`w_{ij} e^{s_{ij}} / \sum_k w_{ik} e^{s_{ik}}`, per head.

    An edge of weight zero counts as absent, in the gradient too; rows without other edges give zeros.
    """
    present = (weight > 0)[:, None]
    index = pattern.row[:, None].expand_as(scores)
    highest = scores.new_zeros(pattern.num_rows, scores.size(1))
    # The shift cancels in the quotient, so it needs no gradient.
    shown = torch.where(present, scores.detach(), -torch.inf)
    highest.scatter_reduce_(0, index, shown, reduce="amax", include_self=False)
    shifted = torch.where(present, scores - pattern.of_row(highest), 0.0)
    return row_normalise(pattern, torch.where(present, weight[:, None] * torch.exp(shifted), 0.0))
