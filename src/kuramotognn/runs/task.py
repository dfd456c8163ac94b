"""The data of a run, ready for models."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from kuramotognn.batches import set_training_nodes
from kuramotognn.checkpoints import CheckpointFolder
from kuramotognn.config.tree import Config
from kuramotognn.data import ColumnEncoder, Columns, GraphSummary, NodeDataset, Split
from kuramotognn.errors import SolverError, memory_ran_out
from kuramotognn.features import (
    FeatureRows,
    Features,
    check_features,
    compact_features,
    normalise_features,
    scale_features,
)
from kuramotognn.graph import Graph
from kuramotognn.kernels import use_backend
from kuramotognn.models.lookup import reason
from kuramotognn.models.registry import MODELS
from kuramotognn.parallel import distribute
from kuramotognn.parallel.launch import current_ranks
from kuramotognn.runs.provenance import backend
from kuramotognn.train_result import EpochMetrics, TrainResult
from kuramotognn.training import fit, predict
from kuramotognn.typing import Labels, Logits


@dataclass(frozen=True, eq=False)
class Task:
    """The data of a run: features, graph and labels on the run's device.

    Where features are fitted to training nodes (columns of a table, standardised numbers) :meth:`for_split` gives those
    of a split. One of several ranks keeps ``own_rows``, and no other features in ``x``.
    """

    config: Config
    dataset: NodeDataset
    x: Features
    graph: Graph
    y: Labels
    encoder: ColumnEncoder | None = None
    own_rows: FeatureRows | None = None

    @staticmethod
    def from_config(config: Config, on_read: Callable[[GraphSummary], None] | None = None) -> Task:
        """Load and prepare the data; ``on_read`` is called with a summary of the user's files."""
        dataset = config.data.load(config.dataset, on_read)
        return Task.of(config, dataset.largest_component() if config.data.largest_component else dataset)

    @staticmethod
    def of(config: Config, dataset: NodeDataset) -> Task:
        """Prepare a data set that was loaded."""
        check_features(dataset.x)
        edges = dataset.edge_index.flip(0) if config.data.reverse_edges else dataset.edge_index
        loops, graph = config.data.self_loops, None if config.data.reverse_edges else dataset.graph
        if graph is None:
            graph = Graph.from_edge_index(edges, dataset.num_nodes, dataset.edge_weight, self_loops=loops)
        elif loops:
            graph = graph.with_self_loops()
        task = Task(config, dataset, dataset.x, graph.to(config.device), dataset.y.to(config.device))
        return task._with_features(dataset.x)._with_own_rows()

    @property
    def fitted(self) -> bool:
        """Whether features are fitted to training nodes."""
        return self.dataset.columns is not None or self.config.data.normalisation == "standardise"

    def for_split(self, number: int) -> Task:
        """The task with features that are fitted to the training nodes of a split, where features are fitted at all."""
        standardise = self.config.data.normalisation == "standardise"
        if not self.fitted:
            return self
        return self.encoded(ColumnEncoder.fit(self._columns(), self.split(number).train, standardise=standardise))

    def encoded(self, encoder: ColumnEncoder) -> Task:
        """The task with the features that an encoder makes."""
        return replace(self._with_features(encoder.apply(self._columns())), encoder=encoder)

    def unseen(self) -> list[str]:
        """A sentence for each column with categories that no training node has."""
        return self.encoder.unseen(self._columns()) if self.encoder else []

    def split(self, number: int) -> Split:
        """Split ``number`` of the run's protocol."""
        return self.config.data.split(self.dataset, number)

    def model(self) -> nn.Module:
        """The run's model, initialised from its seed; the global generator is left as it was."""
        _check_memory(self.skeleton(), self.config.model.name)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.config.seed)
            model = self._build()
        model, ranks = model.to(self.config.device), current_ranks()
        return model if ranks is None else distribute(model, ranks.group)

    def try_model(self) -> nn.Module:
        """Build the model, to see that it can be; one that is not this library's may be any program: it predicts, too.

        Raises:
            ValueError: it cannot be built or called, or gives predictions of the wrong shape.
        """
        name, count = self.config.model.name, self.dataset.num_nodes
        shape = wanted = [count, self.dataset.num_classes]
        try:
            model = self.model()
            if name not in MODELS:
                set_training_nodes(model, torch.arange(count, device=self.y.device))
                shape = list(self.predict(model).shape)
        except (ValueError, OSError, SolverError):
            raise
        except Exception as error:
            if name in MODELS or memory_ran_out(error):
                raise
            raise ValueError(f"{name} failed: {reason(error)}; it is called as model(x, edge_index)") from error
        if shape != wanted:
            raise ValueError(f"{name} must give a row a node and a column a class, {wanted}, and gave {shape}")
        return model

    def skeleton(self) -> nn.Module | None:
        """The model without memory for its parameters; None where its constructor needs their values."""
        return without_memory(self._build)

    def _build(self) -> nn.Module:
        return self.config.model.build(self.x.shape[1], self.dataset.num_classes, self.config.solver)

    def fit(
        self,
        model: nn.Module,
        split: Split,
        *,
        checkpoints: CheckpointFolder | None = None,
        on_epoch: Callable[[EpochMetrics], None] | None = None,
    ) -> TrainResult:
        """Train ``model`` on ``split`` with the run's settings and kernels."""
        config = self.config
        with use_backend(config.backend):
            return fit(
                model,
                self.own_rows or self.x,
                self.graph,
                self.y,
                split,
                config=config.training,
                seed=config.seed,
                checkpoints=checkpoints,
                on_epoch=on_epoch,
            )

    @property
    def backend(self) -> str:
        """The kernels that the run uses: ``fused`` or ``torch``."""
        return backend(self.config)

    def predict(self, model: nn.Module, time: float | None = None) -> Logits:
        """Logits of every node with the run's kernels; see :func:`kuramotognn.predict`."""
        with use_backend(self.config.backend):
            return predict(model, self.own_rows or self.x, self.graph, time=time)

    def _columns(self) -> Columns:
        return self.dataset.columns or Columns.of_features(self.dataset.x)

    def _with_features(self, x: Features) -> Task:
        how = self.config.data.normalisation
        x = scale_features(x if how == "standardise" else normalise_features(x, how), self.config.data.scale)
        return replace(self, x=compact_features(x).to(self.config.device), own_rows=None)

    def _with_own_rows(self) -> Task:
        """With the features that one of several ranks needs, and no others; all where training nodes make features."""
        if current_ranks() is None or self.fitted:
            return self
        spread: Any = self.model()
        rows = spread.distributed.feature_rows(self.x, self.graph)
        return replace(self, dataset=replace(self.dataset, x=rows.x), x=rows.x, own_rows=rows)


def without_memory(build: Callable[[], nn.Module]) -> nn.Module | None:
    """What ``build`` makes, without memory for parameters; None where it needs their values."""
    with torch.random.fork_rng(devices=[]), torch.device("meta"):
        try:
            return build()
        except ValueError:
            raise
        except Exception:  # What constructors do with values that are not there, NumPy's errors among it.
            return None


def _check_memory(skeleton: nn.Module | None, name: str) -> None:
    """Refuse a model that cannot be trained here: parameters, gradients and the optimiser's two moments of them."""
    if skeleton is None or not hasattr(os, "sysconf"):
        return
    needed = 4 * sum(each.numel() * each.element_size() for each in skeleton.parameters())
    there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if needed > there:
        raise ValueError(
            f"training {name} with these settings takes {needed / 1e9:.3g} GB for its parameters alone, and this "
            f"machine has {there / 1e9:.3g} GB; lower model.hidden_channels"
        )
