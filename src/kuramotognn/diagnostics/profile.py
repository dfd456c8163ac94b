"""Measures over the depth of a model: after each layer of any PyG model, or along the flow of a continuous one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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
"""Pairs sampled for the mean pairwise distance: its standard error is below one per cent of its spread."""
MOST_DEPTHS = 100
"""Times looked at along a flow unless given."""
FLOW_BYTES = 256 << 20
"""Bytes of states kept at once; a flow that needs more is integrated again for each batch of times."""


@dataclass(frozen=True, eq=False)
class Surroundings:
    """What a measure may look at besides the state."""

    graph: Graph
    y: Labels | None = None
    pairs: tuple[Index, Index] | None = None


@dataclass(frozen=True)
class Measure:
    """A number for a state.

    Attributes:
        label: what an axis says.
        of: the number.
        order: how it shrinks when all differences between nodes shrink by a factor: with the factor (1) or its square
            (2); None when it does not go to zero with them.
        phases: it makes sense for phases only.
        labels: it needs classes.
    """

    label: str
    of: Callable[[Nodes, Surroundings], float]
    order: int | None = None
    phases: bool = False
    labels: bool = False


#: Every measure by name, in the order of tables.
MEASURES: Mapping[str, Measure] = MappingProxyType(
    {
        "pairwise-distance": Measure(
            "mean pairwise distance", lambda x, s: m.mean_pairwise_distance(x, pairs=s.pairs), order=1
        ),
        "dirichlet": Measure("Dirichlet energy", lambda x, s: m.dirichlet_energy(x, s.graph), order=2),
        "dirichlet-normalised": Measure(
            "normalised Dirichlet energy", lambda x, s: m.dirichlet_energy(x, s.graph, normalised=True), order=2
        ),
        "rayleigh": Measure("Rayleigh quotient", lambda x, s: m.rayleigh_quotient(x, s.graph), order=2),
        "mad": Measure("MAD over neighbours", lambda x, s: m.mean_average_distance(x, s.graph), order=2),
        "mad-global": Measure("MAD over all pairs", lambda x, s: m.mean_average_distance(x), order=2),
        "effective-rank": Measure("effective rank", lambda x, s: m.effective_rank(x)),
        "numerical-rank": Measure("numerical rank", lambda x, s: m.numerical_rank(x)),
        "class-separation": Measure("variance between classes (share)", lambda x, s: _class_share(x, s.y), labels=True),
        "order": Measure("order parameter r", lambda x, s: float(m.order_parameter(x).abs().mean()), phases=True),
        "local-order": Measure(
            "local order parameter", lambda x, s: float(m.local_order_parameter(x, s.graph).abs().mean()), phases=True
        ),
        "phase-energy": Measure("phase energy U", lambda x, s: m.phase_energy(x, s.graph), order=2, phases=True),
    }
)
FREQUENCY_SPREAD = "frequency-spread"
"""Largest difference of the nodes' mean velocities since the depth before; along flows only."""


