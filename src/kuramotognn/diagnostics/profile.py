"""Measures over the depth of a model: after each layer of any PyG model, or along the flow of a continuous one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor, nn

from kuramotognn.checks import check_choice
from kuramotognn.diagnostics import measures as m
from kuramotognn.diagnostics.decay import Decay, fit_decay
from kuramotognn.features import SparseFeatures, as_features
from kuramotognn.graph import Graph, as_graph
from kuramotognn.models import ContinuousGNN, KuramotoConv
from kuramotognn.solve import Solution
from kuramotognn.typing import EdgeWeight, Index, Labels, Nodes

PAIRS = 20_000
"""Pairs sampled for the mean pairwise distance; its standard error is below 1 % of the spread of the distances."""
MOST_DEPTHS = 100
"""Default number of times along a flow."""
FLOW_BYTES = 256 << 20
"""Bytes of states stored at once; a longer flow is integrated again for each batch of times."""


@dataclass(frozen=True, eq=False)
class Context:
    """The inputs of a measure besides the state."""

    graph: Graph
    y: Labels | None = None
    pairs: tuple[Index, Index] | None = None


@dataclass(frozen=True)
class Measure:
    """A function that maps a state to a number.

    Attributes:
        label: label of an axis.
        of: the function.
        order: 1 if it is proportional to the differences between nodes, 2 if to their square; None if it does not go
            to zero with them.
        phases: whether it is defined for phases only.
        labels: whether it needs classes.
    """

    label: str
    of: Callable[[Nodes, Context], float]
    order: int | None = None
    phases: bool = False
    labels: bool = False


def _class_share(x: Nodes, context: Context) -> float:
    assert context.y is not None
    return m.class_separation(x, context.y).share


def _local_order(x: Nodes, context: Context) -> float:
    return float(m.local_order_parameter(x, context.graph).abs().mean())


#: Every measure by name, in the order of tables.
MEASURES: Mapping[str, Measure] = MappingProxyType(
    {
        "pairwise-distance": Measure(
            "mean pairwise distance", lambda x, c: m.mean_pairwise_distance(x, pairs=c.pairs), order=1
        ),
        "dirichlet": Measure("Dirichlet energy", lambda x, c: m.dirichlet_energy(x, c.graph), order=2),
        "dirichlet-normalised": Measure(
            "normalised Dirichlet energy", lambda x, c: m.dirichlet_energy(x, c.graph, normalised=True), order=2
        ),
        "rayleigh": Measure("Rayleigh quotient", lambda x, c: m.rayleigh_quotient(x, c.graph), order=2),
        "mad": Measure("MAD over neighbours", lambda x, c: m.mean_average_distance(x, c.graph), order=2),
        "mad-global": Measure("MAD over all pairs", lambda x, c: m.mean_average_distance(x), order=2),
        "effective-rank": Measure("effective rank", lambda x, c: m.effective_rank(x)),
        "numerical-rank": Measure("numerical rank", lambda x, c: m.numerical_rank(x)),
        "class-separation": Measure("variance between classes (share)", _class_share, labels=True),
        "order": Measure("order parameter r", lambda x, c: float(m.order_parameter(x).abs().mean()), phases=True),
        "local-order": Measure("local order parameter", _local_order, phases=True),
        "phase-energy": Measure("phase energy U", lambda x, c: m.phase_energy(x, c.graph), order=2, phases=True),
    }
)
FREQUENCY_SPREAD = "frequency-spread"
"""Largest difference of the nodes' mean velocities since the depth before; for flows only."""


@dataclass(frozen=True)
class Profile:
    """Measures over depth.

    Attributes:
        model: name of the model.
        unit: ``layer`` or ``time``.
        depth: number of layers, or time.
        width: channels of the state at each depth.
        measures: values at each depth, by name.
        floor: the value that rounding errors alone could give, for measures that go to zero.
    """

    model: str
    unit: str
    depth: tuple[float, ...]
    width: tuple[int, ...]
    measures: Mapping[str, tuple[float, ...]]
    floor: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    @property
    def usual_width(self) -> int:
        """The most frequent width."""
        return max(set(self.width), key=self.width.count)

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)

    @staticmethod
    def from_dict(record: Mapping[str, Any]) -> Profile:
        """The inverse of :meth:`as_dict`."""
        depth, width = (tuple(record[key]) for key in ("depth", "width"))
        measures, floor = ({n: tuple(row) for n, row in record[key].items()} for key in ("measures", "floor"))
        return Profile(record["model"], record["unit"], depth, width, measures, floor)


