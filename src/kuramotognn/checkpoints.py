"""Checkpoints of a training that can be killed at any moment: safetensors with a digest, the last two kept."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from kuramotognn.files import write_atomically


class CheckpointError(ValueError):
    """A checkpoint or model file that cannot be used; the message says which and why."""


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """Everything a training needs to go on: named tensors, and facts that JSON can hold."""

    tensors: dict[str, Tensor]
    facts: dict[str, Any]


class CheckpointFolder:
    """Checkpoints of one training, ``checkpoint-000040.safetensors`` and the one before it.

    Attributes:
        rejected: sentences about the files that :meth:`load_latest` could not use.
    """

    KEEP = 2

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rejected: list[str] = []

    def save(self, epoch: int, checkpoint: Checkpoint) -> None:
        """Write the checkpoint taken after ``epoch`` and drop all but the last two."""
        write_tensors(self.folder / f"checkpoint-{epoch:06d}.safetensors", checkpoint.tensors, checkpoint.facts)
        for old in self._paths()[: -self.KEEP]:
            old.unlink()

    def load_latest(self) -> Checkpoint | None:
        """The newest checkpoint that is whole, or nothing; unusable files are set aside and told in ``rejected``."""
        for path in reversed(self._paths()):
            try:
                return Checkpoint(*read_tensors(path))
            except CheckpointError as error:
                path.rename(path.with_suffix(".corrupted"))
                self.rejected.append(f"{error}; it was set aside and the one before it is used")
        return None

    def clear(self) -> None:
        """Remove the checkpoints of a finished training."""
        for path in self._paths():
            path.unlink()

    def _paths(self) -> list[Path]:
        return sorted(self.folder.glob("checkpoint-*.safetensors"))


def write_tensors(path: Path, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
    """Write tensors and facts with a digest of both, atomically."""
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    text = json.dumps(facts)
    metadata = {"facts": text, "digest": _digest(plain, text)}
    write_atomically(path, safetensors.torch.save(plain, metadata))


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what :func:`write_tensors` wrote; nothing is ever unpickled.

    Raises:
        CheckpointError: the file is missing, truncated, or not what was written.
    """
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
        facts = metadata["facts"]
        if metadata["digest"] != _digest(tensors, facts):
            raise CheckpointError(f"{path.name} is corrupted: its content does not match its digest")
        return tensors, json.loads(facts)
    except FileNotFoundError as error:
        raise CheckpointError(f"{path.name} is missing from {path.parent}") from error
    except (safetensors.SafetensorError, KeyError) as error:
        raise CheckpointError(f"{path.name} is corrupted: {error}") from error


def _digest(tensors: Mapping[str, Tensor], facts: str) -> str:
    digest = hashlib.sha256(facts.encode())
    for name in sorted(tensors):
        digest.update(f"{name}{list(tensors[name].shape)}{tensors[name].dtype}".encode())
        digest.update(tensors[name].reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
