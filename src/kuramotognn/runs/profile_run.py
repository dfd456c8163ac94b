"""Over-smoothing profiles of the models of a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

from kuramotognn.diagnostics import Profile, oversmoothing_profile
from kuramotognn.diagnostics.profile import PAIRS
from kuramotognn.kernels import use_backend
from kuramotognn.runs.stored_run import (
    finished_split,
    load_config,
    load_split,
    split_folder,
    stored_model,
    with_encoder,
)
from kuramotognn.runs.task import Task


def profile_run(
    folder: Path, split: int | None = None, *, measures: Sequence[str] | None = None, pairs: int | None = PAIRS
) -> tuple[Profile, Path]:
    """The profile of one split's model (the first finished one unless named), and the folder of that split."""
    config = load_config(folder)
    number = finished_split(folder, config, split)
    task = with_encoder(Task.from_config(config), folder, number)
    model = stored_model(task, folder, load_split(folder, number))
    data = SimpleNamespace(x=task.x, edge_index=task.graph, y=task.y)
    with use_backend(config.backend):
        profile = oversmoothing_profile(model, data, measures=measures, pairs=pairs, name=config.model.name)
    return profile, split_folder(folder, number)
