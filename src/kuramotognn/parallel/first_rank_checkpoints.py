"""Checkpoints of a training over several processes: rank 0 reads and writes them, so that they are those of one."""

from __future__ import annotations

from pathlib import Path

from kuramotognn.checkpoints import Checkpoint, CheckpointFolder
from kuramotognn.parallel.exchange import Ranks


class FirstRankCheckpoints(CheckpointFolder):
    """The checkpoints that rank 0 was given, if any, as all ranks see them."""

    def __init__(self, own: CheckpointFolder | None, ranks: Ranks) -> None:
        super().__init__(own.folder if own else Path())
        self.ranks = ranks
        self.own = own if ranks.rank == 0 else None
        if own is not None:
            self.rejected = own.rejected

    def save(self, epoch: int, checkpoint: Checkpoint) -> None:
        """Written by rank 0."""
        if self.own is not None:
            self.own.save(epoch, checkpoint)

    def load_latest(self) -> Checkpoint | None:
        """Read by rank 0 and sent to all."""
        found: Checkpoint | None = self.ranks.from_first(self.own.load_latest() if self.own else None)
        return found

    def clear(self) -> None:
        """Deleted by rank 0."""
        if self.own is not None:
            self.own.clear()
