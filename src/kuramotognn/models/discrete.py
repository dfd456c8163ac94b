"""Graph networks with layers: GCN, GAT, GraphSAGE and GCNII, of torch_geometric's own layers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from itertools import pairwise
from typing import ClassVar, Literal, TypeAlias

import torch.nn.functional as F
from pydantic import Field
from torch import nn

from kuramotognn.checks import check_choice, check_dropout, check_positive
from kuramotognn.features import Features, affine, as_features, dropout
from kuramotognn.fields.coupling import check_heads
from kuramotognn.graph import Graph, as_graph
from kuramotognn.models.settings import ModelInfo, ModelSettings
from kuramotognn.models.space import Choice, LogUniform, SearchSpace, Uniform
from kuramotognn.typing import EdgeIndex, EdgeWeight, Index, Logits, Nodes

Norm: TypeAlias = Literal["none", "batch", "layer"]
NORMS: tuple[Norm, ...] = ("none", "batch", "layer")


class DiscreteGNN(nn.Module, ABC):
    """A graph network of layers, called as PyG models are: ``model(x, edge_index[, edge_weight])``.

    A :class:`~kuramotognn.Graph` built once may stand in place of ``edge_index``; what a layer derives from it is then
    computed once.
    """

    def __init__(self, in_channels: int, *, dropout: float, input_dropout: float) -> None:
        super().__init__()
        check_dropout("dropout", dropout)
        check_dropout("input_dropout", input_dropout)
        self.in_channels, self.dropout, self.input_dropout = in_channels, dropout, input_dropout

    def forward(
        self,
        x: Features,
        edge_index: EdgeIndex | Graph,
        edge_weight: EdgeWeight | None = None,
        *,
        nodes: Index | None = None,
    ) -> Logits:
        """Predict for every node, or for some.

        Args:
            x: ``[N, F]`` features: a dense or sparse tensor, or :class:`~kuramotognn.SparseFeatures`.
            edge_index: ``[2, E]`` edges from row 0 to row 1, or a ready graph.
            edge_weight: ``[E]`` non-negative weights.
            nodes: predict for these nodes only; all of them take part.
        """
        x = as_features(x)
        check_width(x, self.in_channels)
        like = next(self.parameters())
        logits = self.predict(x, as_graph(edge_index, x.shape[0], edge_weight, like))
        return logits if nodes is None else logits.index_select(0, nodes)

    @abstractmethod
    def predict(self, x: Features, graph: Graph) -> Logits:
        """Logits of every node."""

    def reset_parameters(self) -> None:
        """Draw every learnable parameter anew."""
        for module in self.modules():
            reset = getattr(module, "reset_parameters", None)
            if module is not self and callable(reset):
                reset()


class LayeredGNN(DiscreteGNN):
    """Graph layers with dropout before, normalisation and a rectifier after each but the last.

    Args:
        in_channels: width ``F`` of the node features.
        widths: width of the states after each layer, the last being the number of classes.
        make: makes the layer ``number`` from its two widths.
        dropout: dropout on the states before each layer.
        input_dropout: dropout on the features.
        residual: add a layer's input to its output where both have one width.
        norm: ``"none"``, ``"batch"`` or ``"layer"`` normalisation after each layer but the last.
        activation: the rectifier.
    """

    def __init__(
        self,
        in_channels: int,
        widths: list[tuple[int, int]],
        make: Callable[[int, int, int], nn.Module],
        *,
        dropout: float,
        input_dropout: float,
        residual: bool,
        norm: Norm,
        activation: Callable[[Nodes], Nodes] = F.relu,
    ) -> None:
        super().__init__(in_channels, dropout=dropout, input_dropout=input_dropout)
        check_choice("norm", norm, NORMS)
        self.layers = nn.ModuleList(make(number, *pair) for number, pair in enumerate(widths))
        self.norms = nn.ModuleList(make_norm(norm, width) for _, width in widths[:-1])
        self.residual, self.activation = residual, activation

    def predict(self, x: Features, graph: Graph) -> Logits:
        """Logits of every node."""
        states = self.layers[0](dropout(x, self.input_dropout, self.training), graph)
        for layer, norm in zip(self.layers[1:], self.norms, strict=True):
            before = self.activation(norm(states))
            states = layer(dropout(before, self.dropout, self.training), graph)
            if self.residual and states.shape == before.shape:
                states = states + before
        logits: Logits = states
        return logits


class PlainGNN(LayeredGNN):
    """Layers that know nothing but their widths: what :class:`GCN` and :class:`GraphSAGE` share.

    Args:
        in_channels: width ``F`` of the node features.
        hidden_channels: width of the states between layers.
        out_channels: number of classes.
        layers: how many layers, the depth.
        dropout: dropout on the states before each layer but the first.
        input_dropout: dropout on the features.
        residual: add a hidden layer's input to its output.
        norm: ``"none"``, ``"batch"`` or ``"layer"`` normalisation after each layer but the last.

    Shapes:
        - **input:** features ``[N, F]`` dense or sparse, edge indices ``[2, E]``, edge weights ``[E]`` *(optional)*
        - **output:** logits ``[N, out_channels]``
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        layers: int = 2,
        dropout: float = 0.5,
        input_dropout: float = 0.5,
        residual: bool = False,
        norm: Norm = "none",
    ) -> None:
        super().__init__(
            in_channels,
            chain(in_channels, hidden_channels, out_channels, layers),
            lambda _, before, after: self.layer(before, after),
            dropout=dropout,
            input_dropout=input_dropout,
            residual=residual,
            norm=norm,
        )

    @staticmethod
    @abstractmethod
    def layer(before: int, after: int) -> nn.Module:
        """One layer from width ``before`` to width ``after``."""


