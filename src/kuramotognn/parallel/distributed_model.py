"""A model over several processes: what is common to spreading channels and spreading nodes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any
from weakref import WeakSet

import torch
from torch import nn

from kuramotognn.checkpoints import digest
from kuramotognn.features import FeatureRows, Features, as_features, dropout_as_part
from kuramotognn.graph import Graph, Part, as_graph
from kuramotognn.models.continuous import ContinuousGNN
from kuramotognn.models.discrete import DiscreteGNN
from kuramotognn.parallel.exchange import Ranks, gather_rows, with_summed_gradients
from kuramotognn.solve import Solution
from kuramotognn.typing import EdgeWeight, Index, Logits, Nodes


class DistributedModel(ABC):
    """Runs a model over several processes; the model calls it (:class:`~kuramotognn.models.distributed.Distributed`).

    Every process has all parameters and the whole graph. It encodes and decodes its own nodes; the logits of all nodes
    are gathered, so that whatever is computed of them is the same in each process.
    """

    def __init__(self, model: ContinuousGNN | DiscreteGNN, ranks: Ranks) -> None:
        self.model, self.ranks = model, ranks
        self._pass = _Pass(model)
        self._seen: WeakSet[Graph] = WeakSet()

    def __reduce__(self) -> Any:
        return type(None), ()  # A copy of the model, or one that was stored, runs in one process.

    @abstractmethod
    def own_nodes(self, graph: Graph) -> list[Index]:
        """The nodes of each rank, ascending."""

    @abstractmethod
    def states(self, x: FeatureRows, graph: Graph, save_at: Sequence[float] | None) -> Solution:
        """States of the own nodes along the flow ``[T, n, d]``."""

    @abstractmethod
    def describe(self, graph: Graph) -> str:
        """In words, what is spread and what is exchanged."""

    def feature_rows(self, x: Features | FeatureRows, graph: Graph) -> FeatureRows:
        """What this process needs of the features."""
        if isinstance(x, FeatureRows):
            return x
        self._check(graph)
        return FeatureRows.of(as_features(x), self.own_nodes(graph)[self.ranks.rank])

    def logits(
        self, x: Features | FeatureRows, edges: Any, edge_weight: EdgeWeight | None, nodes: Index | None
    ) -> Logits:
        """Predictions for all nodes, or for some."""

        def compute(rows: FeatureRows, graph: Graph) -> Logits:
            return gather_rows(self.ranks, self.own_logits(rows, graph, nodes), self.chosen(graph, nodes)[0])

        found: Logits = self._run(compute, x, edges, edge_weight)
        return found

    def flow(
        self, x: Features | FeatureRows, edges: Any, edge_weight: EdgeWeight | None, save_at: Sequence[float] | None
    ) -> Solution:
        """The states of all nodes along the flow."""

        def compute(rows: FeatureRows, graph: Graph) -> Solution:
            found = self.states(rows, graph, save_at)
            whole = gather_rows(self.ranks, found.ys.transpose(0, 1), self.own_nodes(graph))
            return replace(found, ys=whole.transpose(0, 1))

        solution: Solution = self._run(compute, x, edges, edge_weight)
        return solution

    def logits_along(
        self, x: Features | FeatureRows, edges: Any, edge_weight: EdgeWeight | None, save_at: Sequence[float]
    ) -> list[Logits]:
        """Predictions for all nodes at several times."""

        def compute(rows: FeatureRows, graph: Graph) -> list[Logits]:
            own = (self.decode(state, graph, None) for state in self.states(rows, graph, save_at).ys)
            return [gather_rows(self.ranks, logits, self.own_nodes(graph)) for logits in own]

        found: list[Logits] = self._run(compute, x, edges, edge_weight)
        return found

    def own_logits(self, x: FeatureRows, graph: Graph, nodes: Index | None) -> Logits:
        """Logits of the own nodes among ``nodes``."""
        return self.decode(self.states(x, graph, None).final, graph, nodes)

    def decode(self, own: Nodes, graph: Graph, nodes: Index | None) -> Logits:
        """Logits of the own nodes among ``nodes`` from the states of all own nodes."""
        assert isinstance(self.model, ContinuousGNN)
        places, chosen = self.chosen(graph, nodes)
        own = own if chosen is None else own.index_select(0, chosen)
        with dropout_as_part(Part(places[self.ranks.rank], sum(place.numel() for place in places))):
            logits: Logits = self.model.decoder(own)
        return logits

    def chosen(self, graph: Graph, nodes: Index | None) -> tuple[list[Index], Index | None]:
        """For each rank the places of its nodes among ``nodes``, and which of this rank's nodes are chosen."""
        own, total = self.own_nodes(graph), graph.num_nodes
        if nodes is None:
            return own, None
        owner, number = nodes.new_empty(total), nodes.new_empty(total)
        for rank, mine in enumerate(own):
            owner[mine], number[mine] = rank, torch.arange(mine.numel(), device=nodes.device)
        places = [(owner[nodes] == rank).nonzero().flatten() for rank in range(self.ranks.size)]
        return places, number[nodes[places[self.ranks.rank]]]

    def _run(
        self,
        compute: Callable[[FeatureRows, Graph], Any],
        x: Features | FeatureRows,
        edges: Any,
        edge_weight: EdgeWeight | None,
    ) -> Any:
        count = x.rows.total if isinstance(x, FeatureRows) else x.shape[0]
        graph = as_graph(edges, count, edge_weight, next(self.model.parameters()))
        rows = self.feature_rows(x, graph)
        if not torch.is_grad_enabled():
            return compute(rows, graph)
        names, parameters = zip(*self.model.named_parameters(), strict=True)
        shared = with_summed_gradients(self.ranks, parameters)
        swapped = {f"model.{name}": value for name, value in zip(names, shared, strict=True)}
        return torch.func.functional_call(self._pass, swapped, (compute, rows, graph))

    def _check(self, graph: Graph) -> None:
        """Refuse graphs that differ between processes, or have fewer nodes than there are processes."""
        if graph in self._seen:
            return
        if graph.num_nodes < self.ranks.size:
            raise ValueError(f"a graph of {graph.num_nodes} nodes cannot be spread over {self.ranks.size} ranks")
        check_equal(self.ranks, "the graph", digest({"edges": graph.edge_index, "weight": graph.weight.detach()}))
        self._seen.add(graph)


class _Pass(nn.Module):
    """Runs a function while the parameters of the model are replaced."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, compute: Callable[..., Any], *arguments: Any) -> Any:
        return compute(*arguments)


def check_equal(ranks: Ranks, what: str, own: str) -> None:
    """Refuse what differs between processes, naming the first rank that differs from rank 0."""
    found = ranks.objects(own)
    for rank, other in enumerate(found):
        if other != found[0]:
            short = "" if len(other) > 40 else f" ({found[0]} and {other})"
            raise ValueError(f"{what} of rank {rank} differs from that of rank 0{short}; start all ranks alike")