def oversmoothing_profile(
    model: nn.Module,
    data: Any,
    *,
    measures: Sequence[str] | None = None,
    pairs: int | None = PAIRS,
    times: Sequence[float] | None = None,
    layers: Sequence[nn.Module] | None = None,
    name: str | None = None,
) -> Profile:
    """Measure the differences between nodes over the depth of a model. States are measured one by one, not stored.

    A :class:`~kuramotognn.ContinuousGNN` is measured along its flow. Any other model is called once, in evaluation mode
    and without gradients. Depth l is the input of message-passing layer l + 1, so it includes activation, normalisation
    and skip connections after layer l; the last depth is the output of the last layer. A layer that is called twice
    counts twice. Energies use the absolute values of edge weights.

    Args:
        model: any module called as ``model(x, edge_index[, edge_weight])``.
        data: has ``x`` and ``edge_index`` (or a :class:`~kuramotognn.Graph` in its place), and may have
            ``edge_weight`` and ``y``: PyG's ``Data``, a :class:`~kuramotognn.NodeDataset`, …
        measures: names of :data:`MEASURES` (default: all that apply).
        pairs: number of sampled pairs of nodes for the mean pairwise distance, the same at every depth; None for all.
        times: times along a flow (default: 0 and up to 100 equidistant times).
        layers: the modules to measure (default: the message-passing layers).
        name: name of the model (default: its class).
    """
    graph = _graph_of(data)
    weighted = Graph(graph.pattern, graph.weight.abs()) if graph.has_negative_weight else graph
    y = getattr(data, "y", None)
    is_flow = isinstance(model, ContinuousGNN)
    sample = None if pairs is None or graph.num_nodes < 2 else m.sample_pairs(graph.num_nodes, pairs)
    chosen = _applicable(measures, has_labels=y is not None, is_flow=is_flow)
    recorder = _Recorder(chosen, Context(weighted, y, sample))
    training = model.training
    model.eval()
    try:
        with torch.no_grad():
            if isinstance(model, ContinuousGNN):
                ts = step_times(model) if times is None else [float(t) for t in times]
                for t, x in zip(ts, states_at(model, data.x, graph, ts), strict=True):
                    recorder.record(t, x)
            else:
                _record_layers(model, data, layers, recorder)
    finally:
        model.train(training)
    return recorder.profile(name or type(model).__name__, "time" if is_flow else "layer")


def trajectory_profile(
    solution: Solution,
    graph: Graph,
    *,
    y: Labels | None = None,
    measures: Sequence[str] | None = None,
    name: str = "flow",
) -> Profile:
    """The same measures along a trajectory that is already integrated."""
    recorder = _Recorder(_applicable(measures, has_labels=y is not None, is_flow=True), Context(graph, y))
    for t, x in zip(solution.ts, solution.ys, strict=True):
        recorder.record(t, x.detach())
    return recorder.profile(name, "time")


def is_oversmoothing(profile: Profile, measure: str = "pairwise-distance") -> Decay:
    """Whether a model over-smooths by Definition 4.8 of the paper: differences decay exponentially with depth.

    The result is true or false and has the law of decay, its rate and the rate's standard error
    (:func:`~kuramotognn.diagnostics.fit_decay`). Layers of an unusual width, such as the last one, are left out:
    distances in spaces of different dimension cannot be compared.

    Args:
        profile: the result of :func:`oversmoothing_profile`.
        measure: one that goes to zero with the differences: ``pairwise-distance`` (as in the definition), an energy,
            a MAD or the Rayleigh quotient.
    """
    if measure not in profile.measures:
        raise ValueError(f"the profile has no {measure!r}; it has {', '.join(profile.measures)}")
    if measure not in profile.floor:
        able = ", ".join(profile.floor)
        raise ValueError(f"{measure} does not go to zero when nodes become equal; take one of {able}")
    kept = [k for k, width in enumerate(profile.width) if width == profile.usual_width]
    depth, values, floor = (
        [row[k] for k in kept] for row in (profile.depth, profile.measures[measure], profile.floor[measure])
    )
    return fit_decay(depth, values, floor=floor)


class _Recorder:
    """Measures states one at a time; stores numbers, and the last state if frequencies are measured."""

    def __init__(self, names: Sequence[str], context: Context) -> None:
        self.context = context
        self.depth: list[float] = []
        self.width: list[int] = []
        self.values: dict[str, list[float]] = {name: [] for name in names if name != FREQUENCY_SPREAD}
        self.floor: dict[str, list[float]] = {name: [] for name in self.values if MEASURES[name].order}
        self.spreads: list[float] | None = [] if FREQUENCY_SPREAD in names else None
        self.last: Nodes | None = None

    def record(self, depth: float, x: Nodes) -> None:
        x = x.flatten(start_dim=1) if x.dim() > 2 else x
        if x.dim() != 2 or x.size(0) != self.context.graph.num_nodes:
            raise ValueError(
                f"the state at depth {depth:g} has shape {list(x.shape)}, but the graph has "
                f"{self.context.graph.num_nodes} nodes; choose layers that keep the nodes with layers="
            )
        if not torch.isfinite(x).all():
            raise ValueError(f"the state at depth {depth:g} is not finite; scale the features or the weights down")
        if self.spreads is not None:
            if self.last is not None:
                # Mean velocities are defined for delayed and second-order flows, too.
                self.spreads.append(m.frequency_spread((x - self.last) / (depth - self.depth[-1])))
            self.last = x
        self.depth.append(depth)
        self.width.append(x.size(1))
        # The floor: the measure of a state with random signs, times the relative size of rounding errors.
        resolution = 64 * torch.finfo(x.dtype).eps
        signs = torch.randint(0, 2, x.shape, generator=torch.Generator().manual_seed(0)).to(x) * 2 - 1
        for name, values in self.values.items():
            measure = MEASURES[name]
            values.append(measure.of(x, self.context))
            if measure.order:
                self.floor[name].append(measure.of(x * signs, self.context) * resolution**measure.order)

    def profile(self, model: str, unit: str) -> Profile:
        values = {name: tuple(v) for name, v in self.values.items()}
        if self.spreads is not None:
            # The first depth has no depth before it and gets the value of the second.
            values[FREQUENCY_SPREAD] = (*(self.spreads[:1] or [0.0]), *self.spreads)
        floor = {name: tuple(v) for name, v in self.floor.items()}
        return Profile(model, unit, tuple(self.depth), tuple(self.width), values, floor)