class GCN(PlainGNN):
    r"""Graph convolutions.

    .. math::
        X^{l+1} = \sigma(\hat D^{-1/2} \hat A \hat D^{-1/2} X^l W^l + b^l), \qquad \hat A = A + I

    from `"Semi-Supervised Classification with Graph Convolutional Networks" <https://arxiv.org/abs/1609.02907>`_; the
    layers are ``torch_geometric.nn.GCNConv``. See :class:`PlainGNN` for all options.
    """

    @staticmethod
    def layer(before: int, after: int) -> nn.Module:
        """A graph convolution."""
        from kuramotognn.models.layers import GCNLayer

        return GCNLayer(before, after)


class GraphSAGE(PlainGNN):
    r"""GraphSAGE with means over whole neighbourhoods.

    .. math::
        x_i^{l+1} = \sigma(W_1^l \operatorname{mean}_{j \in \mathcal{N}(i)} x_j^l + W_2^l x_i^l + b^l)

    from `"Inductive Representation Learning on Large Graphs" <https://arxiv.org/abs/1706.02216>`_; the layers are
    ``torch_geometric.nn.SAGEConv``. Edge weights weigh the mean. See :class:`PlainGNN` for all options.
    """

    @staticmethod
    def layer(before: int, after: int) -> nn.Module:
        """A mean over neighbours, and the node itself."""
        from kuramotognn.models.layers import SAGELayer

        return SAGELayer(before, after)


