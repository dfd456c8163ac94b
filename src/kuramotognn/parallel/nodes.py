"""Nodes over processes, for models that mix channels: neighbours in other parts are exchanged at each evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import torch
import torch.nn.functional as F
from torch import Tensor

from kuramotognn.features import FeatureRows, dropout_as_part
from kuramotognn.fields import (
    AdaptiveKuramotoDynamics,
    Adjacency,
    Attention,
    Couplings,
    DelayedDynamics,
    Diffusion,
    Dynamics,
    RandomWalk,
    SecondOrderDynamics,
    SignedAttention,
    SymmetricWalk,
)
from kuramotognn.graph import Graph
from kuramotognn.models.continuous import ContinuousGNN
from kuramotognn.models.discrete import DiscreteGNN
from kuramotognn.parallel.distributed_model import DistributedModel
from kuramotognn.parallel.exchange import Ranks
from kuramotognn.parallel.halo import Halo, HaloGraph
from kuramotognn.partition import metis_parts
from kuramotognn.solve import Solution
from kuramotognn.typing import Index, Logits, Nodes


class NodeParallel(DistributedModel):
    """A model with the nodes of its graph over the ranks of a group, by METIS."""

    def __init__(self, model: ContinuousGNN | DiscreteGNN, ranks: Ranks) -> None:
        super().__init__(model, ranks)
        if isinstance(model, ContinuousGNN):
            _check_adjacency(model.field.adjacency)
            if isinstance(model.field, Diffusion) and model.field.source == "labelled":
                raise ValueError("a source of labelled nodes needs their mean; spread its channels, not its nodes")
        self._halos: WeakKeyDictionary[Graph, Halo] = WeakKeyDictionary()
        self._parts: WeakKeyDictionary[Graph, HaloGraph] = WeakKeyDictionary()

    def halo(self, graph: Graph) -> Halo:
        """The part of the graph that this rank has."""
        if graph not in self._halos:
            parts = metis_parts(graph.pattern, self.ranks.size) if self.ranks.rank == 0 else None
            owner = self.ranks.from_first(None if parts is None else parts.cpu()).to(graph.weight.device)
            self._halos[graph] = Halo.of(graph.pattern, owner, self.ranks)
        return self._halos[graph]

    def own_nodes(self, graph: Graph) -> list[Index]:
        """The nodes of each part."""
        return self.halo(graph).own

    def describe(self, graph: Graph) -> str:
        """Parts, cut and traffic in words."""
        halo = self.halo(graph)
        sizes = ", ".join(str(nodes.numel()) for nodes in halo.own)
        cut = f"nodes over {self.ranks.size} ranks ({sizes}): {halo.cut_edges} of {graph.num_edges} edges cut"
        if not isinstance(self.model, ContinuousGNN):
            return f"{cut}, {halo.halo_rows} rows exchanged in each layer"
        size = halo.halo_rows * self.model.hidden_channels * graph.weight.element_size()
        return f"{cut}, {halo.halo_rows} rows ({size / 1e6:.2f} MB) exchanged at each evaluation"

    def own_logits(self, x: FeatureRows, graph: Graph, nodes: Index | None) -> Logits:
        """Logits of the own nodes among ``nodes``."""
        if isinstance(self.model, ContinuousGNN):
            return super().own_logits(x, graph, nodes)
        with dropout_as_part(x.rows, x.entries):
            logits = self.model.predict(x.x, self._part(graph))
        chosen = self.chosen(graph, nodes)[1]
        return logits if chosen is None else logits.index_select(0, chosen)

    def states(self, x: FeatureRows, graph: Graph, save_at: Sequence[float] | None) -> Solution:
        """States of the own nodes along the flow."""
        assert isinstance(self.model, ContinuousGNN)
        halo, field = self.halo(graph), self.model.field
        with dropout_as_part(x.rows, x.entries):
            x0: Nodes = self.model.encoder(x.x)
            extended = halo.extend(x0)
            dynamics = field.dynamics(extended, self._couplings(extended, graph))
            return self.model.solve(of_own_nodes(dynamics, halo), x0, save_at)

    def _couplings(self, extended: Nodes, graph: Graph) -> Couplings:
        assert isinstance(self.model, ContinuousGNN)
        field = self.model.field
        whole = field.adjacency.support(graph)
        pattern, entries = self.halo(graph).cut(whole.pattern, square=True)
        if isinstance(field.adjacency, RandomWalk | SymmetricWalk):  # Degrees are those of the whole graph.
            return Couplings(pattern, field.adjacency(extended, whole)[entries])
        part = Graph(pattern, whole.weight[entries])
        return Couplings.of(field.adjacency, extended, part, time_varying=field.time_varying)

    def _part(self, graph: Graph) -> HaloGraph:
        if graph not in self._parts:
            self._parts[graph] = HaloGraph.of(graph, self.halo(graph))
        return self._parts[graph]


def _check_adjacency(adjacency: Adjacency) -> None:
    if not isinstance(adjacency, Attention | SignedAttention | RandomWalk | SymmetricWalk):
        raise ValueError(f"an adjacency of type {type(adjacency).__name__} cannot be spread over ranks; start one rank")
    attention = adjacency.attention if isinstance(adjacency, SignedAttention) else adjacency
    if isinstance(attention, Attention) and (attention.normalise, attention.squash) != ("row", "softmax"):
        raise ValueError(
            f"attention with {attention.squash} over each {attention.normalise} needs all nodes in one process; "
            "take softmax over each row, or start one rank"
        )


def of_own_nodes(inner: Dynamics, halo: Halo) -> Dynamics:
    """Dynamics of the own nodes, from those of own nodes and halo: the halo's state is fetched at each evaluation."""
    if isinstance(inner, SecondOrderDynamics):
        return SecondOrderDynamics(
            lambda t, x, y: inner.acceleration(t, halo.extend(x.contiguous()), _padded(halo, y))[: halo.count],
            inner.parameters,
            None if inner.rate is None else partial(_own_rate, inner, halo),
            inner.after_step,
        )
    if isinstance(inner, DelayedDynamics):
        return DelayedDynamics(
            lambda t, x, past: inner.velocity(t, _padded(halo, x), halo.extend(past))[: halo.count],
            inner.delay,
            inner.parameters,
        )
    return (_HaloAdaptive if isinstance(inner, AdaptiveKuramotoDynamics) else _HaloDynamics)(inner, halo)


