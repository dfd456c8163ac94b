"""Pictures of runs."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

from matplotlib.figure import Figure

from kuramotognn.files import write_atomically
from kuramotognn.training import EpochMetrics


def draw_curves(history: Sequence[EpochMetrics], best_epoch: int, path: Path) -> None:
    """Loss and accuracy against the epoch, the chosen epoch marked, as SVG."""
    figure = Figure(figsize=(8, 3.2), layout="constrained")
    epochs = [metrics.epoch for metrics in history]
    for axes, quantity in zip(figure.subplots(1, 2), ("loss", "accuracy"), strict=True):
        for part, style in (("train", "--"), ("validation", "-")):
            values = [getattr(metrics, f"{part}_{quantity}") for metrics in history]
            axes.plot(epochs, values, style, label=part, linewidth=1.4)
        axes.axvline(best_epoch, color="grey", linewidth=0.8, linestyle=":", label=f"chosen: epoch {best_epoch}")
        axes.set(xlabel="epoch", ylabel="cross-entropy" if quantity == "loss" else "accuracy (share of nodes)")
        axes.grid(alpha=0.3)
        axes.legend(frameon=False)
    buffer = BytesIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    write_atomically(path, buffer.getvalue())
