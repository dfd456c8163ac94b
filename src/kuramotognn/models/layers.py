"""PyG's layers on this library's graphs: their parameters and arithmetic, with fused sparse products.

Each layer is a subclass of PyG's, so that parameters have PyG's names and initial values. It takes sparse features and
a :class:`~kuramotognn.Graph`, whose normalised weights are computed once.
"""

from __future__ import annotations

from collections.abc import Callable
from weakref import WeakKeyDictionary

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric import nn as pyg

from kuramotognn.features import Features, affine, dropout, dropout_as_part
from kuramotognn.fields.coupling import RandomWalk, SymmetricWalk, check_weights
from kuramotognn.graph import Graph, Pattern, usable_in_training
from kuramotognn.kernels import row_softmax, spmm
from kuramotognn.typing import EdgeHeads, Nodes


def _once_per_graph(make: Callable[[Graph], Graph]) -> Callable[[Graph], Graph]:
    """Keep the result as long as the graph exists; learnt weights are normalised in each call."""
    made: WeakKeyDictionary[Graph, Graph] = WeakKeyDictionary()

    def kept(graph: Graph) -> Graph:
        if graph.weight.requires_grad:
            return graph.derive(make)
        if graph not in made:
            made[graph] = graph.derive(usable_in_training(make))
        return made[graph]

    return kept


@_once_per_graph
def symmetric(graph: Graph) -> Graph:
    """With self-loops where there are none, and weights divided by the roots of both degrees."""
    walk = SymmetricWalk()
    looped = walk.support(graph)
    return Graph(looped.pattern, walk(looped.weight, looped))


@_once_per_graph
def row_stochastic(graph: Graph) -> Graph:
    """The weights of a node's edges add to one."""
    return Graph(graph.pattern, RandomWalk()(graph.weight, graph))


@_once_per_graph
def with_unit_loops(graph: Graph) -> Graph:
    """With a self-loop of weight 1 at every node, also where there was another."""
    check_weights(graph)
    different = graph.pattern.row != graph.pattern.col
    return Graph.from_edge_index(
        graph.edge_index[:, different], graph.num_nodes, graph.weight[different], self_loops=True
    )


class GCNConv(pyg.GCNConv):  # type: ignore[misc]
    r""":math:`\hat D^{-1/2} \hat A \hat D^{-1/2} X W + b`, :math:`\hat A = A + I`."""

    def forward(self, x: Features, graph: Graph) -> Nodes:
        """New states ``[N, out_channels]``."""
        propagation = symmetric(graph)
        h = graph.sources(affine(x, self.lin.weight, None))
        out: Nodes = spmm(propagation.pattern, propagation.weight, h) + self.bias
        return out


class SAGEConv(pyg.SAGEConv):  # type: ignore[misc]
    r""":math:`W_1 \operatorname{mean}_j x_j + W_2 x_i + b`; the mean is weighted by the edges."""

    def forward(self, x: Features, graph: Graph) -> Nodes:
        """New states ``[N, out_channels]``."""
        mean = row_stochastic(graph)
        own = affine(x, self.lin_r.weight, self.lin_l.bias)
        # The mean of maps is the map of the mean.
        return spmm(mean.pattern, mean.weight, graph.sources(affine(x, self.lin_l.weight, None))) + own


class GATConv(pyg.GATConv):  # type: ignore[misc]
    """Additive attention with a self-loop at every node; an edge weight multiplies the exponential."""

    def forward(self, x: Features, graph: Graph) -> Nodes:
        """New states ``[N, heads · out_channels]``, or their mean over heads."""
        graph = with_unit_loops(graph)
        pattern, h, attention = self.attention(x, graph)
        with dropout_as_part(graph.edge_part):
            attention = dropout(attention, self.dropout, self.training)
        heads = [spmm(pattern, attention[:, k].contiguous(), h[:, k].contiguous()) for k in range(self.heads)]
        out = torch.cat(heads, dim=1) if self.concat else torch.stack(heads).mean(dim=0)
        states: Nodes = out + self.bias
        return states

    def attention(self, x: Features, graph: Graph) -> tuple[Pattern, Tensor, EdgeHeads]:
        """The pattern, the projected states ``[N, heads, out_channels]`` of its columns, and the attention."""
        pattern, own = graph.pattern, affine(x, self.lin.weight, None).view(-1, self.heads, self.out_channels)
        h = graph.sources(own)
        source, target = (h * self.att_src).sum(dim=-1), (own * self.att_dst).sum(dim=-1)
        scores = F.leaky_relu(pattern.of_col(source) + pattern.of_row(target), self.negative_slope)
        return pattern, h, row_softmax(pattern, scores, graph.weight)


class GCN2Conv(pyg.GCN2Conv):  # type: ignore[misc]
    r""":math:`((1 - \alpha) P x + \alpha x_0)((1 - \beta) I + \beta W)`, P as in :class:`GCNConv`."""

    def forward(self, x: Nodes, x0: Nodes, graph: Graph) -> Nodes:
        """New states ``[N, channels]``."""
        propagation = symmetric(graph)
        mixed = spmm(propagation.pattern, propagation.weight, graph.sources(x)).lerp(x0, self.alpha)
        return torch.addmm(mixed, mixed, self.weight1, beta=1 - self.beta, alpha=self.beta)