def _padded(halo: Halo, own: Nodes) -> Nodes:
    """Zeros for the halo, where its rows play no role."""
    return F.pad(own, (0, 0, 0, halo.total - halo.count))


def _own_rate(inner: SecondOrderDynamics, halo: Halo, y: Nodes) -> Nodes:
    return inner.position_rate(_padded(halo, y))[: halo.count]


@dataclass(frozen=True, eq=False)
class _HaloDynamics(Dynamics):
    """A state of one row a node."""

    inner: Any
    halo: Halo

    def __call__(self, t: float | Tensor, x: Nodes) -> Nodes:
        velocity: Nodes = self.inner(t, self.halo.extend(x))[: self.halo.count]
        return velocity

    def tensors(self) -> tuple[Tensor, ...]:
        found: tuple[Tensor, ...] = self.inner.tensors()
        return found


class _HaloAdaptive(_HaloDynamics):
    """Phases of the own nodes and couplings of the edges to them, flat as :class:`AdaptiveKuramotoDynamics` has it."""

    def __call__(self, t: float | Tensor, x: Tensor) -> Tensor:
        phases = self.halo.extend(self.nodes(x))
        velocity = self.inner(t, torch.cat([phases.flatten(), x[self._split() :]]))
        turn = self.inner.nodes(velocity)[: self.halo.count]
        return torch.cat([turn.flatten(), self.inner.couplings(velocity)])

    def start(self, x0: Nodes) -> Tensor:
        return torch.cat([x0.flatten(), self.inner.a0])

    def nodes(self, states: Tensor) -> Nodes:
        own = states[..., : self._split()]
        return own.reshape(*states.shape[:-1], self.halo.count, self.inner.omega.size(1))

    def _split(self) -> int:
        width: int = self.inner.omega.size(1)
        return self.halo.count * width
