"""Names for the shapes and ranges that appear in signatures.

Shapes are aliases of :class:`torch.Tensor`: documentation that a signature carries, checked where data enters
(:mod:`kuramotognn.graph`, the models) and nowhere deeper. Ranges are checked where settings are read.

Symbols: ``N`` nodes, ``E`` edges, ``F`` input features, ``d`` hidden channels, ``C`` classes, ``H`` attention heads.
"""

from typing import Annotated, TypeAlias

from pydantic import Field, NonNegativeFloat, PositiveFloat
from torch import Tensor

__all__ = [
    "Bytes",
    "EdgeHeads",
    "EdgeIndex",
    "EdgeWeight",
    "Index",
    "Labels",
    "Logits",
    "Nodes",
    "NonNegativeFloat",
    "PositiveFloat",
    "PositiveInt",
    "Probability",
]

PositiveInt: TypeAlias = Annotated[int, Field(gt=0, lt=2**31)]
"""A size or a count."""

Bytes: TypeAlias = Annotated[int, Field(gt=0, lt=2**63)]
"""An amount of memory."""

Nodes: TypeAlias = Tensor
"""``[N, d]`` one row of real numbers per node: features, phases, natural frequencies."""

EdgeIndex: TypeAlias = Tensor
"""``[2, E]`` int64, PyG's convention: row 0 holds sources ``j``, row 1 targets ``i``."""

EdgeWeight: TypeAlias = Tensor
"""``[E]`` one number per edge, in the order of the graph's rows: weights or couplings ``a_ij``."""

EdgeHeads: TypeAlias = Tensor
"""``[E, H]`` one number per edge and attention head."""

Index: TypeAlias = Tensor
"""``[n]`` int64 node or edge positions."""

Labels: TypeAlias = Tensor
"""``[N]`` int64 class of each node."""

Logits: TypeAlias = Tensor
"""``[N, C]`` unnormalised log-probabilities of the classes."""

Probability: TypeAlias = Annotated[float, Field(ge=0, lt=1)]
"""A dropout: at least 0 and below 1."""
