"""Node features that stay sparse when they are sparse, and on disk when they are on disk."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal, TypeAlias, overload

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from kuramotognn.graph import Part, Pattern
from kuramotognn.kernels import affine as sparse_affine
from kuramotognn.kernels import row_normalise
from kuramotognn.mapped_features import MappedFeatures
from kuramotognn.typing import Index, Nodes

SPARSE_BELOW = 0.1
"""Share of non-zeros under which features are kept sparse; a bag of words has about 0.01."""

Normalisation: TypeAlias = Literal["none", "row-sum", "row-l2"]
NORMALISATIONS: tuple[Normalisation, ...] = ("none", "row-sum", "row-l2")


@dataclass(frozen=True, eq=False)
class SparseFeatures:
    """A sparse ``[N, F]`` feature matrix: a frozen pattern and one value per stored entry."""

    pattern: Pattern
    values: Tensor

    def __repr__(self) -> str:
        return f"SparseFeatures([{self.shape[0]}, {self.shape[1]}], {self.values.numel()} entries)"

    @staticmethod
    def from_coo(row: Index, col: Index, values: Tensor, shape: tuple[int, int]) -> SparseFeatures:
        """Build from entries in any order; repeated entries are added."""
        entries = torch.stack([row, col])
        return SparseFeatures._of(torch.sparse_coo_tensor(entries, values, shape, check_invariants=True))

    @staticmethod
    def _of(matrix: Tensor) -> SparseFeatures:
        matrix = matrix.coalesce()
        row, col = matrix.indices().clone()  # torch.compile takes no views of a sparse tensor.
        return SparseFeatures(Pattern.from_sorted(row, col, matrix.size(0), matrix.size(1)), matrix.values().clone())

    @property
    def shape(self) -> tuple[int, int]:
        """``(N, F)``."""
        return self.pattern.num_rows, self.pattern.num_cols

    @property
    def dtype(self) -> torch.dtype:
        """Type of the stored values."""
        return self.values.dtype

    def to(self, target: torch.device | str | torch.dtype) -> SparseFeatures:
        """A copy on a device, or with values of another type."""
        pattern = self.pattern if isinstance(target, torch.dtype) else self.pattern.to(target)
        return SparseFeatures(pattern, self.values.to(target))

    def to_dense(self) -> Nodes:
        """The ordinary ``[N, F]`` tensor."""
        dense = self.values.new_zeros(self.shape)
        dense[self.pattern.row, self.pattern.col] = self.values
        return dense

    def rows(self, index: Index) -> SparseFeatures:
        """The features of some nodes, in the order of ``index``."""
        row, entry = self.pattern.entries_of(index)
        pattern = Pattern.from_sorted(row, self.pattern.col[entry], index.numel(), self.shape[1])
        return SparseFeatures(pattern, self.values[entry])


Features: TypeAlias = Tensor | SparseFeatures | MappedFeatures


def as_features(x: Features) -> Features:
    """Take a tensor of any layout; a sparse one becomes :class:`SparseFeatures`, a dense one stays."""
    if not isinstance(x, Tensor) or x.layout == torch.strided:
        return x
    return SparseFeatures._of(x.to_sparse(layout=torch.sparse_coo))


def compact_features(x: Features) -> Features:
    """Make dense features sparse when that pays: when fewer than ``SPARSE_BELOW`` of the entries are non-zero."""
    if isinstance(x, Tensor) and x.layout == torch.strided and x.numel():
        entries = x.nonzero()
        if entries.size(0) < SPARSE_BELOW * x.numel():
            row, col = entries.t().contiguous()
            return SparseFeatures(Pattern.from_sorted(row, col, x.size(0), x.size(1)), x[row, col])
    return as_features(x)


def check_width(x: Features, width: int) -> None:
    """Refuse features of another width than a model has."""
    if x.shape[1:] != (width,):
        raise ValueError(f"x must have shape [N, {width}], got {list(x.shape)}")


def check_features(x: Features) -> None:
    """Refuse features that are not a floating-point matrix of finite numbers, naming the first wrong entry."""
    if len(x.shape) != 2:
        raise ValueError(f"features must have shape [N, F], got {list(x.shape)}")
    if not x.dtype.is_floating_point:
        raise ValueError(f"features must be floating point, got {x.dtype}; convert them with x.float()")
    if isinstance(x, MappedFeatures):
        for start, _, block in x.blocks():
            _check_finite(block, start)
        return
    _check_finite(x)


def _check_finite(x: Tensor | SparseFeatures, first_row: int = 0) -> None:
    values = x.values if isinstance(x, SparseFeatures) else x
    wrong = (~torch.isfinite(values)).nonzero()
    if wrong.numel():
        place = wrong[0]
        value = float(values[tuple(place)])
        row, col = (x.pattern.row[place], x.pattern.col[place]) if isinstance(x, SparseFeatures) else place
        raise ValueError(
            f"feature {int(col)} of node {first_row + int(row)} is {value}; "
            "features must be finite: fill in missing values or drop the column"
        )


def normalise_features(x: Features, how: Normalisation) -> Features:
    """Scale each node's features to sum one (``row-sum``) or length one (``row-l2``); zero rows stay zero."""
    if how == "none":
        return x
    if isinstance(x, MappedFeatures):
        return x.normalised(how)
    if isinstance(x, Tensor):
        return F.normalize(x, p=1.0 if how == "row-sum" else 2.0, dim=-1)
    if how == "row-sum":
        sizes = row_normalise(x.pattern, x.values.abs())
        return SparseFeatures(x.pattern, sizes * x.values.sign())
    length = x.pattern.sum_rows(x.values.square()).sqrt()
    length = torch.where(length == 0, torch.ones_like(length), length)
    return SparseFeatures(x.pattern, x.values / x.pattern.of_row(length))


