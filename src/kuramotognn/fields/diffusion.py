"""Diffusion on a graph: the Kuramoto model for small phases."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from kuramotognn.checks import check_choice, check_dropout
from kuramotognn.fields.base import GRADIENTS, CoupledDynamics, Field, Gradient
from kuramotognn.fields.coupling import Adjacency, Couplings
from kuramotognn.typing import Index, Nodes

Source: TypeAlias = Literal["initial", "labelled", "none"]
SOURCES: tuple[Source, ...] = ("initial", "labelled", "none")


class Diffusion(Field):
    r"""Graph diffusion with a source.

    .. math::
        \dot x = \alpha (A - I)\, x + u

    from `"GRAND: Graph Neural Diffusion" <https://arxiv.org/abs/2106.10934>`_ as its code writes it: :math:`\alpha` is
    the logistic function of a learnt number. The source is one of

    - ``"initial"``: :math:`u = \beta\, x(0)`, where :math:`\beta` is learnt and starts at zero;
    - ``"labelled"``: :math:`u_i = x_i(0) - \frac{1}{|I|} \sum_{j \in I} x_j(0)` for the nodes :math:`i \in I` that
      have a label for training, 0 for all others, from `"GRAND++: Graph Neural Diffusion with A Source Term"
      <https://openreview.net/forum?id=EMxu-dzvJk>`_. The sources add to zero. :func:`~kuramotognn.fit` sets the
      training nodes by :meth:`set_training_nodes`; they are saved with the parameters;
    - ``"none"``.

    Args:
        adjacency: gives the couplings.
        source: which constant term.
        source_dropout: while training, drop each labelled source with this probability and scale the others up. Not in
            the paper: a training node that is always its own source makes the training loss too easy.
        source_gradient: whether gradients flow through the source (``"attached"``) or not (``"detached"``).
        time_varying: take the couplings from the state at every evaluation (GRAND-nl) instead of once at ``x(0)``.
    """

    training_nodes: Tensor

    def __init__(
        self,
        adjacency: Adjacency,
        *,
        source: Source = "initial",
        source_dropout: float = 0.5,
        source_gradient: Gradient = "attached",
        time_varying: bool = False,
    ) -> None:
        super().__init__(adjacency, time_varying=time_varying)
        check_choice("source", source, SOURCES)
        check_dropout("source_dropout", source_dropout)
        check_choice("source_gradient", source_gradient, GRADIENTS)
        self.source: Source = source
        self.source_dropout = source_dropout
        self.source_gradient: Gradient = source_gradient
        self.alpha = nn.Parameter(torch.zeros(()))
        self.beta = nn.Parameter(torch.zeros(())) if source == "initial" else None
        if source == "labelled":
            self.register_buffer("training_nodes", torch.empty(0, dtype=torch.long))

    @property
    def separable(self) -> bool:
        """Channels diffuse apart unless the attention at each evaluation takes all of them."""
        return not self.time_varying

    def reset_parameters(self) -> None:
        """Reset the couplings; start with α = 1/2 and no source."""
        super().reset_parameters()
        nn.init.zeros_(self.alpha)
        if self.beta is not None:
            nn.init.zeros_(self.beta)

    def set_training_nodes(self, nodes: Index) -> None:
        """Make these nodes, and no others, the labelled ones; other sources ignore them."""
        if self.source == "labelled":
            self.training_nodes = torch.unique(nodes).to(self.training_nodes.device)

    def dynamics(self, x0: Nodes, couplings: Couplings) -> CoupledDynamics:
        """Linear coupling with the source of ``x0``."""
        known = x0.detach() if self.source_gradient == "detached" else x0
        return CoupledDynamics(couplings, self._source(known), self.alpha.sigmoid(), linear=True)

    def _source(self, x0: Nodes) -> Nodes:
        if self.beta is not None:
            return self.beta * x0
        if self.source == "none":
            return torch.zeros_like(x0)
        self._check_training_nodes(x0.size(0))
        labelled = x0.index_select(0, self.training_nodes)
        kept = F.dropout(labelled.new_ones(labelled.size(0), 1), self.source_dropout, self.training)
        return torch.zeros_like(x0).index_copy(0, self.training_nodes, kept * (labelled - labelled.mean(dim=0)))

    def _check_training_nodes(self, num_nodes: int) -> None:
        if not self.training_nodes.numel():
            raise ValueError(
                "the source is the labelled nodes, and none is known yet; train with fit, load trained parameters, or "
                "call set_training_nodes with them"
            )
        if (last := int(self.training_nodes[-1])) >= num_nodes:
            raise ValueError(
                f"the labelled nodes go up to number {last}, but the graph has {num_nodes} nodes; "
                "call set_training_nodes with those of this graph"
            )

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        # The number of labelled nodes is not known before.
        if (saved := state_dict.get(f"{prefix}training_nodes")) is not None and self.source == "labelled":
            self.training_nodes = self.training_nodes.new_empty(saved.shape)
        super()._load_from_state_dict(state_dict, prefix, *args)

    def extra_repr(self) -> str:
        """Options shown by ``print(model)``."""
        return f"source={self.source!r}, time_varying={self.time_varying}"
