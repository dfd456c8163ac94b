"""Node features that stay on disk and are read in blocks of rows, for matrices that do not fit memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from kuramotognn.typing import Index, Nodes

BLOCK_BYTES = 16 << 20
"""Size of a block in float32. Dropout masks are drawn by block: another size gives other random numbers."""


class RowSource(Protocol):
    """A matrix that is read by rows."""

    @property
    def shape(self) -> tuple[int, int]:
        """``(N, F)``."""

    def read(self, start: int, stop: int) -> Nodes:
        """Some consecutive rows in float32."""

    def take(self, rows: Index) -> Nodes:
        """Some rows in float32."""


class ArrayRows:
    """The rows of a NumPy array, as a rule a ``memmap``: the operating system holds as much of it as there is room."""

    def __init__(self, array: npt.NDArray[Any]) -> None:
        self.array = array

    @property
    def shape(self) -> tuple[int, int]:
        """``(N, F)``."""
        rows, columns = self.array.shape
        return rows, columns

    def read(self, start: int, stop: int) -> Nodes:
        """Some consecutive rows."""
        return _float32(self.array[start:stop])

    def take(self, rows: Index) -> Nodes:
        """Some rows."""
        return _float32(self.array[rows.cpu().numpy()])


def _float32(values: npt.NDArray[Any]) -> Tensor:
    with np.errstate(over="ignore"):  # What does not fit becomes infinite, which is refused where features are checked.
        return torch.from_numpy(np.array(values, dtype=np.float32))


@dataclass(frozen=True, eq=False)
class MappedFeatures:
    """A dense ``[N, F]`` feature matrix on disk, and what is done to each block of rows that is read.

    Attributes:
        source: the matrix.
        beside: ``[N, k]`` features in memory that stand before those of the matrix.
        nodes: the rows of the matrix that these features are, ascending; all unless given.
        normalisation: each node's features are scaled to sum one or length one.
        factor: multiplies every feature afterwards.
        dropout: probability of dropping an entry.
        seed: of the dropout masks, one generator a block.
    """

    source: RowSource
    beside: Nodes | None = None
    nodes: Index | None = None
    normalisation: Literal["none", "row-sum", "row-l2"] = "none"
    factor: float = 1.0
    dropout: float = 0.0
    seed: int = 0

    def __repr__(self) -> str:
        return f"MappedFeatures([{self.shape[0]}, {self.shape[1]}])"

    @property
    def shape(self) -> tuple[int, int]:
        """``(N, F)``."""
        rows, columns = self.source.shape
        rows = rows if self.nodes is None else self.nodes.numel()
        return rows, columns + (0 if self.beside is None else self.beside.size(1))

    @property
    def dtype(self) -> torch.dtype:
        """Type of the rows that are read."""
        return torch.float32

    def to(self, target: torch.device | str | torch.dtype) -> MappedFeatures:
        """The features themselves: blocks go to the device and type of the weights that they are multiplied by."""
        return self

    def to_dense(self) -> Nodes:
        """The ordinary ``[N, F]`` tensor, all of it in memory."""
        return torch.cat([block for _, _, block in self.blocks()])

    def rows(self, index: Index) -> Nodes:
        """The features of some nodes, in the order of ``index``."""
        place = index if self.nodes is None else self.nodes[index.cpu()]
        read = self.source.take(place).to(index.device)
        first = [] if self.beside is None else [self.beside[place]]
        return self._scaled(torch.cat([*first, read], dim=1))

    def blocks(self) -> Iterator[tuple[int, int, Nodes]]:
        """Consecutive blocks of rows: their first row, the row after their last, and the features."""
        rows, columns = self.source.shape[0], self.shape[1]
        size = max(BLOCK_BYTES // (4 * max(columns, 1)), 1)
        done = 0
        for number, start in enumerate(range(0, max(rows, 1), size)):
            stop = min(start + size, rows)
            own = self._own(start, stop)
            read = self.source.read(start, stop) if own is None else self.source.take(own)
            first = [] if self.beside is None else [self.beside[slice(start, stop) if own is None else own].cpu()]
            block = self._scaled(torch.cat([*first, read], dim=1) if first else read)
            if self.dropout:
                generator = torch.Generator().manual_seed(self.seed + number)
                kept = torch.rand(stop - start, columns, generator=generator) >= self.dropout
                block *= kept if own is None else kept[own - start]
                block /= 1 - self.dropout
            yield done, done + block.size(0), block
            done += block.size(0)

    def of_nodes(self, nodes: Index) -> MappedFeatures:
        """Those of some nodes, ascending. Dropout drops of them what it would drop of them among all nodes."""
        assert self.nodes is None
        return replace(self, nodes=nodes.cpu())

    def with_columns(self, columns: Nodes) -> MappedFeatures:
        """With features in memory before those of the matrix."""
        assert self.beside is None
        return replace(self, beside=columns.float())

    def normalised(self, how: Literal["none", "row-sum", "row-l2"]) -> MappedFeatures:
        """With each node's features scaled to sum one or length one."""
        # Normalising undoes any scaling before it.
        return self if how == "none" else replace(self, normalisation=how, factor=1.0)

    def scaled(self, factor: float) -> MappedFeatures:
        """With every feature times ``factor``."""
        return replace(self, factor=self.factor * factor)

    def dropped(self, p: float) -> MappedFeatures:
        """With entries zero with probability ``p`` and the rest scaled up; the seed comes from torch's generator."""
        return replace(self, dropout=p, seed=int(torch.randint(2**62, ())))

    def affine(self, weight: Tensor, bias: Tensor | None) -> Nodes:
        """``x @ weight.T + bias``; forward and backward read the blocks, and keep none."""
        out: Nodes = _BlockAffine.apply(weight, bias, self)  # type: ignore[no-untyped-call]
        return out

    def _own(self, start: int, stop: int) -> Index | None:
        """Which of some consecutive rows of the matrix these features are; None for all of them."""
        if self.nodes is None:
            return None
        first, last = torch.searchsorted(self.nodes, torch.tensor([start, stop])).tolist()
        return self.nodes[first:last]

    def _scaled(self, block: Nodes) -> Nodes:
        if self.normalisation != "none":
            block = F.normalize(block, p=1.0 if self.normalisation == "row-sum" else 2.0, dim=-1)
        return block if self.factor == 1.0 else block * self.factor


class _BlockAffine(torch.autograd.Function):
    """The affine map of features in blocks, with exact gradients of weight and bias."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, bias: Tensor | None, x: MappedFeatures) -> Nodes:
        ctx.x = x
        out = weight.new_empty(x.shape[0], weight.size(0))
        for start, stop, block in x.blocks():
            out[start:stop] = F.linear(block.to(weight), weight, bias)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Nodes) -> tuple[Tensor | None, Tensor | None, None]:
        grad_weight = None
        if ctx.needs_input_grad[0]:
            grad_weight = grad.new_zeros(grad.size(1), ctx.x.shape[1])
            for start, stop, block in ctx.x.blocks():
                grad_weight.addmm_(grad[start:stop].t(), block.to(grad))
        return grad_weight, grad.sum(dim=0) if ctx.needs_input_grad[1] else None, None
