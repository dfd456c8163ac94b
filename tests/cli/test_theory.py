import json
from dataclasses import replace
from pathlib import Path

import pytest

from kuramotognn import theory
from kuramotognn.cli import main
from kuramotognn.theory import Check, Finding


def test_a_statement_is_shown_with_its_place_and_verdicts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["theory", "local-order"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    for word in ("On the efficiency analysis", "holds", "fails as written", "Not an identity", "all as expected"):
        assert word in told


def test_figures_and_numbers_are_saved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["theory", "local-order", "growth", "--out", str(tmp_path / "new"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told == json.loads((tmp_path / "new" / "theory.json").read_text())
    assert [statement["name"] for statement in told["statements"]] == ["local-order", "growth"]
    assert {path.name for path in (tmp_path / "new").iterdir()} == {"theory.json", "local-order.svg", "growth.svg"}


def test_exit_code_one_when_a_check_fails(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    finding = Finding((Check("two is at most one", 2.0, "≤", 1.0),), ())
    broken = replace(theory.STATEMENTS["growth"], run=lambda: finding)
    monkeypatch.setitem(theory.STATEMENTS, "growth", broken)
    assert main(["theory", "growth"]) == 1
    told = capsys.readouterr()
    assert "FAILS" in told.out
    assert "checks of growth did not come out as they should" in told.err


def test_mistakes_get_one_sentence_and_exit_code_two(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["theory", "grwth"]) == 2
    assert "did you mean 'growth'?" in capsys.readouterr().err
