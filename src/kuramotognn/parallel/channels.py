"""Channels of the state over processes: once the couplings are known, a flow needs no exchange at all.

Each process encodes its block of rows, integrates its columns of all nodes, and decodes its rows again. In between,
one exchange turns rows into columns and one turns them back. Attention heads are spread alike, and the couplings of
all heads are added.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import torch

from kuramotognn.features import FeatureRows, dropout_as_part
from kuramotognn.fields import Adjacency, Attention, Couplings, RandomWalk, SignedAttention, SymmetricWalk
from kuramotognn.fields.coupling import check_weights
from kuramotognn.graph import Graph
from kuramotognn.models.continuous import ContinuousGNN
from kuramotognn.parallel.distributed_model import DistributedModel
from kuramotognn.parallel.exchange import Ranks, columns_to_rows, rows_to_columns, sum_over_ranks
from kuramotognn.solve import Solution
from kuramotognn.typing import EdgeWeight, Index, Nodes

KNOWN = (Attention, SignedAttention, RandomWalk, SymmetricWalk)


class ChannelParallel(DistributedModel):
    """A flow whose field is separable, with its channels over the ranks of a group."""

    model: ContinuousGNN

    def __init__(self, model: ContinuousGNN, ranks: Ranks) -> None:
        super().__init__(model, ranks)
        self.columns = ranks.bounds(model.hidden_channels)
        if ranks.size > model.hidden_channels:
            raise ValueError(
                f"{model.hidden_channels} channels cannot be spread over {ranks.size} ranks; start fewer, or raise "
                "hidden_channels"
            )

    @staticmethod
    def possible(model: object) -> bool:
        """Whether the channels of the model's flow do not act on each other."""
        return isinstance(model, ContinuousGNN) and model.field.separable and isinstance(model.field.adjacency, KNOWN)

    def own_nodes(self, graph: Graph) -> list[Index]:
        """Contiguous blocks of nodes."""
        bounds = self.ranks.bounds(graph.num_nodes)
        return [torch.arange(start, end, device=graph.weight.device) for start, end in pairwise(bounds)]

    def describe(self, graph: Graph) -> str:
        """Channels of each rank in words."""
        widths = ", ".join(str(end - start) for start, end in pairwise(self.columns))
        return f"channels over {self.ranks.size} ranks ({widths}): nothing exchanged along the flow"

    def states(self, x: FeatureRows, graph: Graph, save_at: Sequence[float] | None) -> Solution:
        """States of the own nodes along the flow."""
        model, ranks, rows = self.model, self.ranks, self.ranks.bounds(graph.num_nodes)
        with dropout_as_part(x.rows, x.entries):
            x0 = model.encoder(x.x)
        support = model.field.adjacency.support(graph)
        couplings = Couplings(support.pattern, self._couplings(model.field.adjacency, x0, support))
        start = rows_to_columns(ranks, x0, rows, self.columns)
        solution = model.solve(model.field.dynamics(start, couplings), start, save_at)
        return replace(solution, ys=columns_to_rows(ranks, solution.ys, rows, self.columns))

    def _couplings(self, adjacency: Adjacency, x0: Nodes, graph: Graph) -> EdgeWeight:
        if isinstance(adjacency, Attention):
            return self._attention(adjacency, x0, graph)
        if isinstance(adjacency, SignedAttention):
            return self._signed_attention(adjacency, x0, graph)
        couplings: EdgeWeight = adjacency(x0, graph)  # Constant: it does not look at the states.
        return couplings

    def _attention(self, attention: Attention, x0: Nodes, graph: Graph) -> EdgeWeight:
        """Each rank computes some heads; the mean over heads is a sum over ranks."""
        check_weights(graph)
        ranks, rows, heads = self.ranks, self.ranks.bounds(graph.num_nodes), self.ranks.bounds(attention.heads)
        if attention.squash == "squareplus":  # Its shift is the highest score of all heads.
            heads = [0, *[attention.heads] * ranks.size]
        columns = [head * attention.width // attention.heads for head in heads]
        keys, queries = (
            rows_to_columns(ranks, project(x0), rows, columns) for project in (attention.key, attention.query)
        )
        own = heads[ranks.rank + 1] - heads[ranks.rank]
        if own:
            mean = attention.of_heads(keys, queries, graph, own) * (own / attention.heads)
        else:  # An empty sum, which takes part in the exchange of gradients.
            mean = (keys.sum() + queries.sum()).expand(graph.num_edges)
        return sum_over_ranks(ranks, mean)

    def _signed_attention(self, adjacency: SignedAttention, x0: Nodes, graph: Graph) -> EdgeWeight:
        """The scores of the signs are sums over channels, of which each rank has some."""
        width, pattern = adjacency.attention.width, graph.pattern
        rows, columns = self.ranks.bounds(graph.num_nodes), self.ranks.bounds(width)
        listener, speaker = (
            rows_to_columns(self.ranks, project(x0), rows, columns)
            for project in (adjacency.listener, adjacency.speaker)
        )
        scores = (pattern.of_row(width**-0.5 * listener) * pattern.of_col(speaker)).sum(dim=-1)
        attention = self._attention(adjacency.attention, x0, replace(graph, weight=graph.weight.abs()))
        signs = graph.weight.sign() * torch.tanh(adjacency.bias + sum_over_ranks(self.ranks, scores))
        return attention * signs
