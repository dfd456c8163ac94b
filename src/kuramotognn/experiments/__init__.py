"""Configurations, runs and their records."""

from kuramotognn.experiments.config import Config, ConfigError, resolve
from kuramotognn.experiments.run import (
    RunObserver,
    RunResult,
    SplitResult,
    evaluate_run,
    predict_run,
    resume_run,
    start_run,
)

__all__ = [
    "Config",
    "ConfigError",
    "RunObserver",
    "RunResult",
    "SplitResult",
    "evaluate_run",
    "predict_run",
    "resolve",
    "resume_run",
    "start_run",
]
