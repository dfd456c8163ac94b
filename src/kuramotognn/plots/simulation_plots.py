"""Pictures and animations of simulations; legible in grey."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.animation import FFMpegWriter, FuncAnimation, PillowWriter
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from scipy import sparse

from kuramotognn.plots.style import line_style, save_figure
from kuramotognn.simulate.arrays import Array
from kuramotognn.simulate.natural_frequencies import Frequencies, critical_coupling, stationary_order
from kuramotognn.simulate.networks import Network, as_network
from kuramotognn.simulate.result import Simulation, check_suffix
from kuramotognn.simulate.transition import Transition

PICTURES = (".png", ".svg", ".pdf")
FILMS = (".gif", ".mp4")
DRAWN = 2000
"""Oscillators in an animation; of more than these, evenly spaced ones are shown."""
FRAMES = 200


def draw_order(run: Simulation, path: str | Path) -> None:
    """r(t), and what the oscillators' mean frequencies became of their natural ones."""
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    _order_curve(left, run)
    shown = _some(run.phases.size, 5000)
    low, high = np.quantile(run.frequencies, 0.05) - 1e-9, np.quantile(run.frequencies, 0.95) + 1e-9
    right.plot([low, high], [low, high], color="0.6", linewidth=1, linestyle="--", label="uncoupled")
    right.plot(run.frequencies[shown], run.mean_frequencies[shown], "k.", markersize=2, label="oscillators")
    margin = 0.05 * (high - low)
    right.set(xlim=(low, high), ylim=(low - margin, high + margin))
    right.set(xlabel="natural frequency ω (rad per unit time)", ylabel="mean frequency (rad per unit time)")
    right.legend(frameon=False)
    right.grid(alpha=0.3)
    _write(figure, path)


def draw_transition(curve: Transition, path: str | Path) -> None:
    """r(K) with the theoretical curve and the critical coupling where there are such."""
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    given = curve.settings["frequencies"]
    if curve.critical is not None:
        frequencies = Frequencies(**given)
        critical = critical_coupling(frequencies)
        fine = np.unique(np.append(np.linspace(min(0.0, *curve.couplings), curve.couplings.max(), 400), critical))
        theory = [stationary_order(frequencies, coupling) for coupling in fine]
        formula = r": $r = \sqrt{1 - K_c/K}$" if frequencies.shape == "lorentzian" else ""
        axes.plot(fine, theory, color="black", linewidth=1.4, label=f"theory, N → ∞{formula}")
        axes.axvline(critical, color="0.5", linestyle=":", label=f"$K_c = 2/(\\pi g(0)) = {critical:.3g}$")
    axes.errorbar(
        *(curve.couplings, curve.order, curve.spread),
        fmt="o" if curve.critical is not None else "o-",
        color=line_style(0)["color"],
        markersize=5,
        markerfacecolor="white",
        capsize=2,
        label=f"N = {curve.settings['oscillators']:,}",
    )
    axes.set(xlabel="coupling K", ylabel="order parameter r (mean over time)", ylim=(-0.02, 1.02))
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    _write(figure, path)


def animate(run: Simulation, path: str | Path, *, graph: Any = None, positions: Array | None = None) -> None:
    """The phases as a film, GIF or (with ffmpeg) MP4: on the circle beside r(t) and, given its graph, on the graph.

    Args:
        run: a simulation with ``keep_phases=True``.
        path: ``.gif`` or ``.mp4``.
        graph: as for :class:`~kuramotognn.simulate.Oscillators`.
        positions: ``[N, 2]`` where to draw the graph's nodes; by NetworkX's spring layout where that is installed, else
            on a ring.
    """
    path = Path(path)
    check_suffix(path, FILMS)
    check_film(path)
    if run.trajectory is None:
        raise ValueError("an animation needs the phases of every sample; simulate with keep_phases=True")
    network = None if graph is None else as_network(graph)
    if network is not None and network.shape[0] > DRAWN:
        raise ValueError(f"a graph of {network.shape[0]} nodes is too large to draw; the limit is {DRAWN}")
    figure = Figure(figsize=(9 if network is None else 14, 4), layout="compressed", dpi=80)
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, 2 if network is None else 3)
    artists = [_circle(panels[0], run), _clock_hand(panels[-1], run)]
    if network is not None:
        artists.append(_graph(panels[1], run, network, positions))
    frames = _some(run.times.size, FRAMES)

    def show(frame: int) -> list[Any]:
        return [artist for update in artists for artist in update(frame)]

    show(0)
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # Arranged once: for every frame it takes most of the time.
    film = FuncAnimation(figure, show, frames=[int(f) for f in frames], blit=False)
    writer = PillowWriter(fps=20) if path.suffix == ".gif" else FFMpegWriter(fps=20)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        part = Path(folder) / path.name
        film.save(part, writer=writer)
        part.replace(path)


