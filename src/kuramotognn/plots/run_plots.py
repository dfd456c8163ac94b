"""Pictures of runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from kuramotognn.plots.style import line_style, save_figure
from kuramotognn.printable import plot_text
from kuramotognn.train_result import EpochMetrics


def draw_curves(history: Sequence[EpochMetrics], best_epoch: int, path: Path) -> None:
    """Loss and accuracy against the epoch, the chosen epoch marked, as SVG."""
    figure = Figure(figsize=(8, 3.2), layout="constrained")
    epochs = [metrics.epoch for metrics in history]
    for axes, quantity in zip(figure.subplots(1, 2), ("loss", "accuracy"), strict=True):
        for place, part in enumerate(("validation", "train")):
            values = [getattr(metrics, f"{part}_{quantity}") for metrics in history]
            axes.plot(epochs, values, label=part, linewidth=1.4, **line_style(place) | {"marker": None})
        axes.axvline(best_epoch, color="grey", linewidth=0.8, linestyle=":", label=f"chosen: epoch {best_epoch}")
        axes.set(xlabel="epoch", ylabel="cross-entropy" if quantity == "loss" else "accuracy (share of nodes)")
        axes.grid(alpha=0.3)
        axes.legend(frameon=False)
    save_figure(figure, path)


def draw_confusion(confusion: Sequence[Sequence[int]], class_names: Sequence[str], path: Path) -> None:
    """Counts of test nodes by class (rows) and prediction (columns), shaded by the share of the row, as SVG."""
    size = min(3.0 + 0.45 * len(class_names), 14.0)
    figure = Figure(figsize=(size, size), layout="constrained")
    axes = figure.subplots()
    axes.imshow([[count / max(sum(row), 1) for count in row] for row in confusion], cmap="Blues", vmin=0, vmax=1)
    for i, row in enumerate(confusion):
        for j, count in enumerate(row):
            dark = count > 0.6 * max(sum(row), 1)
            axes.text(j, i, str(count), ha="center", va="center", fontsize=8, color="white" if dark else "black")
    names = [plot_text(name) for name in class_names]
    axes.set_xticks(range(len(names)), names, rotation=90)
    axes.set_yticks(range(len(names)), names)
    axes.set(xlabel="prediction", ylabel="class")
    save_figure(figure, path)
