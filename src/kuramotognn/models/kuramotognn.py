"""KuramotoGNN, and its flow alone as a layer for other models."""

from __future__ import annotations

from functools import partial
from typing import Any

from kuramotognn.fields import Equation, Gradient, PhaseField
from kuramotognn.models.continuous import AttentionWeights, ContinuousGNN, Edges, GraphFlow
from kuramotognn.typing import EdgeWeight, Nodes, PositiveFloat, PositiveInt


class KuramotoConv(GraphFlow):
    r"""The Kuramoto flow as a graph layer: phases in, phases after ``time`` out, same width.

    .. math::
        \dot x_i = x_i(0) + K \sum_j a_{ij} \sin(x_j - x_i)

    from `"From Coupled Oscillators to Graph Neural Networks" <https://arxiv.org/abs/2311.03260>`_.

    Args:
        channels: width ``d`` of the node states.
        time: integration time ``T``, the depth.
        coupling: coupling strength ``K``.
        frequencies: ``attached``, or ``detached`` as in the authors' code: no gradient through the frequencies.
        equation: another equation of the Kuramoto family, such as ``Sakaguchi(lag=0.3)``.
        **flow: options of :class:`~kuramotognn.models.GraphFlow`.

    Shapes:
        - **input:** node features ``[N, d]``, edge indices ``[2, E]``, edge weights ``[E]`` *(optional)*
        - **output:** node features ``[N, d]``
    """

    def __init__(
        self,
        channels: PositiveInt,
        *,
        time: PositiveFloat = 1.0,
        coupling: PositiveFloat = 1.0,
        frequencies: Gradient = "attached",
        equation: Equation | None = None,
        **flow: Any,
    ) -> None:
        field = partial(PhaseField, equation=equation, coupling=coupling, frequencies=frequencies)
        super().__init__(channels, field, time=time, **flow)
        self.in_channels = self.hidden_channels = self.out_channels = channels

    def forward(
        self,
        x: Nodes,
        edge_index: Edges,
        edge_weight: EdgeWeight | None = None,
        *,
        return_attention_weights: bool = False,
    ) -> Nodes | tuple[Nodes, AttentionWeights]:
        """The phases ``x`` after ``time``; and the couplings at the input if wanted."""
        final = self.integrate(x, edge_index, edge_weight).final
        return (final, self.attention_weights(x, edge_index, edge_weight)) if return_attention_weights else final


class KuramotoGNN(ContinuousGNN):
    r"""The Kuramoto graph neural network: nodes synchronise in frequency and stay apart in phase.

    .. math::
        \dot x_i = \omega_i + K \sum_j a_{ij} \sin(x_j - x_i), \qquad X(0) = \Omega = \psi(V), \qquad
        y = D\, x(T) + b

    from `"From Coupled Oscillators to Graph Neural Networks: Reducing Over-smoothing via a Kuramoto Model-based
    Approach" <https://arxiv.org/abs/2311.03260>`_.

    Args:
        in_channels: width ``F`` of the node features.
        hidden_channels: width ``d`` of the phases.
        out_channels: number of classes.
        coupling: coupling strength ``K``.
        frequencies: ``attached``, or ``detached`` as in the authors' code: no gradient through the frequencies.
        equation: another equation of the Kuramoto family, such as ``Sakaguchi(lag=0.3)``.
        **options: those of :class:`ContinuousGNN` and :class:`~kuramotognn.models.GraphFlow`.

    Shapes:
        - **input:** features ``[N, F]`` dense or sparse, edge indices ``[2, E]``, edge weights ``[E]`` *(optional)*
        - **output:** logits ``[N, out_channels]``

    Example:
        >>> model = KuramotoGNN(1433, 64, 7, time=8.0, coupling=1.5)
        >>> logits = model(data.x, data.edge_index)  # doctest: +SKIP
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: PositiveInt,
        out_channels: int,
        *,
        coupling: PositiveFloat = 1.0,
        frequencies: Gradient = "attached",
        equation: Equation | None = None,
        **options: Any,
    ) -> None:
        field = partial(PhaseField, equation=equation, coupling=coupling, frequencies=frequencies)
        super().__init__(in_channels, hidden_channels, out_channels, field, **options)
