"""The flow of models as an animated GIF: the graph coloured by phase, and the phases on the circle."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from PIL import Image

from kuramotognn.data import NodeDataset
from kuramotognn.explore.graph_layout import Layout
from kuramotognn.explore.palette import NO_CLASS, class_colours, phase_colours
from kuramotognn.explore.recording import ACCURACY, Recording

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

FRAMES = 60
COLOURS = 128
DPI = 100
MILLISECONDS = 90
LAST = 2500
"""Milliseconds for which the end stands still."""
DOT: dict[str, Any] = {"s": 5, "linewidths": 0}


def to_gif(dataset: NodeDataset, layout: Layout, recordings: Sequence[Recording]) -> bytes:
    """Each model's first channel over time, models side by side at the same share of their depths."""
    figure = Figure(figsize=(4.7 * len(recordings), 3.0), dpi=DPI)
    films = [_Film(figure, k, len(recordings), dataset, layout, each) for k, each in enumerate(recordings)]
    pictures = []
    for share in np.linspace(0, 1, FRAMES):
        for film in films:
            film.show(share**2)  # Most happens early.
        buffer = BytesIO()
        figure.savefig(buffer, format="png")
        pictures.append(Image.open(buffer).convert("RGB"))
    # One palette for all frames, without dithering: what does not change costs nothing.
    palette = pictures[-1].quantize(COLOURS, method=Image.Quantize.MAXCOVERAGE)
    frames = [picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture in pictures]
    buffer = BytesIO()
    durations = [MILLISECONDS] * (FRAMES - 1) + [LAST]
    frames[0].save(buffer, "GIF", save_all=True, append_images=frames[1:], duration=durations, loop=0)
    return buffer.getvalue()


class _Film:
    """The pictures of one model."""

    def __init__(
        self, figure: Figure, place: int, count: int, dataset: NodeDataset, layout: Layout, recording: Recording
    ) -> None:
        self.recording = recording
        graph, circle = (
            figure.add_axes((place / count + left / count, 0.01, width / count, 0.83))
            for left, width in ((0.01, 0.54), (0.55, 0.44))
        )
        middle = (place + 0.5) / count
        figure.text(middle, 0.93, recording.title, ha="center", weight="bold")
        self.words = figure.text(middle, 0.86, "", ha="center")
        positions = layout.positions.numpy() * (1, -1)
        segments = positions[layout.edges.t().numpy()]
        graph.add_collection(LineCollection(list(segments), colors="#00000018", linewidths=0.4))
        colours = ListedColormap([*phase_colours(), phase_colours()[0]])
        self.nodes = graph.scatter(
            positions[:, 0], positions[:, 1], c=np.zeros(len(positions)), cmap=colours, vmin=0, vmax=1, **DOT
        )
        labels = dataset.y.cpu()[layout.nodes].numpy()
        jitter = np.arange(len(labels)) * 0.618034 % 1 - 0.5
        self.radius = 0.36 + 0.56 * (labels + 1.5 + 0.75 * jitter) / (dataset.num_classes + 1)
        inks = np.array([*class_colours(dataset.num_classes), NO_CLASS])[labels]
        _draw_rim(circle)
        self.dots = circle.scatter(self.radius, self.radius, c=inks, **DOT)
        (self.arrow,) = circle.plot([], [], color="black", linewidth=2)
        graph.autoscale_view()
        for axes in (graph, circle):
            axes.set_axis_off()
        circle.set(xlim=(-1.02, 1.02), ylim=(-1.02, 1.02), aspect="equal")

    def show(self, share: float) -> None:
        """The state at this share of the depth."""
        film = self.recording
        t = share * film.times[-1]
        phase = self._at(t, film.phases[0].numpy())
        order = self._at(t, film.order[0].numpy())
        accuracy = float(np.interp(t, film.times, film.measures[ACCURACY]))
        self.nodes.set_array(phase / (2 * np.pi) % 1)
        self.dots.set_offsets(np.stack([np.cos(phase), np.sin(phase)], axis=1) * self.radius[:, None])
        self.arrow.set_data([0, 0.33 * order.real], [0, 0.33 * order.imag])
        self.words.set_text(f"t = {t:.1f}, order parameter {abs(order):.2f}, test accuracy {100 * accuracy:.0f} %")

    def _at(self, t: float, values: NDArray[Any]) -> Any:
        times = self.recording.times
        k = min(int(np.searchsorted(times, t, side="right")) - 1, len(times) - 2)
        share = (t - times[k]) / (times[k + 1] - times[k])
        return values[k] + share * (values[k + 1] - values[k])


def _draw_rim(axes: Axes) -> None:
    """The colour of each phase around the circle."""
    colours = phase_colours()
    edges = np.linspace(0, 2 * np.pi, len(colours) + 1) - np.pi / len(colours)
    for colour, start, end in zip(colours, edges[:-1], edges[1:], strict=True):
        angle = np.linspace(start, end, 3)
        axes.plot(0.98 * np.cos(angle), 0.98 * np.sin(angle), color=colour, linewidth=4, solid_capstyle="butt")
