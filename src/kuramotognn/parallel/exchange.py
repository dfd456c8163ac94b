"""What processes send each other, with gradients: every exchange has its reverse as its gradient.

Conventions. A tensor is *whole* where every process has the same one, *split* where each has a part of it, and a
*summand* where the sum over the processes counts. A loss is whole; the gradients of parameters are summands until
:func:`with_summed_gradients` adds them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from kuramotognn.typing import Index, Nodes


class Ranks:
    """The processes of a group and this one's number among them.

    Attributes:
        group: torch's process group; the default one for None.
        rank: number of this process, from 0.
        size: number of processes.
    """

    def __init__(self, group: dist.ProcessGroup | None = None) -> None:
        self.group = group
        self.rank, self.size = dist.get_rank(group), dist.get_world_size(group)

    def bounds(self, count: int) -> list[int]:
        """Boundaries of nearly equal ranges of ``count`` things, one range a rank."""
        return [count * rank // self.size for rank in range(self.size + 1)]

    def exchange(self, parts: Sequence[Tensor], shapes: Sequence[Sequence[int]]) -> list[Tensor]:
        """Send each rank its part; the parts that come from the ranks have these shapes."""
        sent = torch.cat([part.reshape(-1) for part in parts])
        sizes = [torch.Size(shape).numel() for shape in shapes]
        received = sent.new_empty(sum(sizes))
        dist.all_to_all_single(received, sent, sizes, [part.numel() for part in parts], group=self.group)
        found = received.split(sizes)  # type: ignore[no-untyped-call]
        return [part.view(*shape) for part, shape in zip(found, shapes, strict=True)]

    def sum(self, x: Tensor) -> Tensor:
        """The sum of the ranks' tensors, in a new tensor."""
        total = x.detach().clone(memory_format=torch.contiguous_format)
        dist.all_reduce(total, group=self.group)
        return total

    def gather(self, own: Tensor, counts: Sequence[int]) -> list[Tensor]:
        """The tensors ``[counts[r], ...]`` of all ranks."""
        padded = own.new_zeros(max(counts), *own.shape[1:])
        padded[: own.size(0)] = own
        found = [torch.empty_like(padded) for _ in counts]
        dist.all_gather(found, padded, group=self.group)
        return [each[:count] for each, count in zip(found, counts, strict=True)]

    def objects(self, own: Any) -> list[Any]:
        """An object of every rank."""
        found = [None] * self.size
        dist.all_gather_object(found, own, group=self.group)
        return found

    def from_first(self, own: Any) -> Any:
        """The object of rank 0."""
        box = [own]
        dist.broadcast_object_list(box, group_src=0, group=self.group)
        return box[0]


def _rows_to_columns(ranks: Ranks, x: Tensor, rows: list[int], columns: list[int]) -> Tensor:
    parts = [x[..., start:end] for start, end in pairwise(columns)]
    width = columns[ranks.rank + 1] - columns[ranks.rank]
    shapes = [(*x.shape[:-2], end - start, width) for start, end in pairwise(rows)]
    return torch.cat(ranks.exchange(parts, shapes), dim=-2)


def _columns_to_rows(ranks: Ranks, x: Tensor, rows: list[int], columns: list[int]) -> Tensor:
    parts = [x[..., start:end, :] for start, end in pairwise(rows)]
    count = rows[ranks.rank + 1] - rows[ranks.rank]
    shapes = [(*x.shape[:-2], count, end - start) for start, end in pairwise(columns)]
    return torch.cat(ranks.exchange(parts, shapes), dim=-1)


class _Transpose(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, ranks: Ranks, rows: list[int], columns: list[int], to_columns: bool) -> Tensor:
        ctx.settings = ranks, rows, columns, to_columns
        return (_rows_to_columns if to_columns else _columns_to_rows)(ranks, x, rows, columns)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        ranks, rows, columns, to_columns = ctx.settings
        back = (_columns_to_rows if to_columns else _rows_to_columns)(ranks, grad, rows, columns)
        return back, None, None, None, None


def rows_to_columns(ranks: Ranks, x: Nodes, rows: list[int], columns: list[int]) -> Nodes:
    """From some rows of ``[..., N, d]`` to some of its columns; ``rows`` and ``columns`` bound what each rank has."""
    found: Nodes = _Transpose.apply(x, ranks, rows, columns, True)  # type: ignore[no-untyped-call]
    return found


def columns_to_rows(ranks: Ranks, x: Nodes, rows: list[int], columns: list[int]) -> Nodes:
    """The way back from :func:`rows_to_columns`."""
    found: Nodes = _Transpose.apply(x, ranks, rows, columns, False)  # type: ignore[no-untyped-call]
    return found


class _SumBothWays(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, summand: Tensor, ranks: Ranks) -> Tensor:
        ctx.ranks = ranks
        return ranks.sum(summand)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return ctx.ranks.sum(grad), None


def sum_over_ranks(ranks: Ranks, summand: Tensor) -> Tensor:
    """The whole of which each rank has a summand, where each rank's loss depends on it by a summand of its gradient."""
    found: Tensor = _SumBothWays.apply(summand, ranks)  # type: ignore[no-untyped-call]
    return found


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, own: Tensor, ranks: Ranks, places: Sequence[Index]) -> Tensor:
        ctx.place = places[ranks.rank]
        whole = own.new_empty(sum(place.numel() for place in places), *own.shape[1:])
        for place, rows in zip(places, ranks.gather(own, [place.numel() for place in places]), strict=True):
            whole[place] = rows
        return whole

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return grad.index_select(0, ctx.place), None, None


def gather_rows(ranks: Ranks, own: Tensor, places: Sequence[Index]) -> Tensor:
    """The whole of which rank ``r`` has the rows ``places[r]``; all ranks must compute the same of it."""
    found: Tensor = _Gather.apply(own, ranks, places)  # type: ignore[no-untyped-call]
    return found


class _SumGradients(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, ranks: Ranks, *parameters: Tensor) -> tuple[Tensor, ...]:
        ctx.ranks = ranks
        ctx.set_materialize_grads(False)  # An optimiser passes over a parameter without a gradient.
        return tuple(parameter.view_as(parameter) for parameter in parameters)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> Any:
        found = [grad for grad in grads if grad is not None]
        total = ctx.ranks.sum(torch.cat([grad.reshape(-1) for grad in found]))
        sums = iter(total.split([grad.numel() for grad in found]))
        return None, *(None if grad is None else next(sums).view_as(grad) for grad in grads)


def with_summed_gradients(ranks: Ranks, parameters: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The parameters themselves; their gradients are added over the ranks, all in one message."""
    found: tuple[Tensor, ...] = _SumGradients.apply(ranks, *parameters)  # type: ignore[no-untyped-call]
    return found
