"""Processes of a group on this machine that tests send functions to."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

WAIT = 100
"""Seconds after which a test that hangs fails."""


class FailedError(Exception):
    """A function raised in some rank."""


class Processes:
    """Ranks that run functions of test modules, which must be importable by name."""

    def __init__(self, size: int, folder: Path) -> None:
        self.size, context = size, get_context("spawn")
        ends = [context.Pipe() for _ in range(size)]
        self.pipes = [mine for mine, _ in ends]
        self.processes = [
            context.Process(target=_serve, args=(rank, size, str(folder / "store"), theirs), daemon=True)
            for rank, (_, theirs) in enumerate(ends)
        ]
        for process in self.processes:
            process.start()

    def __call__(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """The results of ``function(*arguments)`` in every rank."""
        for pipe in self.pipes:
            pipe.send((function, arguments))
        found = [self._receive(rank) for rank in range(self.size)]
        problems = [f"rank {rank}: {value}" for rank, (fine, value) in enumerate(found) if not fine]
        if problems:
            raise FailedError("\n".join(problems))
        return [value for _, value in found]

    def _receive(self, rank: int) -> Any:
        if not self.pipes[rank].poll(WAIT):
            raise FailedError(f"rank {rank} hangs")
        return self.pipes[rank].recv()

    def end(self) -> None:
        for process in self.processes:
            process.kill()


def _serve(rank: int, size: int, store: str, pipe: Connection) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=size)
    while True:
        function, arguments = pipe.recv()
        try:
            pipe.send((True, function(*arguments)))
        except Exception:
            pipe.send((False, traceback.format_exc()))
