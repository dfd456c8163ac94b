from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from matplotlib.animation import FFMpegWriter
from PIL import Image

from kuramotognn.plots.simulation_plots import animate, draw_order, draw_transition
from kuramotognn.simulate import Frequencies, Oscillators, simulate, transition


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_pictures(tmp_path: Path, suffix: str) -> None:
    draw_order(simulate(Oscillators(30, 3.0), 2.0), tmp_path / f"a{suffix}")
    draw_transition(transition(Oscillators(30), [1.0, 3.0], 1.0), tmp_path / f"b{suffix}")
    assert (tmp_path / f"a{suffix}").stat().st_size > 5000
    assert (tmp_path / f"b{suffix}").stat().st_size > 5000


def test_pictures_without_theory(tmp_path: Path) -> None:
    models = [Oscillators(30, frequencies=Frequencies("uniform")), Oscillators(frequencies=np.zeros(9), lag=0.1)]
    for model in models:
        draw_transition(transition(model, [1.0, 3.0], 1.0), tmp_path / "a.svg")
        draw_order(simulate(model, 1.0), tmp_path / "b.svg")
    with pytest.raises(ValueError, match=r"must end in .png or .svg or .pdf"):
        draw_order(simulate(models[1], 1.0), tmp_path / "a.bmp")


def test_films_have_a_frame_a_sample(tmp_path: Path) -> None:
    graph = nx.cycle_graph(6)
    run = simulate(Oscillators(graph=graph), 1.0, samples=3, keep_phases=True)
    animate(run, tmp_path / "circle.gif")
    animate(run, tmp_path / "graph.gif", graph=graph)
    places = np.random.default_rng(0).normal(size=(6, 2))
    animate(run, tmp_path / "placed.gif", graph=graph, positions=places)
    for name in ("circle.gif", "graph.gif", "placed.gif"):
        with Image.open(tmp_path / name) as film:
            assert film.n_frames == 4
    with pytest.raises(ValueError, match="positions must have shape"):
        animate(run, tmp_path / "x.gif", graph=graph, positions=places[1:])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["circle.gif", "graph.gif", "placed.gif"]


@pytest.mark.skipif(not FFMpegWriter.isAvailable(), reason="ffmpeg is not on the search path")
def test_a_film_for_a_player(tmp_path: Path) -> None:
    animate(simulate(Oscillators(6), 1.0, samples=3, keep_phases=True), tmp_path / "circle.mp4")
    assert (tmp_path / "circle.mp4").read_bytes()[4:8] == b"ftyp"
    assert [path.name for path in tmp_path.iterdir()] == ["circle.mp4"]


def test_films_that_cannot_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = simulate(Oscillators(3), 1.0, samples=1)
    with pytest.raises(ValueError, match="simulate with keep_phases=True"):
        animate(run, tmp_path / "a.gif")
    with pytest.raises(ValueError, match=r"must end in .gif or .mp4"):
        animate(run, tmp_path / "a.avi")
    monkeypatch.setattr(FFMpegWriter, "isAvailable", lambda: False)
    with pytest.raises(ValueError, match=r"needs ffmpeg, .*; install it or write a \.gif"):
        animate(run, tmp_path / "a.mp4")
