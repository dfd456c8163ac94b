"""Choose the integration time for a graph without recommended settings, on its validation nodes."""

from __future__ import annotations

from dataclasses import replace

from kuramotognn.config.resolve import ConfigError, resolve
from kuramotognn.runs.task import Task


def choose_time(task: Task) -> tuple[Task, dict[float, float]]:
    """Train on the first split with each of ``try_times``, and keep the one that validates best.

    Of equal results the one with the lower validation loss is kept, as for epochs: on a small graph equals are common.
    Test nodes take no part. The task's configuration then holds the time as if it had been given.

    Returns:
        The task, and the validation result of every time.
    """
    config = task.config
    if "time" not in type(config.model).model_fields:
        raise ConfigError(f"try_times needs a model with an integration time; {config.model.name} has none")
    base = config.model_dump(mode="json", exclude_none=True) | {"recommended": False}
    tried = {
        time: replace(task, config=resolve({"model.time": time}, base).config) for time in sorted(set(config.try_times))
    }
    number = config.first_split
    found = {}
    for time, candidate in tried.items():
        trained = candidate.for_split(number)
        found[time] = trained.fit(trained.model(), trained.split(number)).best
    best = max(found, key=lambda time: (found[time].score, -found[time].validation_loss))
    return tried[best], {time: metrics.score for time, metrics in found.items()}
