"""A process that torchrun or another launcher started as one of several: it joins the group and watches the others."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.distributed.rendezvous import rendezvous

from kuramotognn.parallel.exchange import Ranks

LOST = 30.0
"""Seconds without a sign of life after which a rank counts as lost."""
BEAT = 1.0
"""Seconds between two signs of life."""
LONGEST = timedelta(hours=12)
"""Of one exchange: signs of life, not this, tell a slow rank from a lost one."""
FAILED = "failed"

_current: ContextVar[Ranks | None] = ContextVar("kuramotognn_ranks", default=None)


def current_ranks() -> Ranks | None:
    """The ranks that models of this command are spread over; None in a single process."""
    return _current.get()


class LaunchError(RuntimeError):
    """The group cannot be joined; the message says which rank cannot reach what."""


class RankProcess:
    """This process as a rank of the group that the environment describes.

    Attributes:
        rank: its number.
        store: the key-value store of the group, at the master.
    """

    def __init__(self, lost: Callable[[str], None]) -> None:
        """Join the group; ``lost`` is called, in another thread, with a sentence when the group has broken."""
        self.rank, self.size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        self.master = f"{os.environ.get('MASTER_ADDR')}:{os.environ.get('MASTER_PORT')}"
        self.lost, self.over = lost, threading.Event()
        try:
            self._wait_for_master()
            joined = rendezvous("env://", self.rank, self.size, timeout=timedelta(seconds=LOST))
            self.store = next(joined)[0]
        except (RuntimeError, ValueError, OSError, KeyError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise LaunchError(
                f"cannot meet all {self.size} ranks at the master {self.master} within {LOST:g} s ({reason}); check "
                "that every rank is started and that MASTER_ADDR and MASTER_PORT can be reached"
            ) from error
        self.heard = dict.fromkeys(self._watched(), time.monotonic())
        self.reached = time.monotonic()
        for task in (self._beat, self._watch):
            threading.Thread(target=task, daemon=True).start()

    @contextmanager
    def group(self) -> Iterator[Ranks]:
        """The group, while the block runs; it ends when all ranks have ended it."""
        backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() and dist.is_nccl_available() else "gloo"
        dist.init_process_group(backend, store=self.store, rank=self.rank, world_size=self.size, timeout=LONGEST)
        ranks = Ranks()
        token = _current.set(ranks)
        try:
            yield ranks
        finally:
            _current.reset(token)
        dist.barrier()
        self.over.set()
        dist.destroy_process_group()

    def _wait_for_master(self) -> None:
        """Wait until the master listens, unless this process is to: torch would try longer than it is told to."""
        if self.rank == 0 and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True":
            return
        address, end = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])), time.monotonic() + LOST
        while True:
            try:
                socket.create_connection(address, timeout=BEAT).close()
                return
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(BEAT / 10)

    def first_to_fail(self) -> bool:
        """Whether no other rank has reported a failure yet; they learn of this one."""
        self.over.set()
        try:
            return bool(self.store.add(FAILED, 1) == 1)
        except RuntimeError:  # The store is gone.
            return True

    def _watched(self) -> list[int]:
        """Rank 0 watches all others, and they watch rank 0."""
        return list(range(1, self.size)) if self.rank == 0 else [0]

    def _beat(self) -> None:
        """Tell the others that this rank lives, and look who else does; the store may block where a network is cut."""
        counts = dict.fromkeys(self.heard, 0)
        while not self.over.wait(BEAT):
            try:
                self.store.add(f"beat/{self.rank}", 1)
                failed = self.store.add(FAILED, 0) > 0
                now = {rank: self.store.add(f"beat/{rank}", 0) for rank in counts}
            except RuntimeError:
                return  # The watch notices.
            self.reached = time.monotonic()
            self.heard |= {rank: self.reached for rank, count in now.items() if count != counts[rank]}
            counts = now
            if failed and not self.over.is_set():
                self.lost("")

    def _watch(self) -> None:
        while not self.over.wait(BEAT):
            now = time.monotonic()
            silent = [str(rank) for rank, heard in self.heard.items() if now - heard > LOST]
            away = now - self.reached
            if away > LOST:
                self.lost(f"rank {self.rank} has lost the master {self.master}: rank 0 was ended or the network is cut")
            elif silent and away < 5 * BEAT:  # Where the master is away, too, nothing is known of the others.
                who = f"rank {', '.join(silent)}"
                self.lost(f"{who} has given no sign of life for {LOST:g} s: it was ended or the network is cut")
