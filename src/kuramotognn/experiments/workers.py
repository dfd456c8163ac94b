"""Work through jobs with several processes. The folder of results is the queue: what has no file yet is to be done."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import torch

from kuramotognn.experiments.claims import Claims
from kuramotognn.experiments.jobs import Job, load, store

ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
#: A job during which this many processes were killed is given up: most likely it does not fit into memory.
MOST_DEATHS = 3
#: Seconds between two looks for work that another process may have left behind.
PATIENCE = 0.2


class SweepObserver:
    """Told of what happens while jobs are worked through; does nothing by itself."""

    def counted(self, done: int, total: int) -> None:
        """How many of the jobs have a result; told at the start and whenever it changes."""

    def started(self, job: Job) -> None:
        """A process of ours begins a job."""

    def finished(self, job: Job, record: dict[str, Any]) -> None:
        """A process of ours has ended a job, well or not."""

    def lost(self, job: Job | None) -> None:
        """A process died, with this job in its hands; another takes over."""


def run_jobs(
    jobs: Sequence[Job], folder: Path, *, processes: int = 1, observer: SweepObserver | None = None
) -> list[dict[str, Any]]:
    """Do the jobs that have no result in ``folder`` yet, one thread each, and return the records of all, in order.

    Any number of callers, on this machine or on others that share the folder, divide the work between them.

    Raises:
        OSError: results cannot be written; what is there is kept.
    """
    check_processes(processes)
    left = [job for job in jobs if not job.path(folder).exists()]
    if left:
        _Team(left, len(jobs), folder, observer or SweepObserver()).run(min(processes, len(left)))
    return [load(job.path(folder)) for job in jobs]


def check_processes(processes: int) -> None:
    """Refuse to work with nobody."""
    if processes < 1:
        raise ValueError(f"jobs must be at least 1, got {processes}")


def start_worker(target: Callable[..., None], *arguments: object) -> tuple[BaseProcess, Connection]:
    """Start ``target(*arguments, pipe)`` in a process of one thread; returns the process and our end of the pipe."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_enter, args=(target, arguments, theirs), daemon=True)
    before = {name: os.environ.get(name) for name in ONE_THREAD}
    os.environ.update(ONE_THREAD)
    try:
        process.start()
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
    theirs.close()  # The pipe must end when the process does.
    return process, ours


def stop_worker(process: BaseProcess, pipe: Connection) -> None:
    """End a process, whatever it does."""
    process.terminate()
    process.join(5)
    if process.is_alive():
        process.kill()
        process.join()
    pipe.close()


def _enter(target: Callable[..., None], arguments: tuple[Any, ...], pipe: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent, which ends us.
    torch.set_num_threads(1)
    threading.Thread(target=_follow_parent, daemon=True).start()
    target(*arguments, pipe)


def _follow_parent() -> None:
    """A killed parent cannot end its children: they watch it."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)


def _work(jobs: Sequence[Job], folder: Path, pipe: Connection) -> None:
    """Do whatever is neither done nor claimed, until everything is done."""
    left = list(range(len(jobs)))
    try:
        with Claims(folder) as claims:
            while left:
                left = [number for number in left if not _done(jobs[number], number, folder, claims, pipe)]
                if left:
                    time.sleep(PATIENCE)
    except OSError as error:
        pipe.send(("stopped", -1, str(error)))


def _done(job: Job, number: int, folder: Path, claims: Claims, pipe: Connection) -> bool:
    path = job.path(folder)
    if path.exists():
        return True
    with claims.claim(job.name) as mine:
        if mine and not path.exists():
            for half in path.parent.glob(f".{path.name}.*"):
                half.unlink(missing_ok=True)  # Left by a process that was killed while it wrote.
            pipe.send(("started", number, None))
            record = job.perform()
            store(record, path)
            pipe.send(("finished", number, record))
        return mine


@dataclass
class _Worker:
    process: BaseProcess
    pipe: Connection
    job: Job | None = None


class _Team:
    """The processes at work, seen from the one that started them."""

    def __init__(self, jobs: Sequence[Job], total: int, folder: Path, observer: SweepObserver) -> None:
        self.jobs, self.total, self.folder, self.observer = jobs, total, folder, observer
        self.left = {job.name: job for job in jobs}
        self.deaths: Counter[str] = Counter()
        self.workers: list[_Worker] = []

    def run(self, processes: int) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._tell()
        try:
            self.workers = [self._start() for _ in range(processes)]
            while self.workers:
                self._listen()
        finally:
            for worker in self.workers:
                worker.process.terminate()
            for worker in self.workers:
                stop_worker(worker.process, worker.pipe)

    def _start(self) -> _Worker:
        return _Worker(*start_worker(_work, self.jobs, self.folder))

    def _listen(self) -> None:
        ready = wait([worker.pipe for worker in self.workers], timeout=5)
        for worker in [worker for worker in self.workers if worker.pipe in ready]:
            try:
                self._hear(worker, *worker.pipe.recv())
            except (EOFError, ConnectionError):
                self._ended(worker)
        if not ready:
            self._count()  # Another runner may have finished something.

    def _hear(self, worker: _Worker, kind: str, number: int, content: Any) -> None:
        if kind == "stopped":
            raise OSError(f"results cannot be kept in {str(self.folder)!r}: {content}; {self._kept()}")
        job = self.jobs[number]
        if kind == "started":
            worker.job = job
            self.observer.started(job)
        else:
            worker.job = None
            self.observer.finished(job, content)
            self.left.pop(job.name, None)
            self._tell()

    def _ended(self, worker: _Worker) -> None:
        self.workers.remove(worker)
        worker.process.join()
        worker.pipe.close()
        if worker.process.exitcode == 0:
            return
        self.observer.lost(worker.job)
        if worker.job is None:
            self.deaths[""] += 1
            if self.deaths[""] > MOST_DEATHS * 4:
                raise OSError(
                    f"worker processes end with code {worker.process.exitcode} before they begin; use fewer --jobs"
                )
        else:
            self.deaths[worker.job.name] += 1
            if self.deaths[worker.job.name] >= MOST_DEATHS and not worker.job.path(self.folder).exists():
                reason = f"its process was killed {MOST_DEATHS} times (code {worker.process.exitcode}; out of memory?)"
                store(worker.job.failure(reason), worker.job.path(self.folder))
        self.workers.append(self._start())

    def _count(self) -> None:
        left = {name: job for name, job in self.left.items() if not job.path(self.folder).exists()}
        if len(left) < len(self.left):
            self.left = left
            self._tell()

    def _tell(self) -> None:
        self.observer.counted(self.total - len(self.left), self.total)

    def _kept(self) -> str:
        done = self.total - len(self.left)
        return f"{done} of {self.total} results are there; make room, then give the same command again"
