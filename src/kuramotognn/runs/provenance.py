"""Where a number comes from: versions, commit, machine."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from kuramotognn._version import __version__
from kuramotognn.config.tree import Config
from kuramotognn.kernels import backend_in_use, use_backend

PACKAGES = ("torch", "torch_geometric", "torchdiffeq", "numpy", "scipy")


def provenance() -> dict[str, Any]:
    """Facts that a result must carry to be reproduced."""
    return {
        "kuramotognn": __version__,
        "commit": commit(),
        "python": platform.python_version(),
        "packages": {name: found for name in PACKAGES if (found := _version(name))},
        "machine": {
            "system": platform.system(),
            "architecture": platform.machine(),
            "processors": os.cpu_count(),
            "threads": torch.get_num_threads(),
        },
    }


def backend(config: Config) -> str:
    """The kernels that a configuration uses: ``fused`` or ``torch``."""
    with use_backend(config.backend):
        return backend_in_use(config.device)


def commit() -> str | None:
    """The commit of this library's own checkout, ``+changes`` behind it when its code differs; None when installed."""
    package = Path(__file__).resolve().parent.parent
    checkout = package.parent.parent
    # A library installed inside somebody's repository must not report that repository's commit.
    if package != checkout / "src" / "kuramotognn" or not (checkout / ".git").exists():
        return None
    head = _git(checkout, "rev-parse", "HEAD")
    if head is None:
        return None
    return head + ("+changes" if _git(checkout, "status", "--porcelain", "--", "src") else "")


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