@dataclass(frozen=True)
class Profile:
    """Measures over depth.

    Attributes:
        model: what was measured.
        unit: ``layer`` or ``time``.
        depth: number of layers passed, or time.
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
        return {
            "model": self.model,
            "unit": self.unit,
            "depth": list(self.depth),
            "width": list(self.width),
            "measures": {name: list(values) for name, values in self.measures.items()},
            "floor": {name: list(values) for name, values in self.floor.items()},
        }

    @staticmethod
    def from_dict(record: Mapping[str, Any]) -> Profile:
        """What :meth:`as_dict` gave."""
        return Profile(
            record["model"],
            record["unit"],
            tuple(record["depth"]),
            tuple(record["width"]),
            {name: tuple(values) for name, values in record["measures"].items()},
            {name: tuple(values) for name, values in record["floor"].items()},
        )


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
    """Measure how alike nodes become over the depth of a model; nothing is kept of the states.

    A :class:`~kuramotognn.ContinuousGNN` is measured along its flow. Any other model is called once, in evaluation mode
    and without gradients. Depth l is the state that enters message-passing layer l + 1, so that activation,
    normalisation and skip connections after layer l are part of it; the last depth is what the last layer gives. Hooks
    see every call: a layer that is used twice counts twice. Energies take weights by their size, whatever the sign.

    Args:
        model: any module called as ``model(x, edge_index[, edge_weight])``.
        data: has ``x`` and ``edge_index`` (or a :class:`~kuramotognn.Graph` in its place), and may have
            ``edge_weight`` and ``y``: PyG's ``Data``, a :class:`~kuramotognn.NodeDataset`, …
        measures: names of :data:`MEASURES`; unless given, all that apply.
        pairs: sample so many pairs of nodes, the same at every depth, for the mean pairwise distance; None takes all.
        times: where to look along a flow; up to 100 equidistant times, and 0, unless given.
        layers: the modules to look at, instead of the message-passing layers.
        name: what to call the model; its class unless given.
    """
    graph = _graph_of(data)
    around = Graph(graph.pattern, graph.weight.abs()) if graph.has_negative_weight else graph
    y = getattr(data, "y", None)
    continuous = isinstance(model, ContinuousGNN)
    chosen = _applicable(measures, has_labels=y is not None, phases=continuous)
    sample = None if pairs is None or graph.num_nodes < 2 else m.sample_pairs(graph.num_nodes, pairs)
    meter = _Meter(chosen, Surroundings(around, y, sample))
    training = model.training
    model.eval()
    try:
        with torch.no_grad():
            if isinstance(model, ContinuousGNN):
                _along_flow(model, data, graph, times, meter, frequencies=_wants_frequencies(measures))
            else:
                _over_layers(model, data, layers, meter)
    finally:
        model.train(training)
    return meter.profile(name or type(model).__name__, "time" if continuous else "layer")


def trajectory_profile(
    solution: Solution,
    graph: Graph,
    *,
    y: Labels | None = None,
    measures: Sequence[str] | None = None,
    name: str = "flow",
) -> Profile:
    """The same measures along a trajectory that was integrated before."""
    meter = _Meter(_applicable(measures, has_labels=y is not None, phases=True), Surroundings(graph, y))
    previous: tuple[float, Nodes] | None = None
    for t, x in zip(solution.ts, solution.ys, strict=True):
        meter.read(t, x.detach())
        previous = _read_frequencies(meter, previous, t, x.detach(), _wants_frequencies(measures))
    return meter.profile(name, "time")


def is_oversmoothing(profile: Profile, measure: str = "pairwise-distance") -> Decay:
    """Whether a model over-smooths as Definition 4.8 of the paper says: differences decay exponentially with depth.

    The result is true or false, and says which law of decay was found, its rate and the rate's standard error
    (:func:`~kuramotognn.diagnostics.fit_decay`). Layers of another width than most, such as the last one, are left out:
    distances in spaces of different dimension do not compare.

    Args:
        profile: what :func:`oversmoothing_profile` gave.
        measure: one that goes to zero with the differences: ``pairwise-distance`` (the definition's own), an energy,
            a MAD or the Rayleigh quotient.
    """
    if measure not in profile.measures:
        raise ValueError(f"the profile has no {measure!r}; it has {', '.join(profile.measures)}")
    if measure not in profile.floor:
        able = ", ".join(profile.floor)
        raise ValueError(f"{measure} does not go to zero when nodes become equal; take one of {able}")
    kept = [k for k, width in enumerate(profile.width) if width == profile.usual_width]
    return fit_decay(
        [profile.depth[k] for k in kept],
        [profile.measures[measure][k] for k in kept],
        floor=[profile.floor[measure][k] for k in kept],
    )


class _Meter:
    """Takes states one at a time and keeps numbers only."""

    def __init__(self, names: Sequence[str], surroundings: Surroundings) -> None:
        self.names, self.surroundings = names, surroundings
        self.depth: list[float] = []
        self.width: list[int] = []
        self.values: dict[str, list[float]] = {name: [] for name in names}
        self.floor: dict[str, list[float]] = {name: [] for name in names if MEASURES[name].order}
        self.extra: dict[str, list[float]] = {}

    def read(self, depth: float, x: Nodes) -> None:
        x = x.flatten(start_dim=1) if x.dim() > 2 else x
        if x.dim() != 2 or x.size(0) != self.surroundings.graph.num_nodes:
            raise ValueError(
                f"the state at depth {depth:g} has shape {list(x.shape)}, but the graph has "
                f"{self.surroundings.graph.num_nodes} nodes; name the layers that keep them with layers="
            )
        if not torch.isfinite(x).all():
            raise ValueError(f"the state at depth {depth:g} is not finite; scale the features or the weights down")
        self.depth.append(depth)
        self.width.append(x.size(1))
        resolution = 64 * torch.finfo(x.dtype).eps
        # Entries of the same size whose signs are tossed: what the measure would be if nodes had nothing in common.
        toss = torch.randint(0, 2, x.shape, generator=torch.Generator().manual_seed(0)).to(x) * 2 - 1
        for name in self.names:
            measure = MEASURES[name]
            self.values[name].append(measure.of(x, self.surroundings))
            if measure.order:
                self.floor[name].append(measure.of(x * toss, self.surroundings) * resolution**measure.order)

    def profile(self, model: str, unit: str) -> Profile:
        values = {name: tuple(v) for name, v in (self.values | self.extra).items()}
        floor = {name: tuple(v) for name, v in self.floor.items()}
        return Profile(model, unit, tuple(self.depth), tuple(self.width), values, floor)


def _along_flow(
    model: ContinuousGNN,
    data: Any,
    graph: Graph,
    times: Sequence[float] | None,
    meter: _Meter,
    *,
    frequencies: bool,
) -> None:
    ts = _default_times(model) if times is None else [float(t) for t in times]
    states = _states_at(model, data.x, graph, ts)
    previous: tuple[float, Nodes] | None = None
    for t, x in zip(ts, states, strict=True):
        meter.read(t, x)
        previous = _read_frequencies(meter, previous, t, x, frequencies)


def _read_frequencies(
    meter: _Meter, previous: tuple[float, Nodes] | None, t: float, x: Nodes, wanted: bool
) -> tuple[float, Nodes]:
    """Mean velocities since the depth before: they exist for delayed and second-order flows too."""
    if wanted:
        spread = 0.0 if previous is None else m.frequency_spread((x - previous[1]) / (t - previous[0]))
        values = meter.extra.setdefault(FREQUENCY_SPREAD, [])
        if len(values) == 1 and previous is not None:
            values[0] = spread  # There is nothing before the first depth: it shares the second one's.
        values.append(spread)
    return t, x


def _default_times(model: ContinuousGNN) -> list[float]:
    """Ends of steps where there are steps, so that nothing is interpolated."""
    steps = MOST_DEPTHS if model.solver.adaptive else model.solver.num_steps(model.time)
    stride = -(-steps // MOST_DEPTHS)
    grid = [*range(0, steps, stride), steps]
    return [model.time * k / steps for k in grid]


def _states_at(model: ContinuousGNN, x: Any, graph: Graph, ts: Sequence[float]) -> Iterator[Nodes]:
    width = model.encoder.linear.out_features
    at_once = max(1, FLOW_BYTES // max(1, 8 * graph.num_nodes * width))
    for k in range(0, len(ts), at_once):
        yield from model.flow(x, graph, save_at=ts[k : k + at_once]).ys


def _over_layers(model: nn.Module, data: Any, layers: Sequence[nn.Module] | None, meter: _Meter) -> None:
    watched = list(layers) if layers is not None else _message_passing_layers(model)
    if not watched:
        raise ValueError(
            f"{type(model).__name__} has no message-passing layer; name the modules to look at with layers="
        )
    calls, last = 0, None

    def look(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        nonlocal calls, last
        state = _first_state([*args, *kwargs.values()])
        # What enters the first layer is the state at depth 0, unless it is the data themselves.
        if state is not None and (calls or state.size(-1) != data.x.shape[1]):
            meter.read(float(calls), state)
        calls, last = calls + 1, _first_state([output])

    hooks = [layer.register_forward_hook(look, with_kwargs=True) for layer in watched]
    try:
        x = data.x.to_dense() if isinstance(data.x, SparseFeatures) and not _is_ours(model) else data.x
        weight = getattr(data, "edge_weight", None)
        model(x, data.edge_index) if weight is None else model(x, data.edge_index, weight)
    finally:
        for hook in hooks:
            hook.remove()
    if last is None:
        raise ValueError(f"no layer of {type(model).__name__} that is looked at was called with a state of the nodes")
    meter.read(float(calls), last)


def _first_state(values: Sequence[Any]) -> Tensor | None:
    """The first tensor of real numbers; of a pair (sources, targets) the targets."""
    for value in values:
        state = value[-1] if isinstance(value, tuple) and isinstance(value[-1], Tensor) else value
        if isinstance(value, tuple) and not (isinstance(state, Tensor) and state.is_floating_point()):
            state = value[0]
        if isinstance(state, Tensor) and state.is_floating_point():
            return state
    return None


def _message_passing_layers(model: nn.Module) -> list[nn.Module]:
    """The outermost layers: one that is built of others counts once."""
    from torch_geometric.nn import MessagePassing  # Takes seconds to load.

    if isinstance(model, MessagePassing | KuramotoConv) or type(model).__module__ == "kuramotognn.models.layers":
        return [model]
    return [layer for child in model.children() for layer in _message_passing_layers(child)]


def _is_ours(model: nn.Module) -> bool:
    """Models of this library take sparse features; others get dense ones."""
    return type(model).__module__.startswith("kuramotognn.")


def _graph_of(data: Any) -> Graph:
    for name in ("x", "edge_index"):
        if getattr(data, name, None) is None:
            raise ValueError(f"data must have {name}, got {type(data).__name__} without it")
    x = as_features(data.x)
    like = x.values if isinstance(x, SparseFeatures) else x
    weight: EdgeWeight | None = getattr(data, "edge_weight", None)
    return as_graph(data.edge_index, x.shape[0], weight, like)


def _applicable(names: Sequence[str] | None, *, has_labels: bool, phases: bool) -> list[str]:
    if names is None:
        return [
            name
            for name, measure in MEASURES.items()
            if (has_labels or not measure.labels) and (phases or not measure.phases)
        ]
    for name in names:
        check_choice("measure", name, (*MEASURES, FREQUENCY_SPREAD))
        if name == FREQUENCY_SPREAD and not phases:
            raise ValueError(f"{name} is for models that flow; layers have no time")
        if name in MEASURES and MEASURES[name].labels and not has_labels:
            raise ValueError(f"{name} needs classes; give data a y")
    return [name for name in names if name != FREQUENCY_SPREAD]


def _wants_frequencies(names: Sequence[str] | None) -> bool:
    return names is None or FREQUENCY_SPREAD in names


def _class_share(x: Nodes, y: Tensor | None) -> float:
    assert y is not None
    return m.class_separation(x, y).share
