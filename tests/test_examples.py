"""The examples that take seconds are run, and their numbers are checked."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


def table(name: str, capsys: pytest.CaptureFixture[str]) -> list[list[float]]:
    """The numbers that an example prints, one row per line."""
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    lines = capsys.readouterr().out.splitlines()[1:]
    return [[float(word) for word in line.replace(",", " ").split() if word[-1].isdigit()] for line in lines]


def test_phase_lag(capsys: pytest.CaptureFixture[str]) -> None:
    rows = table("phase_lag", capsys)
    for _, order, frequency, predicted in rows[:-1]:
        assert order > 0.99
        assert frequency == pytest.approx(predicted, abs=2e-3)
    assert rows[-1][1] < 0.3, "no synchrony beyond π/2"


def test_delay(capsys: pytest.CaptureFixture[str]) -> None:
    for _, order, frequency, predicted, stability in table("delay", capsys):
        if stability > 0:
            assert order > 0.99
            assert frequency == pytest.approx(predicted, abs=2e-3)
        else:
            assert order < 0.5


def test_adaptive_coupling(capsys: pytest.CaptureFixture[str]) -> None:
    fixed, *adaptive = table("adaptive_coupling", capsys)
    assert fixed[3] == pytest.approx(fixed[4], abs=0.01), "fixed couplings synchronise the groups"
    for _, inside, between, first, second in adaptive:
        assert inside > 0.95
        assert abs(between) < 0.3
        assert second - first > 1.0


def test_signed_coupling(capsys: pytest.CaptureFixture[str]) -> None:
    attractive, signed = table("signed_coupling", capsys)
    assert attractive == pytest.approx([1.0, 1.0, 1.0, 0.0], abs=0.02)
    assert signed == pytest.approx([0.0, 1.0, 1.0, 1.0], abs=0.02)
