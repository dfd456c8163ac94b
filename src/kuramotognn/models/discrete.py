"""Graph networks with layers: GCN, GAT, GraphSAGE and GCNII, with PyG's layers and signatures."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, ClassVar, Literal, TypeAlias

import torch
import torch.nn.functional as F
from torch import nn

from kuramotognn.checks import check_choice, check_dropout, check_positive
from kuramotognn.features import Features, affine, as_features, check_width, dropout
from kuramotognn.fields.coupling import check_heads
from kuramotognn.graph import Graph, as_graph
from kuramotognn.models.continuous import Edges, reset_children
from kuramotognn.models.distributed import Distributed
from kuramotognn.typing import EdgeWeight, Index, Logits, PositiveFloat, PositiveInt, Probability

# PyG's layers (kuramotognn.models.layers) are imported by those who build such a model: loading PyG takes seconds.

Norm: TypeAlias = Literal["none", "batch", "layer"]
LayerInit: TypeAlias = Literal["glorot", "uniform"]
NORMS: tuple[Norm, ...] = ("none", "batch", "layer")


class DiscreteGNN(nn.Module, ABC):
    """A graph network of layers, with the signature of PyG's ``BasicGNN``.

    Called as PyG models are: ``model(x, edge_index[, edge_weight])``. A :class:`~kuramotognn.Graph` built once may
    stand in place of ``edge_index``; the normalised weights of a graph are computed once.

    Args:
        in_channels: width ``F`` of the node features.
        hidden_channels: width of the hidden states.
        num_layers: number of convolutions, the depth.
        out_channels: number of classes; ``hidden_channels`` unless given.
        dropout: dropout on the states before a layer.
        input_dropout: dropout on the features.
        residual: add a layer's input to its output where both have one width.
        norm: normalisation after a layer: ``none``, ``batch`` or ``layer``.

    Shapes:
        - **input:** features ``[N, F]`` dense or sparse, edge indices ``[2, E]``, edge weights ``[E]`` *(optional)*
        - **output:** logits ``[N, out_channels]``
    """

    __signature__: ClassVar[inspect.Signature]

    def __init_subclass__(cls, **options: Any) -> None:
        """Show the sizes in the signatures of subclasses, which pass them on as ``*sizes``."""
        super().__init_subclass__(**options)
        sizes = list(inspect.signature(DiscreteGNN).parameters.values())[:4]
        own = inspect.signature(cls.__init__).parameters.values()
        cls.__signature__ = inspect.Signature([*sizes, *(each for each in own if each.kind >= each.KEYWORD_ONLY)])

    def __init__(
        self,
        in_channels: int,
        hidden_channels: PositiveInt,
        num_layers: PositiveInt,
        out_channels: int | None = None,
        *,
        dropout: Probability = 0.5,
        input_dropout: Probability = 0.5,
        residual: bool = False,
        norm: Norm = "none",
    ) -> None:
        super().__init__()
        check_positive("num_layers", num_layers)
        check_dropout("dropout", dropout)
        check_dropout("input_dropout", input_dropout)
        check_choice("norm", norm, NORMS)
        self.in_channels, self.hidden_channels, self.num_layers = in_channels, hidden_channels, num_layers
        self.out_channels = hidden_channels if out_channels is None else out_channels
        self.dropout, self.input_dropout, self.residual, self.norm = dropout, input_dropout, residual, norm
        self.distributed: Distributed | None = None

    def forward(
        self, x: Features, edge_index: Edges, edge_weight: EdgeWeight | None = None, *, nodes: Index | None = None
    ) -> Logits:
        """Predict for every node, or for some; see :meth:`ContinuousGNN.forward`."""
        if self.distributed is not None:
            return self.distributed.logits(x, edge_index, edge_weight, nodes)
        x = as_features(x)
        check_width(x, self.in_channels)
        logits = self.predict(x, as_graph(edge_index, x.shape[0], edge_weight, next(self.parameters())))
        return logits if nodes is None else logits.index_select(0, nodes)

    @abstractmethod
    def predict(self, x: Features, graph: Graph) -> Logits:
        """Logits of every node."""

    def make_norms(self, count: int) -> nn.ModuleList:
        """The normalisations of ``count`` hidden layers."""
        from torch_geometric import nn as pyg

        made = {"none": nn.Identity, "batch": pyg.BatchNorm, "layer": lambda width: pyg.LayerNorm(width, mode="node")}
        return nn.ModuleList(made[self.norm](self.hidden_channels) for _ in range(count))

    def reset_parameters(self) -> None:
        """Reset every learnable parameter."""
        reset_children(self)


class ConvStack(DiscreteGNN):
    """Convolutions; between two of them normalisation, activation and dropout, as in PyG's ``BasicGNN``.

    Args:
        *sizes: ``in_channels, hidden_channels, num_layers, out_channels`` of :class:`DiscreteGNN`.
        conv_options: passed on to :meth:`make_conv`.
        **options: those of :class:`DiscreteGNN`.
    """

    activation: ClassVar[nn.Module] = nn.ReLU()

    def __init__(self, *sizes: Any, conv_options: Mapping[str, Any] | None = None, **options: Any) -> None:
        super().__init__(*sizes, **options)
        widths = [self.in_channels, *[self.hidden_channels] * (self.num_layers - 1), self.out_channels]
        self.convs = nn.ModuleList(
            self.make_conv(before, after, last=number == self.num_layers - 1, **conv_options or {})
            for number, (before, after) in enumerate(pairwise(widths))
        )
        self.norms = self.make_norms(self.num_layers - 1)

    @abstractmethod
    def make_conv(self, before: int, after: int, *, last: bool) -> nn.Module:
        """A convolution from width ``before`` to width ``after``."""

    def predict(self, x: Features, graph: Graph) -> Logits:
        """Logits of every node."""
        states = self.convs[0](dropout(x, self.input_dropout, self.training), graph)
        for conv, norm in zip(self.convs[1:], self.norms, strict=True):
            before = self.activation(norm(states))
            states = conv(dropout(before, self.dropout, self.training), graph)
            if self.residual and states.shape == before.shape:
                states = states + before
        logits: Logits = states
        return logits


class GCN(ConvStack):
    r"""Graph convolutions.

    .. math::
        X^{l+1} = \sigma(\hat D^{-1/2} \hat A \hat D^{-1/2} X^l W^l + b^l), \qquad \hat A = A + I

    from `"Semi-Supervised Classification with Graph Convolutional Networks" <https://arxiv.org/abs/1609.02907>`_; the
    layers are ``torch_geometric.nn.GCNConv``. See :class:`DiscreteGNN` for all options.
    """

    def make_conv(self, before: int, after: int, *, last: bool) -> nn.Module:
        """A graph convolution."""
        from kuramotognn.models.layers import GCNConv

        return GCNConv(before, after)


class GraphSAGE(ConvStack):
    r"""GraphSAGE with means over whole neighbourhoods.

    .. math::
        x_i^{l+1} = \sigma(W_1^l \operatorname{mean}_{j \in \mathcal{N}(i)} x_j^l + W_2^l x_i^l + b^l)

    from `"Inductive Representation Learning on Large Graphs" <https://arxiv.org/abs/1706.02216>`_; the layers are
    ``torch_geometric.nn.SAGEConv``. Edge weights weigh the mean. See :class:`DiscreteGNN` for all options.
    """

    def make_conv(self, before: int, after: int, *, last: bool) -> nn.Module:
        """A mean over neighbours, and the node itself."""
        from kuramotognn.models.layers import SAGEConv

        return SAGEConv(before, after)


class GAT(ConvStack):
    r"""Graph attention.

    .. math::
        x_i^{l+1} = \sigma\Big( \Big\Vert_h \sum_j \alpha^h_{ij} W^h x_j^l + b \Big), \qquad
        \alpha^h_{ij} = \mathrm{softmax}_j\, \mathrm{LeakyReLU}(p_h \cdot W^h x_i + q_h \cdot W^h x_j)

    with a self-loop at every node, from `"Graph Attention Networks" <https://arxiv.org/abs/1710.10903>`_; the layers
    are ``torch_geometric.nn.GATConv``, the activation is ELU. Heads are concatenated, in the last layer averaged. An
    edge weight multiplies the exponential inside the softmax.

    Args:
        *sizes: ``in_channels, hidden_channels, num_layers, out_channels`` of :class:`DiscreteGNN`.
        heads: attention heads; they divide the hidden channels.
        out_heads: attention heads of the last layer, averaged.
        attention_dropout: dropout on the attention.
        **options: those of :class:`DiscreteGNN`.
    """

    activation: ClassVar[nn.Module] = nn.ELU()

    def __init__(
        self,
        *sizes: Any,
        heads: PositiveInt = 8,
        out_heads: PositiveInt = 1,
        attention_dropout: Probability = 0.5,
        **options: Any,
    ) -> None:
        check_dropout("attention_dropout", attention_dropout)
        conv_options = {"heads": heads, "out_heads": out_heads, "dropout": attention_dropout}
        super().__init__(*sizes, conv_options=conv_options, **options)

    def make_conv(self, before: int, after: int, *, last: bool, **options: Any) -> nn.Module:
        """An attention layer."""
        from kuramotognn.models.layers import GATConv

        heads, out_heads, dropout = options["heads"], options["out_heads"], options["dropout"]
        if last:
            return GATConv(before, after, heads=out_heads, concat=False, dropout=dropout)
        check_heads(heads, after)
        return GATConv(before, after // heads, heads=heads, dropout=dropout)

    def forward(self, *inputs: Any, return_attention_weights: bool = False, **options: Any) -> Any:
        """Predict, as :meth:`DiscreteGNN.forward` does; and the attention of the last layer if wanted."""
        if not return_attention_weights:
            return super().forward(*inputs, **options)
        if self.distributed is not None:
            raise ValueError("attention weights are for one process; call a copy of the model with them")
        seen: list[tuple[Any, ...]] = []
        last: Any = self.convs[-1]
        hook = last.register_forward_pre_hook(lambda module, args: seen.append(args))
        try:
            logits = super().forward(*inputs, **options)
        finally:
            hook.remove()
        from kuramotognn.models.layers import with_unit_loops

        x, graph = seen[0]
        pattern, _, attention = last.attention(x, with_unit_loops(graph))
        return logits, (torch.stack([pattern.col, pattern.row]), attention)


class GCNII(DiscreteGNN):
    r"""Deep graph convolutions with initial residual and identity mapping.

    .. math::
        X^{l+1} = \sigma\big( ((1 - \alpha) P X^l + \alpha X^0) ((1 - \beta_l) I + \beta_l W^l) \big), \qquad
        \beta_l = \log(\theta / l + 1), \qquad P = \hat D^{-1/2} \hat A \hat D^{-1/2}

    between two affine maps, from `"Simple and Deep Graph Convolutional Networks" <https://arxiv.org/abs/2007.02133>`_;
    the layers are ``torch_geometric.nn.GCN2Conv``.

    Args:
        *sizes: ``in_channels, hidden_channels, num_layers, out_channels`` of :class:`DiscreteGNN`.
        alpha: share of the initial state in every layer.
        theta: how much the first layers transform.
        init: initial weights of the layers: ``glorot`` as in PyG, or ``uniform`` within one over the root of the width
            as in the authors' code.
        **options: those of :class:`DiscreteGNN`.
    """

    def __init__(
        self,
        *sizes: Any,
        alpha: Probability = 0.1,
        theta: PositiveFloat = 0.5,
        init: LayerInit = "glorot",
        **options: Any,
    ) -> None:
        from kuramotognn.models.layers import GCN2Conv

        super().__init__(*sizes, **options)
        check_positive("theta", theta)
        check_choice("init", init, ("glorot", "uniform"))
        if not 0 <= alpha < 1:
            raise ValueError(f"alpha must be at least 0 and below 1, got {alpha}")
        width = self.hidden_channels
        self.encoder = nn.Linear(self.in_channels, width)
        self.convs = nn.ModuleList(GCN2Conv(width, alpha, theta, number + 1) for number in range(self.num_layers))
        self.norms = self.make_norms(self.num_layers)
        self.decoder = nn.Linear(width, self.out_channels)
        self.init: LayerInit = init
        if init == "uniform":
            self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reset every learnable parameter."""
        super().reset_parameters()
        if self.init == "uniform":
            bound = self.hidden_channels**-0.5
            for conv in self.convs:
                nn.init.uniform_(conv.weight1, -bound, bound)  # type: ignore[arg-type]

    def predict(self, x: Features, graph: Graph) -> Logits:
        """Logits of every node."""
        first = affine(dropout(x, self.input_dropout, self.training), self.encoder.weight, self.encoder.bias).relu()
        states = first
        for conv, norm in zip(self.convs, self.norms, strict=True):
            new = norm(conv(dropout(states, self.dropout, self.training), first, graph))
            states = F.relu(new + states if self.residual else new)
        logits: Logits = self.decoder(dropout(states, self.dropout, self.training))
        return logits
