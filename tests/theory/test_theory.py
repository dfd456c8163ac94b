"""Each statement comes out as documented, and each would be noticed if it did not."""

from functools import cache

import numpy as np
import pytest
import torch

from kuramotognn.fields import KuramotoDynamics
from kuramotognn.kernels import kuramoto_per_edge
from kuramotognn.theory import (
    STATEMENTS,
    Check,
    Examined,
    examine,
    frequencies,
    gradient_bound,
    growth,
    linearisation,
    local_order,
    phases,
    statements,
    vanishing_gradients,
)


@cache
def examined(name: str) -> Examined:
    return examine(STATEMENTS[name])


@pytest.mark.parametrize("name", list(STATEMENTS))
def test_statement(name: str) -> None:
    result = examined(name)
    for check in result.finding.checks:
        assert check.expected, f"{check.claim}: {check.measured} {check.relation} {check.tolerance}"
    assert result.expected
    assert any(check.as_written for check in result.finding.checks), "each needs an assumption or a mend"
    for panel in result.finding.panels:
        assert panel.x_label
        assert panel.y_label
        for line in panel.lines:
            assert len(line.x) == len(line.y) > 1
            assert np.isfinite([*line.x, *line.y]).all()


def breaks(monkeypatch: pytest.MonkeyPatch, name: str, module: object, attribute: str, wrong: object) -> None:
    monkeypatch.setattr(module, attribute, wrong)
    result = examine(STATEMENTS[name])
    assert not result.expected
    assert any(check.verdict in ("FAILS", "not refuted") for check in result.finding.checks)


def test_linearisation_notices_another_coupling(monkeypatch: pytest.MonkeyPatch) -> None:
    def doubled(pattern, a, omega, coupling):  # type: ignore[no-untyped-def]
        return KuramotoDynamics(pattern, a, omega, 2 * coupling)

    breaks(monkeypatch, "linearisation", linearisation, "KuramotoDynamics", doubled)


def test_phase_synchronisation_notices_an_energy_that_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    energy = phases.phase_energy
    breaks(monkeypatch, "phase-synchronisation", phases, "phase_energy", lambda x, graph: 100 - energy(x, graph))


def test_frequency_synchronisation_notices_a_wrong_critical_coupling(monkeypatch: pytest.MonkeyPatch) -> None:
    true = frequencies.critical_coupling
    breaks(monkeypatch, "frequency-synchronisation", frequencies, "critical_coupling", lambda omega: 0.9 * true(omega))


def test_gradient_bound_notices_a_bound_that_is_too_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gradient_bound, "DEPTHS", (1, 4, 128))
    breaks(
        monkeypatch,
        "gradient-bound",
        gradient_bound,
        "mended",
        lambda problem, depth: gradient_bound.literal(problem, depth, problem.column_sum),
    )


def test_vanishing_gradients_notices_a_flow_without_frequencies(monkeypatch: pytest.MonkeyPatch) -> None:
    def equal(pattern, a, omega, coupling):  # type: ignore[no-untyped-def]
        return KuramotoDynamics(pattern, a, torch.zeros_like(omega), coupling)

    breaks(monkeypatch, "vanishing-gradients", vanishing_gradients, "KuramotoDynamics", equal)


def test_local_order_notices_an_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    def nearly_equal(*arguments):  # type: ignore[no-untyped-def]
        return (1 + 1e-9) * kuramoto_per_edge(*arguments)

    breaks(monkeypatch, "local-order", local_order, "kuramoto_local_order", nearly_equal)


def test_growth_notices_rows_that_do_not_sum_to_one(monkeypatch: pytest.MonkeyPatch) -> None:
    breaks(monkeypatch, "growth", growth, "row_normalise", lambda pattern, values: 5 * values)


def test_the_critical_coupling_of_two_oscillators() -> None:
    """Δ' = Δω − K sin Δ for couplings 1/2 each: they lock when K is at least the difference of their frequencies."""
    omega = torch.tensor([[0.7], [-0.1]], dtype=torch.float64)
    assert frequencies.critical_coupling(omega) == pytest.approx(0.8, rel=1e-6)


def test_the_critical_coupling_of_many_uniform_frequencies() -> None:
    """Uniform on [−γ, γ] in the limit of many: K_c = 4γ/π (Pazó, 2005)."""
    omega = torch.linspace(-1, 1, 4001, dtype=torch.float64)[:, None]
    assert frequencies.critical_coupling(omega) == pytest.approx(4 / np.pi, rel=1e-3)


def test_verdicts() -> None:
    assert Check("", 1.0, "≤", 2.0).verdict == "holds"
    assert Check("", 3.0, "≤", 2.0).verdict == "FAILS"
    assert Check("", 3.0, "≤", 2.0, as_written=True).verdict == "fails as written"
    assert Check("", 3.0, "≥", 2.0, as_written=True).verdict == "not refuted"
    assert [Check("", 3.0, "≤", 2.0, as_written=flag).expected for flag in (False, True)] == [False, True]
    assert not Check("", float("nan"), "≤", 2.0).holds


def test_names() -> None:
    assert [statement.name for statement in statements()] == list(STATEMENTS)
    assert [statement.name for statement in statements(["growth"])] == ["growth"]
    with pytest.raises(ValueError, match=r"statement must be one of .* did you mean 'growth'"):
        statements(["grwth"])
