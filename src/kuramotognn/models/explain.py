"""Edge masks of PyG's explainers, which are set on modules of class ``MessagePassing``.

Flows are no such modules, because importing PyG takes longer than importing torch. Where PyG is loaded, a flow lists
one beside its own modules; what an explainer sets on it scales the edge weights.
"""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch import Tensor, nn

from kuramotognn.typing import EdgeIndex, EdgeWeight, Nodes

LAYER = "_explained_edges"


def explained_layer(flow: nn.Module) -> Any | None:
    """The module of PyG that explainers find in ``flow``; None unless PyG is loaded."""
    if LAYER not in vars(flow) and "torch_geometric.nn" in sys.modules:
        from torch_geometric.nn import MessagePassing

        vars(flow)[LAYER] = MessagePassing()  # Not a registered submodule: it has no part in state_dict.
    return vars(flow).get(LAYER)


def masked_weight(flow: nn.Module, edge_index: Any, edge_weight: EdgeWeight | None, like: Nodes) -> EdgeWeight | None:
    """The edge weights times the mask of an explainer, where one is set."""
    mask = getattr(vars(flow).get(LAYER), "_edge_mask", None)
    if mask is None:
        return edge_weight
    layer: Any = vars(flow)[LAYER]
    scale: Tensor = mask.sigmoid() if layer._apply_sigmoid else mask
    _check(edge_index, scale)
    return scale.to(like.dtype) * (torch.ones_like(scale, dtype=like.dtype) if edge_weight is None else edge_weight)


def _check(edge_index: EdgeIndex, mask: Tensor) -> None:
    if not isinstance(edge_index, Tensor) or edge_index.layout != torch.strided:
        raise TypeError(f"an explanation of edges needs an edge_index, got {type(edge_index).__name__}")
    if mask.size(0) != edge_index.size(1):
        raise ValueError(f"the edge mask has {mask.size(0)} entries but edge_index has {edge_index.size(1)} edges")