class GAT(LayeredGNN):
    r"""Graph attention.

    .. math::
        x_i^{l+1} = \sigma\Big( \Big\Vert_h \sum_j \alpha^h_{ij} W^h x_j^l + b \Big), \qquad
        \alpha^h_{ij} = \mathrm{softmax}_j\, \mathrm{LeakyReLU}(p_h \cdot W^h x_i + q_h \cdot W^h x_j)

    with a self-loop at every node, from `"Graph Attention Networks" <https://arxiv.org/abs/1710.10903>`_; the layers
    are ``torch_geometric.nn.GATConv``, the rectifier is ELU. Heads are concatenated, in the last layer averaged. An
    edge weight multiplies the exponential inside the softmax.

    Args:
        in_channels: width ``F`` of the node features.
        hidden_channels: width of the states between layers, all heads together.
        out_channels: number of classes.
        layers: how many layers, the depth.
        heads: attention heads; they divide ``hidden_channels``.
        out_heads: attention heads of the last layer.
        dropout: dropout on the states before each layer but the first.
        input_dropout: dropout on the features.
        attention_dropout: dropout on the attention.
        residual: add a hidden layer's input to its output.
        norm: ``"none"``, ``"batch"`` or ``"layer"`` normalisation after each layer but the last.

    Shapes:
        - **input:** features ``[N, F]`` dense or sparse, edge indices ``[2, E]``, edge weights ``[E]`` *(optional)*
        - **output:** logits ``[N, out_channels]``
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        layers: int = 2,
        heads: int = 8,
        out_heads: int = 1,
        dropout: float = 0.6,
        input_dropout: float = 0.6,
        attention_dropout: float = 0.6,
        residual: bool = False,
        norm: Norm = "none",
    ) -> None:
        from kuramotognn.models.layers import GATLayer

        check_heads(heads, hidden_channels)
        check_dropout("attention_dropout", attention_dropout)

        def make(number: int, before: int, after: int) -> nn.Module:
            last = number == layers - 1
            return GATLayer(
                before,
                after if last else after // heads,
                heads=out_heads if last else heads,
                concat=not last,
                dropout=attention_dropout,
            )

        super().__init__(
            in_channels,
            chain(in_channels, hidden_channels, out_channels, layers),
            make,
            dropout=dropout,
            input_dropout=input_dropout,
            residual=residual,
            norm=norm,
            activation=F.elu,
        )


class GCNII(DiscreteGNN):
    r"""Deep graph convolutions with initial residual and identity mapping.

    .. math::
        X^{l+1} = \sigma\big( ((1 - \alpha) P X^l + \alpha X^0) ((1 - \beta_l) I + \beta_l W^l) \big), \qquad
        \beta_l = \log(\theta / l + 1), \qquad P = \hat D^{-1/2} \hat A \hat D^{-1/2}

    between two affine maps, from `"Simple and Deep Graph Convolutional Networks" <https://arxiv.org/abs/2007.02133>`_;
    the layers are ``torch_geometric.nn.GCN2Conv``.

    Args:
        in_channels: width ``F`` of the node features.
        hidden_channels: width of the states.
        out_channels: number of classes.
        layers: how many layers, the depth.
        alpha: share of the initial state in every layer.
        theta: how much the first layers transform.
        dropout: dropout on the states before each layer and the last map.
        input_dropout: dropout on the features.
        residual: add a layer's input to its output.
        norm: ``"none"``, ``"batch"`` or ``"layer"`` normalisation after each layer.

    Shapes:
        - **input:** features ``[N, F]`` dense or sparse, edge indices ``[2, E]``, edge weights ``[E]`` *(optional)*
        - **output:** logits ``[N, out_channels]``
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        layers: int = 64,
        alpha: float = 0.1,
        theta: float = 0.5,
        dropout: float = 0.6,
        input_dropout: float = 0.6,
        residual: bool = False,
        norm: Norm = "none",
    ) -> None:
        from kuramotognn.models.layers import GCNIILayer

        super().__init__(in_channels, dropout=dropout, input_dropout=input_dropout)
        check_positive("layers", layers)
        check_choice("norm", norm, NORMS)
        check_positive("theta", theta)
        if not 0 <= alpha < 1:
            raise ValueError(f"alpha must be at least 0 and below 1, got {alpha}")
        self.encoder = nn.Linear(in_channels, hidden_channels)
        self.layers = nn.ModuleList(
            GCNIILayer(hidden_channels, alpha=alpha, theta=theta, layer=number + 1) for number in range(layers)
        )
        self.norms = nn.ModuleList(make_norm(norm, hidden_channels) for _ in range(layers))
        self.decoder = nn.Linear(hidden_channels, out_channels)
        self.residual = residual

    def predict(self, x: Features, graph: Graph) -> Logits:
        """Logits of every node."""
        first = affine(dropout(x, self.input_dropout, self.training), self.encoder.weight, self.encoder.bias).relu()
        states = first
        for layer, norm in zip(self.layers, self.norms, strict=True):
            new = norm(layer(dropout(states, self.dropout, self.training), first, graph))
            states = F.relu(new + states if self.residual else new)
        logits: Logits = self.decoder(dropout(states, self.dropout, self.training))
        return logits


def chain(first: int, hidden: int, last: int, layers: int) -> list[tuple[int, int]]:
    """The widths before and after each layer."""
    check_positive("layers", layers)
    widths = [first, *[hidden] * (layers - 1), last]
    return list(pairwise(widths))


def make_norm(norm: Norm, width: int) -> nn.Module:
    """The normalisation of that name."""
    if norm == "batch":
        return nn.BatchNorm1d(width)
    return nn.LayerNorm(width) if norm == "layer" else nn.Identity()


def check_width(x: Features, width: int) -> None:
    """Refuse features of another width than the model was made for."""
    if x.shape[1:] != (width,):
        raise ValueError(f"x must have shape [N, {width}], got {list(x.shape)}")


class DiscreteSettings(ModelSettings):
    """What the settings of all models with layers share."""

    integrates: ClassVar[bool] = False
    search_space: ClassVar[SearchSpace] = {
        "data.normalisation": Choice(("none", "row-sum")),
        "model.hidden_channels": Choice((16, 32, 64, 128)),
        "model.layers": Choice((2, 3)),
        "model.input_dropout": Uniform(0.2, 0.9),
        "model.dropout": Uniform(0.2, 0.9),
        "model.residual": Choice((False, True)),
        "model.norm": Choice(("none", "batch", "layer")),
        "training.learning_rate": LogUniform(0.002, 0.05),
        "training.weight_decay": LogUniform(0.0005, 0.1),
    }

    layers: int = Field(2, ge=1, description="Number of layers, the depth.")
    dropout: float = Field(0.5, ge=0, lt=1, description="Dropout on the states before a layer.")
    input_dropout: float = Field(0.5, ge=0, lt=1, description="Dropout on the features.")
    residual: bool = Field(False, description="Add a layer's input to its output where the widths agree.")
    norm: Norm = Field("none", description="Normalisation after a layer.")


