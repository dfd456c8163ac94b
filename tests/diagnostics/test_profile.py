import gc
import weakref
from itertools import pairwise
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor, nn
from torch_geometric import nn as pyg
from torch_geometric.data import Data

from kuramotognn import (
    MODELS,
    ContinuousGNN,
    Graph,
    KuramotoConv,
    KuramotoGNN,
    Solver,
    integrate,
    is_oversmoothing,
    oversmoothing_profile,
)
from kuramotognn.config.model_settings import settings_class
from kuramotognn.diagnostics import dirichlet_energy, mean_pairwise_distance, phase_energy, profile, trajectory_profile
from tests.conftest import ring

NODES, FEATURES, HIDDEN, CLASSES = 30, 12, 8, 3


@pytest.fixture
def data() -> Data:
    generator = torch.Generator().manual_seed(0)
    graph = ring(NODES)
    chords = torch.randint(NODES, (2, 20), generator=generator)
    return Data(
        x=torch.rand(NODES, FEATURES, generator=generator),
        edge_index=torch.cat([graph.edge_index, chords, chords.flip(0)], dim=1),
        y=torch.randint(CLASSES, (NODES,), generator=generator),
    )


class Stack(nn.Module):
    """One layer with a skip connection and normalisation, called several times; the test computes its states itself."""

    def __init__(self, times: int = 6) -> None:
        super().__init__()
        self.encoder, self.conv, self.times = nn.Linear(FEATURES, HIDDEN), pyg.GCNConv(HIDDEN, HIDDEN), times
        self.norm, self.dropout = nn.LayerNorm(HIDDEN), nn.Dropout(0.5)

    def states(self, x: Tensor, edge_index: Tensor) -> list[Tensor]:
        x = self.encoder(x)
        states = [x]
        for _ in range(self.times):
            new = self.conv(self.dropout(x), edge_index=edge_index)
            x = self.norm(x + new.relu())
            states.append(x)
        return [*states[:-1], new]

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.states(x, edge_index)[-1]


def test_depths_are_states_between_layers(data: Data) -> None:
    torch.manual_seed(0)
    model = Stack().train()
    found = oversmoothing_profile(model, data, pairs=None)
    assert model.training, "the training mode is restored"
    with torch.no_grad():
        states = model.eval().states(data.x, data.edge_index)
    graph = Graph.from_edge_index(data.edge_index, NODES)
    assert found.depth == (0, 1, 2, 3, 4, 5, 6)
    assert found.unit == "layer"
    assert found.measures["pairwise-distance"] == pytest.approx([mean_pairwise_distance(x) for x in states])
    assert found.measures["dirichlet"] == pytest.approx([dirichlet_energy(x, graph) for x in states])
    assert not model.conv._forward_hooks, "hooks are removed"
    assert set(found.measures) == {name for name, m in profile.MEASURES.items() if not m.phases}


@pytest.mark.parametrize("kind", [pyg.GCN, pyg.GAT, pyg.GraphSAGE, pyg.GIN, pyg.PNA])
def test_pyg_models(kind: type[nn.Module], data: Data) -> None:
    torch.manual_seed(0)
    more = {"aggregators": ["mean"], "scalers": ["identity"], "deg": torch.tensor([0, 5, 5])} if kind is pyg.PNA else {}
    found = oversmoothing_profile(kind(FEATURES, HIDDEN, 6, CLASSES, **more), data, pairs=None)
    assert found.depth == (1, 2, 3, 4, 5, 6)
    assert found.width == (HIDDEN,) * 5 + (CLASSES,)
    assert found.usual_width == HIDDEN
    assert is_oversmoothing(found).last <= 5, "the last layer's width differs"


def test_deep_gcn_oversmooths_and_kuramotognn_does_not(data: Data) -> None:
    torch.manual_seed(0)
    gcn = is_oversmoothing(oversmoothing_profile(pyg.GCN(FEATURES, HIDDEN, 40), data))
    assert gcn
    assert gcn.rate > 0.1
    kuramoto = KuramotoGNN(FEATURES, HIDDEN, CLASSES, time=40.0, solver=Solver("rk4", step_size=0.5))
    assert not is_oversmoothing(oversmoothing_profile(kuramoto, data))


