"""torch_geometric's layers on this library's graphs: their parameters and arithmetic, our sparse products.

Each layer takes its linear map in front of PyG's layer, where it can read sparse features, and hands PyG's layer a
:class:`~kuramotognn.Graph` whose weights are normalised once. Imported by those who build such a model:
``torch_geometric.nn`` takes seconds to load.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric import nn as pyg
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import softmax

from kuramotognn.features import Features, affine
from kuramotognn.fields.coupling import check_weights
from kuramotognn.graph import Graph
from kuramotognn.kernels import row_normalise, spmm
from kuramotognn.typing import Nodes


class GCNLayer(nn.Module):
    r""":math:`\hat D^{-1/2} \hat A \hat D^{-1/2} X W + b` of ``GCNConv``, :math:`\hat A = A + I`."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.conv = _GCNConv(in_channels, out_channels)
        self.map, self.conv.lin = self.conv.lin, _Done()

    def forward(self, x: Features, graph: Graph) -> Nodes:
        """New states ``[N, out_channels]``."""
        out: Nodes = self.conv(affine(x, self.map.weight, None), symmetric(graph))
        return out


class SAGELayer(nn.Module):
    r""":math:`W_1 \operatorname{mean}_j x_j + W_2 x_i + b` of ``SAGEConv``; the mean is weighted by the edges."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.conv = _SAGEConv(in_channels, out_channels, aggr="sum")
        self.map, self.conv.lin_l = self.conv.lin_l, _Done()
        self.own, self.conv.lin_r = self.conv.lin_r, _Done()

    def forward(self, x: Features, graph: Graph) -> Nodes:
        """New states ``[N, out_channels]``."""
        # The mean of maps is the map of the mean; the bias must not take part, for a node without neighbours has none.
        pair = (affine(x, self.map.weight, None), affine(x, self.own.weight, self.map.bias))
        out: Nodes = self.conv(pair, row_stochastic(graph))
        return out


class GATLayer(nn.Module):
    """Additive attention of ``GATConv`` with a self-loop at every node; an edge weight multiplies the exponential."""

    def __init__(self, in_channels: int, out_channels: int, *, heads: int, concat: bool, dropout: float) -> None:
        super().__init__()
        self.conv = _GATConv(
            in_channels, out_channels, heads=heads, concat=concat, dropout=dropout, add_self_loops=False
        )
        self.map, self.conv.lin = self.conv.lin, _Done()

    def forward(self, x: Features, graph: Graph) -> Nodes:
        """New states ``[N, heads · out_channels]``, or their mean over heads."""
        looped = with_loops(graph)
        out: Nodes = self.conv(affine(x, self.map.weight, None), looped.edge_index, edge_attr=looped.weight)
        return out


class GCNIILayer(nn.Module):
    r""":math:`((1 - \alpha) P x + \alpha x_0)((1 - \beta) I + \beta W)` of ``GCN2Conv``, P as in :class:`GCNLayer`."""

    def __init__(self, channels: int, *, alpha: float, theta: float, layer: int) -> None:
        super().__init__()
        self.conv = _GCN2Conv(channels, alpha, theta, layer)

    def forward(self, x: Nodes, x0: Nodes, graph: Graph) -> Nodes:
        """New states ``[N, channels]``."""
        out: Nodes = self.conv(x, x0, symmetric(graph))
        return out


def _once_a_graph(make: Callable[[Graph], Graph]) -> Callable[[Graph], Graph]:
    """Remember what is made of a graph for as long as the graph lives; learnt weights are looked at each time."""
    made: WeakKeyDictionary[Graph, Graph] = WeakKeyDictionary()

    def remembered(graph: Graph) -> Graph:
        if graph.weight.requires_grad:
            return make(graph)
        if graph not in made:
            made[graph] = make(graph)
        return made[graph]

    return remembered


@_once_a_graph
def symmetric(graph: Graph) -> Graph:
    """With self-loops where there are none, and weights divided by the roots of both degrees."""
    check_weights(graph)
    edges, weight = gcn_norm(graph.edge_index, graph.weight, graph.num_nodes)
    return Graph.from_edge_index(edges, graph.num_nodes, weight)


@_once_a_graph
def row_stochastic(graph: Graph) -> Graph:
    """The weights of a node's edges add to one."""
    check_weights(graph)
    return Graph(graph.pattern, row_normalise(graph.pattern, graph.weight))


@_once_a_graph
def with_loops(graph: Graph) -> Graph:
    """With a self-loop of weight 1 at every node in place of what was there, and without edges of weight 0."""
    check_weights(graph)
    kept = (graph.pattern.row != graph.pattern.col) & (graph.weight > 0)
    nodes = torch.arange(graph.num_nodes, device=kept.device)
    edges = torch.cat([graph.edge_index[:, kept], nodes.expand(2, -1)], dim=1)
    return Graph.from_edge_index(
        edges, graph.num_nodes, torch.cat([graph.weight[kept], torch.ones_like(nodes, dtype=graph.weight.dtype)])
    )


class _Done(nn.Identity):
    """In place of a linear map that was applied before."""

    def reset_parameters(self) -> None:
        """Nothing is learnt here."""


def _product(self: object, edge_index: Graph, size: object = None, **inputs: Any) -> Tensor:
    """One sparse product in place of a message for each edge."""
    x = inputs["x"]
    return spmm(edge_index.pattern, edge_index.weight, x[0] if isinstance(x, tuple) else x)


class _GCNConv(pyg.GCNConv):  # type: ignore[misc]
    propagate = _product


class _SAGEConv(pyg.SAGEConv):  # type: ignore[misc]
    propagate = _product


class _GCN2Conv(pyg.GCN2Conv):  # type: ignore[misc]
    propagate = _product


class _GATConv(pyg.GATConv):  # type: ignore[misc]
    def edge_update(
        self,
        alpha_j: Tensor,
        alpha_i: Tensor,
        edge_attr: Tensor,
        index: Tensor,
        ptr: Tensor | None,
        dim_size: int | None,
    ) -> Tensor:
        scores = F.leaky_relu(alpha_j + alpha_i, self.negative_slope) + edge_attr.log()[:, None]
        attention: Tensor = softmax(scores, index, ptr, dim_size)
        return F.dropout(attention, self.dropout, self.training)
