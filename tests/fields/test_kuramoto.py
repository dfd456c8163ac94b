import pytest
import torch

from kuramotognn import Kuramoto, RandomWalk, Solver, integrate
from kuramotognn.fields import CoupledDynamics, Couplings, PhaseField
from tests.conftest import ring


def test_natural_frequencies_are_the_initial_phases() -> None:
    graph = ring(4)
    x0 = torch.randn(4, 2, dtype=torch.float64)
    dynamics = PhaseField(RandomWalk(), coupling=2.0)(x0, graph)
    assert dynamics.source is x0
    velocity = torch.zeros_like(x0)
    for i in range(4):
        for j in ((i - 1) % 4, (i + 1) % 4):
            velocity[i] += 2.0 * 0.5 * torch.sin(x0[j] - x0[i])
    torch.testing.assert_close(dynamics(0.0, x0), x0 + velocity)


def test_grand_is_the_linearisation() -> None:
    """The paper's first proposition: equal ω, K = 1, small phases. GRAND's flow is exp(t(A − I)) x(0)."""
    graph = ring(6)
    a = RandomWalk()(torch.empty(6, 0), graph)
    matrix = torch.zeros(6, 6, dtype=torch.float64)
    matrix[graph.pattern.row, graph.pattern.col] = a
    direction = torch.randn(6, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    errors = []
    for size in (1e-2, 1e-3):
        x0 = size * direction
        dynamics = CoupledDynamics(Couplings(graph.pattern, a), torch.zeros_like(x0), 1.0)
        flow = integrate(dynamics, x0, 2.0, Solver("rk4", steps=400)).final
        grand = torch.linalg.matrix_exp(2.0 * (matrix - torch.eye(6, dtype=torch.float64))) @ x0
        errors.append((flow - grand).abs().max() / size)
    assert errors[0] < 1e-3
    assert 1.9 < torch.log10(errors[0] / errors[1]) < 2.1, "sin x = x − x³/6: the relative error is quadratic"


@pytest.mark.parametrize("coupling", [0.0, -1.0, float("nan"), float("inf")])
def test_coupling_must_be_positive(coupling: float) -> None:
    with pytest.raises(ValueError, match=f"coupling must be positive and finite, got {coupling}"):
        PhaseField(RandomWalk(), coupling=coupling)


def test_unknown_interaction_names_the_nearest() -> None:
    with pytest.raises(ValueError, match="did you mean 'local-order'"):
        PhaseField(RandomWalk(), Kuramoto(interaction="localorder"))  # type: ignore[arg-type]