@pytest.mark.parametrize("name", list(MODELS))
def test_models_of_the_registry(name: str, data: Data) -> None:
    torch.manual_seed(0)
    settings = settings_class(name)
    changes = {key: value for key, value in (("num_layers", 6), ("time", 6.0)) if key in settings.model_fields}
    model = settings(name=name, hidden_channels=8, **changes).build(FEATURES, CLASSES, Solver("euler", step_size=0.5))
    if name == "grand++":
        model.field.set_training_nodes(torch.arange(4))
    task = SimpleNamespace(x=data.x, edge_index=Graph.from_edge_index(data.edge_index, NODES), y=data.y)
    found = oversmoothing_profile(model, task, name=name)
    assert found.unit == ("time" if isinstance(model, ContinuousGNN) else "layer")
    assert found.depth[-1] == 6
    assert is_oversmoothing(found).law
    assert profile.Profile.from_dict(found.as_dict()) == found


def test_a_flow_is_measured_along_its_steps(data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    model = KuramotoGNN(FEATURES, HIDDEN, CLASSES, time=2.0, solver=Solver("euler", step_size=0.25)).double().eval()
    data.x = data.x.double()
    found = oversmoothing_profile(model, data, pairs=None)
    assert found.depth == tuple(0.25 * k for k in range(9))
    graph = Graph.from_edge_index(data.edge_index, NODES, dtype=torch.float64)
    with torch.no_grad():
        states = model.flow(data.x, graph, save_at=found.depth).ys
    assert found.measures["phase-energy"] == pytest.approx([phase_energy(x, graph) for x in states])
    steps = [(b - a) / 0.25 for a, b in pairwise(states)]
    spread = [float((v.amax(0) - v.amin(0)).max()) for v in steps]
    assert found.measures["frequency-spread"] == pytest.approx([spread[0], *spread])
    monkeypatch.setattr(profile, "FLOW_BYTES", 8 * NODES * HIDDEN * 2)
    again = oversmoothing_profile(model, data, pairs=None)
    assert again.depth == found.depth
    for name, values in found.measures.items():
        assert again.measures[name] == pytest.approx(values, rel=1e-9), "integrating in batches changes nothing"
    few = oversmoothing_profile(model, data, times=[0.5, 1.1], measures=["mad", "frequency-spread"])
    assert few.depth == (0.5, 1.1)
    assert list(few.measures) == ["mad", "frequency-spread"]


def test_default_times_of_long_and_adaptive_flows(data: Data) -> None:
    model = KuramotoGNN(FEATURES, HIDDEN, CLASSES, time=25.0, solver=Solver("euler", step_size=0.1))
    assert (
        len(oversmoothing_profile(model, data, measures=["mad"]).depth) == 85
    )  # every third of 250 steps, and the end
    model = KuramotoGNN(FEATURES, HIDDEN, CLASSES, time=1.0, solver=Solver("dopri5"))
    assert len(oversmoothing_profile(model, data, measures=["mad"]).depth) == 101


def test_a_trajectory(data: Data) -> None:
    graph = Graph.from_edge_index(data.edge_index, NODES)
    model = KuramotoGNN(FEATURES, HIDDEN, CLASSES)
    x0 = model.encoder(data.x)
    times = [0.0, 0.5, 1.0]
    solution = integrate(model.field(x0, graph), x0, 1.0, Solver("rk4", steps=4), save_at=times)
    found = trajectory_profile(solution, graph, y=data.y)
    assert found.depth == tuple(times)
    assert found.measures["dirichlet"] == pytest.approx([dirichlet_energy(x, graph) for x in solution.ys])
    assert {"order", "class-separation", "frequency-spread"} <= set(found.measures)


def test_kuramoto_layers_and_chosen_layers(data: Data) -> None:
    class Mixed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(FEATURES, HIDDEN)
            self.flows = nn.ModuleList(KuramotoConv(HIDDEN) for _ in range(3))

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            x = self.first(x)
            for flow in self.flows:
                x = flow(x, edge_index)
            return x

    model = Mixed()
    assert oversmoothing_profile(model, data).depth == (0, 1, 2, 3)
    assert oversmoothing_profile(model, data, layers=[model.first]).depth == (1,)


def test_states_are_not_stored(data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    alive: list[weakref.ref[Tensor]] = []
    most = 0
    record = profile._Recorder.record

    def counting(self: profile._Recorder, depth: float, x: Tensor) -> None:
        nonlocal most
        alive.append(weakref.ref(x))
        record(self, depth, x)
        gc.collect()
        most = max(most, sum(reference() is not None for reference in alive))

    monkeypatch.setattr(profile._Recorder, "record", counting)
    oversmoothing_profile(pyg.GCN(FEATURES, HIDDEN, 30), data, measures=["mad"])
    assert len(alive) == 30
    assert most <= 2


def test_rounding_errors_lie_below_the_floor(data: Data) -> None:
    """Equal rows up to the last digit of float32 lie below the floor of every measure that goes to zero."""
    x = 1 + 1e-7 * torch.randn(NODES, HIDDEN, generator=torch.Generator().manual_seed(0))
    graph = Graph.from_edge_index(data.edge_index, NODES)
    names = [name for name, measure in profile.MEASURES.items() if measure.order and "normalised" not in name]
    recorder = profile._Recorder([name for name in names if name != "rayleigh"], profile.Context(graph))
    recorder.record(0.0, x)
    for name, floor in recorder.floor.items():
        assert recorder.values[name][0] < floor[0], name


def test_weights_and_signs(data: Data) -> None:
    data.edge_weight = torch.linspace(-1, 1, data.edge_index.size(1))

    class Weighted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = pyg.GraphConv(FEATURES, FEATURES)

        def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor) -> Tensor:
            return self.conv(x, edge_index, edge_weight)

    found = oversmoothing_profile(Weighted(), data)
    assert found.measures["dirichlet"][0] > 0


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"model": nn.Linear(FEATURES, 2)}, "Linear has no message-passing layer; name the modules to measure"),
        ({"data": SimpleNamespace(x=torch.zeros(3, 2))}, "data must have edge_index, got SimpleNamespace without it"),
        ({"measures": ["madd"]}, "measure must be one of .* did you mean 'mad'"),
        ({"measures": ["frequency-spread"]}, "frequency-spread is for models that flow"),
        ({"data": "unlabelled", "measures": ["class-separation"]}, "class-separation needs classes; give data a y"),
        ({"pairs": 0}, "number of sampled pairs must be positive"),
        ({"layers": [nn.Linear(1, 1)]}, "no measured layer of GCN was called"),
        ({"data": "huge"}, "the state at depth 1 is not finite"),
    ],
)
def test_wrong_arguments(change: dict[str, object], sentence: str, data: Data) -> None:
    arguments: dict[str, object] = {"model": pyg.GCN(FEATURES, HIDDEN, 3), "data": data} | change
    if arguments["data"] == "unlabelled":
        del data.y
        arguments["data"] = data
    if arguments["data"] == "huge":
        data.x[0, 0] = torch.inf
        arguments["data"] = data
    with pytest.raises(ValueError, match=sentence):
        oversmoothing_profile(**arguments)  # type: ignore[arg-type]


def test_a_pooled_state_is_an_error(data: Data) -> None:
    class Pooled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.pool = pyg.GCNConv(FEATURES, HIDDEN), nn.Identity()

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return self.pool(self.conv(x, edge_index).mean(dim=0, keepdim=True))

    model = Pooled()
    with pytest.raises(ValueError, match=r"has shape \[1, 8\], but the graph has 30 nodes"):
        oversmoothing_profile(model, data, layers=[model.pool])


def test_measures_that_do_not_decay_are_an_error(data: Data) -> None:
    found = oversmoothing_profile(pyg.GCN(FEATURES, HIDDEN, 6), data)
    with pytest.raises(ValueError, match="effective-rank does not go to zero when nodes become equal; take one of"):
        is_oversmoothing(found, "effective-rank")
    with pytest.raises(ValueError, match="the profile has no 'order'; it has"):
        is_oversmoothing(found, "order")
