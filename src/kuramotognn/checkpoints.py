"""Training checkpoints: safetensors files with a digest, written atomically; the last two are kept."""

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

from kuramotognn.atomic_write import write_atomically
from kuramotognn.documents import check_regular, parse_json

METADATA = "kuramotognn"


class CheckpointError(ValueError):
    """A checkpoint or model file cannot be used; the message names the file and the reason."""


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """The state needed to resume training: named tensors, and facts that can be written as JSON."""

    tensors: dict[str, Tensor]
    facts: dict[str, Any]


class CheckpointFolder:
    """The checkpoints of one training run, named ``checkpoint-000040.safetensors`` after their epoch.

    Attributes:
        rejected: one sentence for each file that :meth:`load_latest` could not use.
    """

    KEEP = 2

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rejected: list[str] = []

    def save(self, epoch: int, checkpoint: Checkpoint) -> None:
        """Write the checkpoint of ``epoch`` and delete all but the last two; the folder is made if need be."""
        self.folder.mkdir(parents=True, exist_ok=True)
        write_tensors(self.folder / f"checkpoint-{epoch:06d}.safetensors", checkpoint.tensors, checkpoint.facts)
        for old in self._paths()[: -self.KEEP]:
            old.unlink()

    def load_latest(self) -> Checkpoint | None:
        """The newest valid checkpoint, or None. Invalid files are renamed and listed in ``rejected``."""
        for path in reversed(self._paths()):
            try:
                return Checkpoint(*read_tensors(path))
            except CheckpointError as error:
                path.rename(path.with_suffix(".corrupted"))
                self.rejected.append(f"{error}; it was renamed to {path.stem}.corrupted and the one before it is used")
        return None

    def clear(self) -> None:
        """Delete all checkpoints."""
        for path in self._paths():
            path.unlink()

    def _paths(self) -> list[Path]:
        return sorted(self.folder.glob("checkpoint-*.safetensors"))


def write_tensors(path: Path, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
    """Write tensors, facts and a digest of both atomically."""
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    text = json.dumps(facts)
    # One entry: safetensors writes several in no fixed order, and the file should have the same bytes each time.
    metadata = {METADATA: json.dumps({"digest": digest(plain, text), "facts": text})}
    write_atomically(path, safetensors.torch.save(plain, metadata))


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read a file of :func:`write_tensors`. Nothing is unpickled.

    Raises:
        CheckpointError: the file is missing, truncated or changed.
    """
    try:
        check_regular(path)
        with safetensors.safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
        stored = parse_json(metadata[METADATA])
        facts = str(stored["facts"])
        if stored["digest"] != digest(tensors, facts):
            raise CheckpointError(f"{path.name} is corrupted: its content does not match its digest")
        return tensors, parse_json(facts)
    except FileNotFoundError as error:
        raise CheckpointError(f"{path.name} is missing from {path.parent}") from error
    except CheckpointError:
        raise
    except (safetensors.SafetensorError, KeyError, TypeError, ValueError, RuntimeError) as error:
        raise CheckpointError(f"{path.name} is corrupted: {error}") from error


def digest(tensors: Mapping[str, Tensor], facts: str = "") -> str:
    """A hash of names, shapes, types and numbers."""
    found = hashlib.sha256(facts.encode())
    for name in sorted(tensors):
        found.update(f"{name}{list(tensors[name].shape)}{tensors[name].dtype}".encode())
        found.update(tensors[name].cpu().reshape(-1).view(torch.uint8).numpy().data)
    return found.hexdigest()