class GCNSettings(DiscreteSettings):
    """Settings of :class:`GCN`."""

    name: Literal["gcn"] = "gcn"

    @staticmethod
    def constructor() -> Callable[..., nn.Module]:
        """The class these settings are of."""
        return GCN


class GraphSAGESettings(DiscreteSettings):
    """Settings of :class:`GraphSAGE`."""

    name: Literal["graphsage"] = "graphsage"

    @staticmethod
    def constructor() -> Callable[..., nn.Module]:
        """The class these settings are of."""
        return GraphSAGE


class GATSettings(DiscreteSettings):
    """Settings of :class:`GAT`."""

    search_space: ClassVar[SearchSpace] = {
        **DiscreteSettings.search_space,
        "model.hidden_channels": Choice((32, 64, 128)),
        "model.heads": Choice((4, 8)),
        "model.attention_dropout": Uniform(0.2, 0.8),
    }

    name: Literal["gat"] = "gat"
    heads: int = Field(8, ge=1, description="Attention heads; they divide hidden-channels.")
    out_heads: int = Field(1, ge=1, description="Attention heads of the last layer, averaged.")
    attention_dropout: float = Field(0.5, ge=0, lt=1, description="Dropout on the attention.")

    @staticmethod
    def constructor() -> Callable[..., nn.Module]:
        """The class these settings are of."""
        return GAT


class GCNIISettings(DiscreteSettings):
    """Settings of :class:`GCNII`."""

    search_space: ClassVar[SearchSpace] = {
        **DiscreteSettings.search_space,
        "model.hidden_channels": Choice((64, 128)),
        "model.layers": Choice((8, 16, 32, 64)),
        "model.alpha": Uniform(0.05, 0.3),
        "model.theta": Uniform(0.2, 1.0),
        "model.residual": Choice((False,)),
        "model.norm": Choice(("none",)),
    }

    name: Literal["gcnii"] = "gcnii"
    layers: int = Field(16, ge=1, description="Number of layers, the depth.")
    alpha: float = Field(0.1, ge=0, lt=1, description="Share of the initial state in every layer.")
    theta: float = Field(0.5, gt=0, description="How much the first layers transform.")

    @staticmethod
    def constructor() -> Callable[..., nn.Module]:
        """The class these settings are of."""
        return GCNII


_PRODUCT = "the sparse products of features and graph"

MODELS = (
    ModelInfo(
        name="gcn",
        settings=GCNSettings,
        equation="X' = σ(P X W + b),  P = D̂^(−1/2) (A + I) D̂^(−1/2)",
        reference="Kipf and Welling, ICLR 2017, arXiv:1609.02907",
        cost="a layer: one product with the weights O(N d²), one sparse product O(E d)",
        use="the first thing to try; two layers",
        fused=_PRODUCT,
    ),
    ModelInfo(
        name="gat",
        settings=GATSettings,
        equation="x_i' = σ(∥_h Σ_j α^h_ij W^h x_j + b),  α^h_ij = softmax_j LeakyReLU(p_h·W^h x_i + q_h·W^h x_j)",
        reference="Veličković et al., ICLR 2018, arXiv:1710.10903",
        cost="a layer: O(N d²), attention and messages of every edge and head O(E d) with E × d temporaries",
        use="when neighbours matter unequally",
        fused="the sparse product of the features; messages in torch",
    ),
    ModelInfo(
        name="graphsage",
        settings=GraphSAGESettings,
        equation="x_i' = σ(W₁ mean_j x_j + W₂ x_i + b)",
        reference="Hamilton et al., NeurIPS 2017, arXiv:1706.02216",
        cost="a layer: two products with weights O(N d²), one sparse product O(E d)",
        use="when a node's own features should be kept apart from its neighbours'",
        fused=_PRODUCT,
    ),
    ModelInfo(
        name="gcnii",
        settings=GCNIISettings,
        equation="X' = σ(((1 − α) P X + α X⁰)((1 − β_l) I + β_l W)),  β_l = log(θ/l + 1)",
        reference="Chen et al., ICML 2020, arXiv:2007.02133",
        cost="a layer: one product with the weights O(N d²), one sparse product O(E d)",
        use="deep stacks of convolutions, tens of layers",
        fused=_PRODUCT,
    ),
)