def select_rows(x: Features, nodes: Index) -> Features:
    """The features of some nodes."""
    return x[nodes] if isinstance(x, Tensor) else x.rows(nodes)


def stack_rows(first: Features, second: Features) -> Features:
    """The features of some nodes, then those of others; sparse if either is."""
    if isinstance(first, MappedFeatures) or isinstance(second, MappedFeatures):
        raise ValueError("features on disk cannot be joined with those of other nodes; write one file of all nodes")
    if isinstance(first, Tensor) and isinstance(second, Tensor):
        return torch.cat([first, second])
    sparse = (as_features(x.to_sparse()) if isinstance(x, Tensor) else x for x in (first, second))
    above, below = (x for x in sparse if isinstance(x, SparseFeatures))
    return SparseFeatures.from_coo(
        torch.cat([above.pattern.row, below.pattern.row + above.shape[0]]),
        torch.cat([above.pattern.col, below.pattern.col]),
        torch.cat([above.values, below.values]),
        (above.shape[0] + below.shape[0], above.shape[1]),
    )


def scale_features(x: Features, factor: float) -> Features:
    """Every feature times ``factor``: with it the spread of the initial phases."""
    if factor == 1.0:
        return x
    if isinstance(x, MappedFeatures):
        return x.scaled(factor)
    return x * factor if isinstance(x, Tensor) else SparseFeatures(x.pattern, x.values * factor)


@overload
def dropout(x: Tensor, p: float, training: bool) -> Tensor: ...


@overload
def dropout(x: Features, p: float, training: bool) -> Features: ...


def dropout(x: Features, p: float, training: bool) -> Features:
    """Zero each entry with probability ``p`` and scale the rest; stored entries alone are drawn when sparse."""
    if not training or p == 0:
        return x
    if isinstance(x, MappedFeatures):
        return x.dropped(p)
    if _spread and (parts := _parts.get()) is not None:
        return _dropout_of_part(x, p, parts)
    if isinstance(x, Tensor):
        return x * _dropout_factors(x.shape, p, x)
    return SparseFeatures(x.pattern, x.values * _dropout_factors(x.values.shape, p, x.values))