def check_film(path: Path) -> None:
    """Refuse a film that cannot be written here, before a long run rather than after it."""
    check_suffix(path, FILMS)
    if path.suffix == ".mp4" and not FFMpegWriter.isAvailable():
        raise ValueError(f"{path} needs ffmpeg, which is not on the search path; install it or write a .gif")


def _order_curve(axes: Axes, run: Simulation) -> None:
    axes.plot(run.times, run.order, color="black", linewidth=1.2)
    axes.set(xlabel="time t", ylabel="order parameter r", ylim=(-0.02, 1.02), xlim=(0, run.times[-1]))
    axes.grid(alpha=0.3)


def _clock_hand(axes: Axes, run: Simulation) -> Any:
    _order_curve(axes, run)
    line = axes.axvline(0, color="0.5", linestyle="--")
    (dot,) = axes.plot([0], [run.order[0]], "ko")

    def update(frame: int) -> list[Any]:
        line.set_xdata([run.times[frame]] * 2)
        dot.set_data([run.times[frame]], [run.order[frame]])
        return [line, dot]

    return update


def _circle(axes: Axes, run: Simulation) -> Any:
    """Oscillators as points, a little off the circle by their frequency's rank so that they do not hide each other."""
    assert run.trajectory is not None
    phases = run.trajectory[:, _some(run.phases.size, DRAWN)]
    rank = np.argsort(np.argsort(run.frequencies[_some(run.phases.size, DRAWN)])) / max(1, phases.shape[1] - 1)
    radius = 0.92 + 0.16 * rank
    axes.set(xlim=(-1.2, 1.2), ylim=(-1.2, 1.2), aspect="equal", xlabel="cos θ", ylabel="sin θ")
    points = axes.scatter(phases[0], phases[0], c=rank, cmap="cividis", s=8)
    axes.figure.colorbar(points, ax=axes, shrink=0.8, label="natural frequency ω (rank)")
    arrow = axes.quiver(0, 0, 0, 0, angles="xy", scale_units="xy", scale=1, width=0.012)

    def update(frame: int) -> list[Any]:
        points.set_offsets(np.stack([radius * np.cos(phases[frame]), radius * np.sin(phases[frame])], axis=1))
        arrow.set_UVC(run.order[frame] * np.cos(run.angle[frame]), run.order[frame] * np.sin(run.angle[frame]))
        axes.set_title(f"t = {run.times[frame]:.1f}, r = {run.order[frame]:.2f}")
        return [points, arrow]

    return update


def _graph(axes: Axes, run: Simulation, network: Network, positions: Array | None) -> Any:
    assert run.trajectory is not None
    trajectory, places = run.trajectory, _positions(network) if positions is None else np.asarray(positions)
    if places.shape != (network.shape[0], 2):
        raise ValueError(f"positions must have shape [{network.shape[0]}, 2], got {list(places.shape)}")
    edges = sparse.coo_array(network)
    once = edges.row < edges.col
    lines = places[np.stack([edges.row[once], edges.col[once]], axis=1)]
    axes.add_collection(LineCollection(list(lines), colors="0.75", linewidths=0.5, zorder=1))
    colours = ScalarMappable(Normalize(-np.pi, np.pi), colormaps["twilight"])
    points = axes.scatter(places[:, 0], places[:, 1], s=30, edgecolors="black", linewidths=0.4, zorder=2)
    bar = axes.figure.colorbar(colours, ax=axes, shrink=0.8, label="phase θ (rad)")
    bar.set_ticks([-np.pi, 0, np.pi], labels=["−π", "0", "π"])
    axes.set_axis_off()

    def update(frame: int) -> list[Any]:
        points.set(facecolor=colours.to_rgba(trajectory[frame]))
        return [points]

    return update


def _positions(network: Network) -> Array:
    try:
        import networkx
    except ModuleNotFoundError:
        turn = 2 * np.pi * np.arange(network.shape[0]) / network.shape[0]
        return np.stack([np.cos(turn), np.sin(turn)], axis=1)
    layout = networkx.spring_layout(networkx.from_scipy_sparse_array(sparse.csr_array(network)), seed=0)
    return np.array([layout[node] for node in range(network.shape[0])])


def _some(count: int, most: int) -> Array:
    """At most so many of ``range(count)``, evenly spaced, the first and the last among them."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).astype(np.intp))


def _write(figure: Figure, path: str | Path) -> None:
    path = Path(path)
    check_suffix(path, PICTURES)
    save_figure(figure, path)