def step_times(model: ContinuousGNN, most: int = MOST_DEPTHS) -> list[float]:
    """0 and up to ``most`` times of a flow: ends of steps where steps are fixed, so that nothing is interpolated."""
    steps = most if model.solver.adaptive else model.solver.num_steps(model.time)
    stride = -(-steps // most)
    return [model.time * k / steps for k in (*range(0, steps, stride), steps)]


def states_at(model: ContinuousGNN, x: Any, graph: Graph, ts: Sequence[float]) -> Iterator[Nodes]:
    """The states of a flow, one after the other; no more of them are stored at once than fit in ``FLOW_BYTES``."""
    width = model.encoder.linear.out_features
    at_once = max(1, FLOW_BYTES // max(1, 8 * graph.num_nodes * width))
    for k in range(0, len(ts), at_once):
        yield from model.flow(x, graph, save_at=ts[k : k + at_once]).ys


def _record_layers(model: nn.Module, data: Any, layers: Sequence[nn.Module] | None, recorder: _Recorder) -> None:
    name = type(model).__name__
    hooked = list(layers) if layers is not None else _message_passing_layers(model)
    if not hooked:
        raise ValueError(f"{name} has no message-passing layer; name the modules to measure with layers=")
    calls, last = 0, None

    def hook(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        nonlocal calls, last
        state = _first_state([*args, *kwargs.values()])
        # The input of the first layer is the state at depth 0, unless it has the width of the data.
        if state is not None and (calls or state.size(-1) != data.x.shape[1]):
            recorder.record(float(calls), state)
        calls, last = calls + 1, _first_state([output])

    handles = [layer.register_forward_hook(hook, with_kwargs=True) for layer in hooked]
    try:
        takes_sparse = type(model).__module__.startswith("kuramotognn.")
        x = data.x if takes_sparse or isinstance(data.x, Tensor) else data.x.to_dense()
        weight = getattr(data, "edge_weight", None)
        model(x, data.edge_index) if weight is None else model(x, data.edge_index, weight)
    finally:
        for handle in handles:
            handle.remove()
    if last is None:
        raise ValueError(f"no measured layer of {name} was called with a state of nodes; choose others with layers=")
    recorder.record(float(calls), last)


def _first_state(values: Sequence[Any]) -> Tensor | None:
    """The first floating-point tensor; of a pair (sources, targets) the targets."""
    for value in values:
        for state in reversed(value) if isinstance(value, tuple) else (value,):
            if isinstance(state, Tensor) and state.is_floating_point():
                return state
    return None


def _message_passing_layers(model: nn.Module) -> list[nn.Module]:
    """The outermost layers: one that contains others counts once."""
    from torch_geometric.nn import MessagePassing  # Importing it takes seconds.

    if isinstance(model, MessagePassing | KuramotoConv) or type(model).__module__ == "kuramotognn.models.layers":
        return [model]
    return [layer for child in model.children() for layer in _message_passing_layers(child)]


def _graph_of(data: Any) -> Graph:
    for name in ("x", "edge_index"):
        if getattr(data, name, None) is None:
            raise ValueError(f"data must have {name}, got {type(data).__name__} without it")
    x = as_features(data.x)
    like = x if isinstance(x, Tensor) else x.values if isinstance(x, SparseFeatures) else torch.empty(0)
    weight: EdgeWeight | None = getattr(data, "edge_weight", None)
    return as_graph(data.edge_index, x.shape[0], weight, like)


def _applicable(names: Sequence[str] | None, *, has_labels: bool, is_flow: bool) -> list[str]:
    if names is None:
        usable = {n: (has_labels or not each.labels) and (is_flow or not each.phases) for n, each in MEASURES.items()}
        return [name for name, use in (usable | {FREQUENCY_SPREAD: is_flow}).items() if use]
    for name in names:
        check_choice("measure", name, (*MEASURES, FREQUENCY_SPREAD))
        if name == FREQUENCY_SPREAD and not is_flow:
            raise ValueError(f"{name} is for models that flow; layers have no time")
        if name in MEASURES and MEASURES[name].labels and not has_labels:
            raise ValueError(f"{name} needs classes; give data a y")
    return list(names)
