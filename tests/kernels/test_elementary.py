"""Sine, cosine and exponential of the compiled kernels against NumPy in float64."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pytest
import torch

from kuramotognn import Graph
from kuramotognn.kernels import CoupledSystem
from kuramotognn.kernels.attention.operator import edge_attention
from kuramotognn.kernels.pattern_layout import layout
from kuramotognn.simulate.oscillator_kernels import MEAN_FIELD, OscillatorKernels, lanes, zeros

pytestmark = pytest.mark.usefixtures("isa")
SinCos: TypeAlias = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
PRECISIONS = pytest.mark.parametrize(("dtype", "bound"), [(np.float32, 4e-7), (np.float64, 1e-15)])


def of_the_simulator(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What the simulator's oscillators show of their phases."""
    real, width = x.dtype.type, lanes(x.dtype.type)
    tiles = -(-x.size // width)
    phase, features = zeros((tiles * width,), real), zeros((tiles, 2, width), real)
    phase[: x.size] = x
    arrays = {"phase": phase, "frequency": zeros(phase.shape, real), "features": features, "sums": np.zeros(2 * tiles)}
    sizes = {"tiles": tiles, "block": tiles, "blocks": 1, "kept": 1, "summed": 1, "stages": 1, "kind": MEAN_FIELD}
    live = zeros((width,), real)
    live += 1
    OscillatorKernels(**arrays, **sizes, live=live, is_double=real is np.float64).begin(0, 0.0)
    sin, cos = (features[:, part].reshape(-1)[: x.size] for part in range(2))
    return sin, cos


def of_the_field(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The velocities of nodes 0 and 1, at phases 0 and -pi/2, coupled to node 2 at x: sin(x) and sin(x + pi/2)."""
    graph = Graph.from_edge_index(torch.tensor([[2, 2], [0, 1]]), 3)
    state = torch.zeros(3, x.size, dtype=torch.from_numpy(x).dtype)
    state[1], state[2] = -torch.pi / 2, torch.from_numpy(x)
    velocity = CoupledSystem(graph.pattern, torch.ones(2, dtype=state.dtype), torch.zeros_like(state), 1.0)(state)
    return velocity[0].numpy(), velocity[1].numpy()


@pytest.fixture(params=[of_the_simulator, of_the_field])
def sine_and_cosine(request: pytest.FixtureRequest) -> SinCos:
    return request.param


@PRECISIONS
@pytest.mark.parametrize("reach", [1e-3, 1.0, 100.0, 1e4])
def test_sine_and_cosine_are_numpys(sine_and_cosine: SinCos, dtype: type, bound: float, reach: float) -> None:
    x = np.linspace(-reach, reach, 40_011).astype(dtype)
    for ours, numpys in zip(sine_and_cosine(x), (np.sin, np.cos), strict=True):
        assert np.abs(ours - numpys(x.astype(np.float64))).max() <= bound


@PRECISIONS
def test_sine_and_cosine_at_multiples_of_a_quarter_turn(sine_and_cosine: SinCos, dtype: type, bound: float) -> None:
    """Where the reduction of the argument cancels most."""
    quarters = (np.arange(-6366, 6367) * (np.pi / 2)).astype(dtype)
    x = np.concatenate([quarters, np.nextafter(quarters, dtype(np.inf)), np.nextafter(quarters, dtype(-np.inf))])
    for ours, numpys in zip(sine_and_cosine(x), (np.sin, np.cos), strict=True):
        assert np.abs(ours - numpys(x.astype(np.float64))).max() <= bound


@PRECISIONS
def test_sine_of_a_small_phase_is_exact_to_a_relative_error(sine_and_cosine: SinCos, dtype: type, bound: float) -> None:
    x = np.logspace(-30, -3, 500).astype(dtype)
    assert np.abs(sine_and_cosine(x)[0] / np.sin(x.astype(np.float64)) - 1).max() <= bound


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sine_and_cosine_of_no_number_are_no_number(sine_and_cosine: SinCos, dtype: type) -> None:
    x = np.array([np.nan, np.inf, -np.inf], dtype)
    assert np.isnan(sine_and_cosine(x)).all()


@pytest.mark.parametrize(("dtype", "bound", "least"), [(torch.float32, 3e-7, -86), (torch.float64, 6e-16, -700)])
def test_exponentials_are_torchs(dtype: torch.dtype, bound: float, least: int) -> None:
    """Of two scores, 0 and x, the second has the share exp(x) / (1 + exp(x))."""
    x = torch.cat([torch.linspace(least, 0, 4000), -torch.logspace(-30, 0, 400), torch.tensor([-1e30])]).to(dtype)
    nodes = x.numel()
    sources = torch.stack([torch.full((nodes,), nodes), torch.arange(nodes)], 1).flatten()
    targets = torch.arange(nodes).repeat_interleave(2)
    graph = Graph.from_edge_index(torch.stack([sources, targets]), nodes + 1, dtype=dtype)
    keys, queries = torch.ones(nodes + 1, 1, dtype=dtype), torch.cat([x, torch.zeros(1, dtype=dtype)])[:, None]
    a, _ = edge_attention(layout(graph.pattern), keys, queries, graph.weight, 1)
    ours, exact = a[graph.pattern.col < nodes].double(), x.double().sigmoid()
    assert ((ours - exact).abs() <= bound * exact.clamp(min=1e-300)).all()
