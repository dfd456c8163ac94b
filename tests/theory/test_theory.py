"""Each statement has the documented outcome, and a wrong implementation changes it."""

from functools import cache

import numpy as np
import pytest
import torch

from kuramotognn import theory
from kuramotognn.diagnostics import phase_energy
from kuramotognn.kernels import kuramoto_per_edge
from kuramotognn.theory import STATEMENTS, Check, Examined, examine, gradient_bound, statements
from kuramotognn.theory.frequency_synchronisation import critical_coupling
from kuramotognn.theory.systems import kuramoto


@cache
def examined(name: str) -> Examined:
    return examine(STATEMENTS[name])


@pytest.mark.parametrize("name", list(STATEMENTS))
def test_statements_have_the_expected_outcome(name: str) -> None:
    result = examined(name)
    for check in result.finding.checks:
        assert check.expected, f"{check.claim}: {check.measured} {check.relation} {check.tolerance}"
    assert result.expected
    assert any(check.as_written for check in result.finding.checks), "each statement has a counter-example"
    for panel in result.finding.panels:
        assert panel.x_label
        assert panel.y_label
        for line in panel.lines:
            assert len(line.x) == len(line.y) > 1
            assert np.isfinite([*line.x, *line.y]).all()


def doubled(graph, a, omega, strength=1.0, *, linear=False):  # type: ignore[no-untyped-def]
    return kuramoto(graph, a, omega, strength if linear else 2 * strength, linear=linear)


def without_frequencies(graph, a, omega, strength=1.0, *, linear=False):  # type: ignore[no-untyped-def]
    return kuramoto(graph, a, omega if linear else torch.zeros_like(omega), strength, linear=linear)


def growing_energy(x, graph):  # type: ignore[no-untyped-def]
    return 100 - phase_energy(x, graph)


def small_critical_coupling(omega):  # type: ignore[no-untyped-def]
    return 0.9 * critical_coupling(omega)


def small_bound(problem, depth):  # type: ignore[no-untyped-def]
    return gradient_bound.printed_bound(problem, depth, problem.column_sum)


def nearly_equal(*arguments):  # type: ignore[no-untyped-def]
    return (1 + 1e-9) * kuramoto_per_edge(*arguments)


def large_rows(pattern, values):  # type: ignore[no-untyped-def]
    return 5 * values


@pytest.mark.parametrize(
    ("name", "attribute", "wrong"),
    [
        ("linearisation", "kuramoto", doubled),
        ("phase-synchronisation", "phase_energy", growing_energy),
        ("frequency-synchronisation", "critical_coupling", small_critical_coupling),
        ("gradient-bound", "corrected_bound", small_bound),
        ("vanishing-gradients", "kuramoto", without_frequencies),
        ("local-order", "kuramoto_local_order", nearly_equal),
        ("growth", "row_normalise", large_rows),
    ],
)
def test_a_wrong_implementation_is_detected(
    name: str, attribute: str, wrong: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gradient_bound, "DEPTHS", (1, 4, 128))
    monkeypatch.setattr(getattr(theory, name.replace("-", "_")), attribute, wrong)
    result = examine(STATEMENTS[name])
    assert not result.expected
    assert any(check.verdict in ("FAILS", "not refuted") for check in result.finding.checks)


def test_critical_coupling_of_two_oscillators() -> None:
    """Δ' = Δω − K sin Δ for couplings 1/2 each: they lock when K is at least the difference of their frequencies."""
    omega = torch.tensor([[0.7], [-0.1]], dtype=torch.float64)
    assert critical_coupling(omega) == pytest.approx(0.8, rel=1e-6)


def test_critical_coupling_of_many_uniform_frequencies() -> None:
    """Uniform on [−γ, γ] in the limit of many: K_c = 4γ/π (Pazó, 2005)."""
    omega = torch.linspace(-1, 1, 4001, dtype=torch.float64)[:, None]
    assert critical_coupling(omega) == pytest.approx(4 / np.pi, rel=1e-3)


def test_verdicts_of_checks() -> None:
    assert Check("", 1.0, "≤", 2.0).verdict == "holds"
    assert Check("", 3.0, "≤", 2.0).verdict == "FAILS"
    assert Check("", 3.0, "≤", 2.0, as_written=True).verdict == "fails as written"
    assert Check("", 3.0, "≥", 2.0, as_written=True).verdict == "not refuted"
    assert [Check("", 3.0, "≤", 2.0, as_written=flag).expected for flag in (False, True)] == [False, True]
    assert not Check("", float("nan"), "≤", 2.0).holds


def test_names_of_statements() -> None:
    assert [statement.name for statement in statements()] == list(STATEMENTS)
    assert [statement.name for statement in statements(["growth"])] == ["growth"]
    with pytest.raises(ValueError, match=r"statement must be one of .* did you mean 'growth'"):
        statements(["grwth"])