def _dropout_factors(shape: Sequence[int], p: float, like: Tensor) -> Tensor:
    """0 with probability ``p``, else one over the probability of the rest.

    On a CPU a random number of 64 bits decides on four entries, for which ``p`` is rounded to a multiple of 2^-16. That
    takes a fifth of the time of F.dropout, which was a quarter of an epoch of GCN and nearly half of one of GCNII.
    """
    if like.device.type != "cpu":
        return F.dropout(like.new_ones(shape), p)
    count = math.prod(shape)
    bits = torch.randint(-(2**63), 2**63 - 1, (-(-count // 4),))
    kept = bits.view(torch.int16)[:count].view(shape) >= min(round(p * 2**16), 2**16 - 1) - 2**15
    return kept.to(like.dtype).mul_(1 / (1 - p))


@dataclass(frozen=True, eq=False)
class FeatureRows:
    """The features of some nodes of a graph whose nodes are spread over processes.

    Attributes:
        x: their features.
        rows: which nodes they are.
        entries: which of all stored entries ``x`` has, where it is sparse.
    """

    x: Features
    rows: Part
    entries: Part | None

    @staticmethod
    def of(x: Features, nodes: Index) -> FeatureRows:
        """Those of ``nodes``, ascending, out of the features of all nodes."""
        rows = Part(nodes, x.shape[0])
        if isinstance(x, Tensor):
            return FeatureRows(x.index_select(0, nodes), rows, None)
        if isinstance(x, MappedFeatures):
            return FeatureRows(x.of_nodes(nodes), rows, None)
        number = torch.full((x.shape[0],), -1, device=nodes.device)
        number[nodes] = torch.arange(nodes.numel(), device=nodes.device)
        row = number[x.pattern.row]
        kept = (row >= 0).nonzero().flatten()
        pattern = Pattern.from_sorted(row[kept], x.pattern.col[kept], nodes.numel(), x.shape[1])
        return FeatureRows(SparseFeatures(pattern, x.values[kept]), rows, Part(kept, x.values.numel()))


_parts: ContextVar[tuple[Part, Part | None] | None] = ContextVar("kuramotognn_parts", default=None)
_spread = False  # Whether any part was ever named: torch.compile can read this, but no context variable.


@contextmanager
def dropout_as_part(rows: Part | None, entries: Part | None = None) -> Iterator[None]:
    """In this block :func:`dropout` draws for the whole that its argument is a part of, and applies its own share.

    So processes that hold parts of one matrix drop what a single process would, and their generators stay equal. The
    mask of the whole exists for a moment.

    Args:
        rows: which rows dense tensors are; None where they are the whole.
        entries: which entries sparse features are.
    """
    global _spread
    _spread = _spread or rows is not None
    if not _spread:
        yield
        return
    token = _parts.set(None if rows is None else (rows, entries))
    try:
        yield
    finally:
        _parts.reset(token)


def _dropout_of_part(x: Tensor | SparseFeatures, p: float, parts: tuple[Part, Part | None]) -> Features:
    rows, entries = parts
    if isinstance(x, Tensor):
        return x * _dropout_factors((rows.total, *x.shape[1:]), p, x).index_select(0, rows.place)
    assert entries is not None
    factors = _dropout_factors((entries.total,), p, x.values).index_select(0, entries.place)
    return SparseFeatures(x.pattern, x.values * factors)


class Dropout(nn.Module):
    """:func:`dropout` of dense tensors as a module."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        """``x``, thinned out while training."""
        return dropout(x, self.p, self.training)

    def extra_repr(self) -> str:
        """Shown by ``print(model)``."""
        return f"p={self.p}"


def affine(x: Features, weight: Tensor, bias: Tensor | None) -> Nodes:
    """``x @ weight.T + bias`` for any features."""
    if isinstance(x, MappedFeatures):
        return x.affine(weight, bias)
    if isinstance(x, Tensor):
        return F.linear(x, weight, bias)
    return sparse_affine(x.pattern, x.values, weight, bias)
