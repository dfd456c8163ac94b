"""Each measure equals its definition, written as loops."""

import cmath
import math
from itertools import combinations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import pdist
from scipy.stats import entropy
from torch import Tensor

from kuramotognn import Graph
from kuramotognn.diagnostics import measures as m
from tests.conftest import graphs, ring

SEEDS = st.integers(0, 2**16)


def state(nodes: int, seed: int, width: int = 3) -> Tensor:
    """Random numbers, some rows zero."""
    generator = torch.Generator().manual_seed(seed)
    x = 3 * torch.randn(nodes, width, generator=generator, dtype=torch.float64)
    return torch.where(torch.rand(nodes, 1, generator=generator) < 0.2, 0.0, x)


def edges(graph: Graph) -> list[tuple[int, int, float]]:
    """(i, j, weight of j acting on i)."""
    j, i = graph.edge_index.tolist()
    return list(zip(i, j, graph.weight.tolist(), strict=True))


def cosine_distance(x: Tensor, y: Tensor) -> float:
    lengths = float(x.norm()), float(y.norm())
    if 0.0 in lengths:
        return 0.0 if lengths == (0.0, 0.0) else 1.0
    return 1 - float(x @ y) / (lengths[0] * lengths[1])


@given(graphs(), SEEDS)
def test_orders_and_energies_equal_their_definitions(graph: Graph, seed: int) -> None:
    x = state(graph.num_nodes, seed)
    n, d = x.shape
    for c in range(d):
        mean = sum(cmath.exp(1j * float(x[i, c])) for i in range(n)) / n
        assert abs(complex(m.order_parameter(x)[c]) - mean) < 1e-12
    total = [sum(w for i, _, w in edges(graph) if i == k) for k in range(n)]
    local = m.local_order_parameter(x, graph)
    for k in range(n):
        # Shares first: the smallest weights lose their digits in products.
        shares = [(j, w / total[k]) for i, j, w in edges(graph) if i == k and total[k]]
        mean = sum(share * cmath.exp(1j * float(x[j, 0])) for j, share in shares)
        assert abs(complex(local[k, 0]) - mean) < 1e-12
    energy = sum(w * sum(1 - math.cos(v) for v in (x[i] - x[j]).tolist()) for i, j, w in edges(graph)) / 2
    assert m.phase_energy(x, graph) == pytest.approx(energy, abs=1e-12)
    dirichlet = sum(w * float((x[i] - x[j]).square().sum()) for i, j, w in edges(graph)) / 2
    assert m.dirichlet_energy(x, graph) == pytest.approx(dirichlet, abs=1e-12)
    scaled = [x[i] / math.sqrt(total[i]) if total[i] else 0 * x[i] for i in range(n)]
    normalised = sum(w * float((scaled[i] - scaled[j]).square().sum()) for i, j, w in edges(graph)) / 2
    assert m.dirichlet_energy(x, graph, normalised=True) == pytest.approx(normalised, rel=1e-9, abs=1e-9)
    size = float(x.square().sum())
    assert m.rayleigh_quotient(x, graph) == pytest.approx(normalised / size if size else 0.0, rel=1e-9, abs=1e-9)


@given(graphs(), SEEDS)
def test_distances_equal_their_definitions(graph: Graph, seed: int) -> None:
    x = state(graph.num_nodes, seed)
    n = graph.num_nodes
    rows = [[cosine_distance(x[i], x[j]) for i, j, _ in edges(graph) if i == k and j != k] for k in range(n)]
    means = [sum(row) / len(row) for row in rows if row]
    assert m.mean_average_distance(x, graph) == pytest.approx(sum(means) / len(means) if means else 0.0, abs=1e-12)
    pairs = [cosine_distance(x[i], x[j]) for i, j in combinations(range(n), 2)]
    assert m.mean_average_distance(x) == pytest.approx(sum(pairs) / len(pairs) if pairs else 0.0, abs=1e-12)
    distances = pdist(x.numpy())
    assert m.mean_pairwise_distance(x) == pytest.approx(distances.mean() if n > 1 else 0.0)
    assert m.mean_squared_distance(x) == pytest.approx((distances**2).mean() if n > 1 else 0.0)
    assert m.frequency_spread(x, norm=2.0) == pytest.approx(distances.max(initial=0.0))
    assert m.frequency_spread(x) == pytest.approx(pdist(x.numpy(), "chebyshev").max(initial=0.0))


