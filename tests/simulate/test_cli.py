import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from matplotlib.animation import FFMpegWriter

from kuramotognn.cli import main
from kuramotognn.simulate import Oscillators, Simulation, simulate
from tests.conftest import Refused

QUICK = ["--oscillators", "50", "--time", "1", "--samples", "5"]


def test_simulate_prints_the_order_and_saves(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {"--out": tmp_path / "run.npz", "--figure": tmp_path / "run.png", "--animate": tmp_path / "run.gif"}
    flags = [str(part) for pair in files.items() for part in pair]
    assert main(["simulate", *QUICK, "--coupling", "3", *flags]) == 0
    printed = capsys.readouterr().out
    assert "50 oscillators, all to all, rk4, step 0.05" in printed
    assert printed.count("wrote ") == 3
    run = Simulation.load(files["--out"])
    assert f"r = {run.mean_order:.4f} ±" in printed
    same = simulate(Oscillators(50, 3.0), 1.0, samples=5)
    np.testing.assert_array_equal(run.order, same.order)


def test_every_term_has_a_flag(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "run.parquet"
    terms = ["--graph", "small-world:4:0.2", "--lag", "0.1", "--delay", "0.2", "--noise", "0.01", "--inertia", "0.5"]
    shape = ["--frequencies", "normal", "--centre", "1", "--width", "2", "--draw", "quantiles", "--normalise", "degree"]
    how = ["--seed", "4", "--dtype", "float32", "--history", "uncoupled", "--transient", "0.5", "--keep-phases"]
    assert main(["simulate", *QUICK, *terms, *shape, *how, "--out", str(out), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    run = Simulation.load(out)
    assert facts["settings"] == run.settings
    assert run.settings["graph"].endswith(" directed edges")
    expected = {"lag": 0.1, "delay": 0.2, "noise": 0.01, "inertia": 0.5, "normalise": "degree", "seed": 4}
    assert expected.items() <= run.settings.items()
    assert run.settings["frequencies"] == {"shape": "normal", "centre": 1.0, "width": 2.0, "draw": "quantiles"}
    assert run.trajectory.dtype == np.float32
    assert run.trajectory.shape[1] == 50


def test_input_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "edges.csv").write_text("source,target\n0,1\n1,2\n")
    (tmp_path / "omega.txt").write_text("0.1\n0.2\n0.3\n")
    files = ["--graph", str(tmp_path / "edges.csv"), "--frequencies", str(tmp_path / "omega.txt")]
    assert main(["simulate", "--time", "1", *files, "--quiet"]) == 0
    assert capsys.readouterr().out.startswith("r = 0.")
    assert main(["simulate", "--time", "1", *files, "--directed", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["settings"]["graph"] == "2 directed edges"


def test_transition_prints_and_saves(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = ["--out", str(tmp_path / "curve.csv"), "--figure", str(tmp_path / "curve.png")]
    assert main(["simulate", "transition", *QUICK, "--couplings", "0.5", "5", "3", *files]) == 0
    printed = capsys.readouterr().out
    assert "critical coupling K_c = 2/(π g(0)) = 2" in printed
    assert pl.read_csv(tmp_path / "curve.csv")["coupling"].to_list() == [0.5, 2.75, 5.0]
    assert main(["simulate", "transition", *QUICK, "--couplings", "1", "2", "2", "--lag", "0.1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["critical"] is None
    assert main(["simulate", "transition", *QUICK, "--couplings", "1", "2", "2", "--quiet"]) == 0
    assert capsys.readouterr().out.startswith("1:0.")


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("", "the number of oscillators is missing"),
        ("--oscillators 0", "there must be at least one oscillator, got 0"),
        ("--oscillators 9 --frequencies lorenz", "frequencies must be one of lorentzian, normal, uniform"),
        ("--frequencies missing.txt", "frequencies file 'missing.txt' does not exist"),
        ("--oscillators 9 --graph random:10", "the average degree must lie between"),
        ("--oscillators 9 --noise -1", "noise must be at least 0 and finite, got -1.0"),
        ("--oscillators 9 --noise 1 --method rk4", "noise needs method 'euler'"),
        ("--oscillators 9 --time 0", "time must be positive and finite, got 0"),
        ("--oscillators 9 --threads 0", "threads must be at least 1, got 0"),
        ("--oscillators 9 --out run.csv", "'run.csv' must end in .npz or .parquet"),
        ("--oscillators 9 --out no/run.npz", "the folder of no/run.npz does not exist; make it first"),
        ("--oscillators 9 --animate run.mp4", "needs ffmpeg"),
        ("--oscilators 9", "--oscillators"),
        ("transition --oscillators 9 --couplings 1 2 0", "at least one coupling, got 0"),
    ],
)
def test_wrong_arguments_print_one_sentence_and_exit_with_two(
    line: str, error: str, monkeypatch: pytest.MonkeyPatch, assert_refused: Refused
) -> None:
    monkeypatch.setattr(FFMpegWriter, "isAvailable", lambda: False)
    assert_refused(["simulate", *line.split()], error)