@given(st.integers(1, 9), st.integers(1, 5), SEEDS)
def test_ranks_and_classes_equal_their_definitions(nodes: int, width: int, seed: int) -> None:
    x = state(nodes, seed, width)
    sigma = np.linalg.svd(x.numpy(), compute_uv=False)
    some = sigma.sum() > 0
    assert m.effective_rank(x) == pytest.approx(math.exp(entropy(sigma / sigma.sum())) if some else 0.0)
    assert m.numerical_rank(x) == pytest.approx((sigma**2).sum() / sigma[0] ** 2 if some else 0.0)
    y = torch.randint(0, 3, (nodes,), generator=torch.Generator().manual_seed(seed))
    within = sum(float((x[k] - x[y == y[k]].mean(dim=0)).square().sum()) for k in range(nodes)) / nodes
    between = sum(float((x[y == y[k]].mean(dim=0) - x.mean(dim=0)).square().sum()) for k in range(nodes)) / nodes
    found = m.class_separation(x, y)
    assert (found.within, found.between) == pytest.approx((within, between), abs=1e-12)
    # The law of total variance.
    assert within + between == pytest.approx(float(x.var(dim=0, correction=0).sum()), abs=1e-12)


def test_results_do_not_depend_on_the_block_size(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, x = ring(40), state(40, 0)
    functions = (
        lambda: m.dirichlet_energy(x, graph),
        lambda: m.mean_average_distance(x, graph),
        lambda: m.mean_pairwise_distance(x),
        lambda: m.mean_pairwise_distance(x, pairs=m.sample_pairs(40, 500)),
        lambda: m.frequency_spread(x, norm=2.0),
    )
    whole = [function() for function in functions]
    monkeypatch.setattr(m, "BLOCK", 64)
    assert [function() for function in functions] == pytest.approx(whole, rel=1e-14)


def test_nearly_equal_states_keep_their_digits() -> None:
    """Closed forms with matrix products would give rounding errors of 1e-16, not differences of 1e-24."""
    graph, noise = ring(20), state(20, 1)
    x = 1 + 1e-12 * noise
    for function in (m.dirichlet_energy, m.phase_energy):
        ratio = function(x, graph) / (m.dirichlet_energy(noise, graph) * 1e-24)
        assert ratio == pytest.approx(1.0 if function is m.dirichlet_energy else 0.5, rel=1e-3)
    assert m.mean_pairwise_distance(x) == pytest.approx(1e-12 * m.mean_pairwise_distance(noise), rel=1e-3)


def test_sampled_pairs_estimate_the_mean() -> None:
    x = state(300, 2)
    i, j = m.sample_pairs(300, 50_000, seed=3)
    assert (i != j).all()
    assert m.mean_pairwise_distance(x, pairs=(i, j)) == pytest.approx(m.mean_pairwise_distance(x), rel=0.02)
    # All ordered pairs are equally likely.
    counts = torch.bincount(m.sample_pairs(3, 60_000)[0] * 3 + m.sample_pairs(3, 60_000)[1], minlength=9).view(3, 3)
    assert counts.diagonal().tolist() == [0, 0, 0]
    assert (counts[~torch.eye(3, dtype=torch.bool)] - 10_000).abs().max() < 400


def test_known_values() -> None:
    twisted = 2 * math.pi * torch.arange(8, dtype=torch.float64)[:, None] / 8
    assert float(m.order_parameter(twisted).abs()) < 1e-15
    assert m.phase_energy(twisted, ring(8)) == pytest.approx(8 * (1 - math.cos(math.pi / 4)))
    assert m.effective_rank(torch.eye(5)) == pytest.approx(5)
    assert m.numerical_rank(torch.ones(4, 3)) == pytest.approx(1)
    separation = m.class_separation(torch.tensor([[0.0], [0.0], [2.0], [2.0]]), torch.tensor([0, 0, 1, 1]))
    assert (separation.within, separation.between, separation.share) == (0.0, 1.0, 1.0)


def test_wrong_arguments() -> None:
    with pytest.raises(ValueError, match=r"a state must have shape \[N, d\], got \[3\]"):
        m.order_parameter(torch.zeros(3))
    with pytest.raises(ValueError, match=r"the state must have shape \[5, 2\], got \[4, 2\]"):
        m.dirichlet_energy(torch.zeros(4, 2), ring(5))
    with pytest.raises(ValueError, match=r"y must have shape \[4\], got \[3\]"):
        m.class_separation(torch.zeros(4, 2), torch.zeros(3, dtype=torch.long))
    with pytest.raises(ValueError, match="pairs need at least 2 nodes, got 1"):
        m.sample_pairs(1, 10)
    with pytest.raises(ValueError, match="number of sampled pairs must be positive"):
        m.sample_pairs(5, 0)
