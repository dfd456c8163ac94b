"""Run cells in several processes. The folder of results is the queue: a cell without a file is still to be run."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from kuramotognn.atomic_write import remove_parts
from kuramotognn.sweeps.cells import Cell, give_up, load, store
from kuramotognn.sweeps.work_claims import Claims
from kuramotognn.sweeps.worker_process import how_it_ended, start_worker, stop_worker

#: A cell during which this many processes ended is given up for now.
MOST_DEATHS = 3
STALE = ".stale"
#: Seconds between two looks for work that another process may have left behind.
PATIENCE = 0.2


class SweepObserver:
    """Called while cells are run; does nothing by itself."""

    def counted(self, done: int, total: int) -> None:
        """How many of the cells have a result; called at the start and whenever it changes."""

    def started(self, cell: Cell) -> None:
        """A process of ours begins a cell."""

    def finished(self, cell: Cell, record: dict[str, Any]) -> None:
        """A process of ours has ended a cell, well or not."""

    def given_up(self, cell: Cell, reason: str) -> None:
        """A cell was not run, for a reason that lies in the machine; the same command tries it again."""

    def lost(self, cell: Cell | None) -> None:
        """A process died while it ran this cell; another one runs it again."""


def run_cells(
    cells: Sequence[Cell], folder: Path, *, processes: int = 1, observer: SweepObserver | None = None
) -> list[dict[str, Any]]:
    """Run the cells without a current result in ``folder``, one thread each, and return the records of all, in order.

    Any number of callers, on this machine or on others that share the folder, divide the work between them. A cell that
    fails because of the machine (its process was killed, memory, a missing file) has no record; the observer is told.

    Raises:
        OSError: results cannot be written; what is there is kept.
    """
    check_processes(processes)
    for cell in cells:
        _set_stale_aside(cell, folder)
    left = [cell for cell in cells if not cell.path(folder).exists()]
    for cell in left:
        cell.problem_path(folder).unlink(missing_ok=True)
    if left:
        _Workers(left, len(cells), folder, observer or SweepObserver()).run(min(processes, len(left)))
    return [load(cell.path(folder)) for cell in cells if cell.path(folder).exists()]


def _set_stale_aside(cell: Cell, folder: Path) -> None:
    """Rename a result of code that computed other numbers: it is kept, but the cell is run again."""
    path = cell.path(folder)
    if path.exists() and not cell.case.is_current(load(path)):
        path.replace(path.with_suffix(STALE))


def check_processes(processes: int) -> None:
    """Refuse a number of processes below one."""
    if processes < 1:
        raise ValueError(f"jobs must be at least 1, got {processes}")


def _work(cells: Sequence[Cell], folder: Path, pipe: Connection) -> None:
    """Do whatever is neither done nor claimed, until everything is done."""
    left = list(range(len(cells)))
    try:
        with Claims(folder) as claims:
            while left:
                left = [number for number in left if not _done(cells[number], number, folder, claims, pipe)]
                if left:
                    time.sleep(PATIENCE)
    except OSError as error:
        pipe.send(("stopped", -1, str(error)))
    except Exception as error:  # One sentence from the parent says more than a traceback from here.
        pipe.send(("stopped", -1, f"{type(error).__name__}: {error}"))


def _done(cell: Cell, number: int, folder: Path, claims: Claims, pipe: Connection) -> bool:
    path, problem = cell.path(folder), cell.problem_path(folder)
    if path.exists() or problem.exists():
        return True
    with claims.claim(cell.name) as mine:
        if mine and not path.exists() and not problem.exists():
            remove_parts(path.parent, path.name)
            pipe.send(("started", number, None))
            try:
                record = cell.perform()
            except OSError as error:
                give_up(cell, folder, str(error))
                pipe.send(("given up", number, str(error)))
                return True
            store(record, path)
            pipe.send(("finished", number, record))
        return mine


@dataclass
class _Worker:
    process: BaseProcess
    pipe: Connection
    cell: Cell | None = None


class _Workers:
    """The processes at work, seen from the one that started them."""

    def __init__(self, cells: Sequence[Cell], total: int, folder: Path, observer: SweepObserver) -> None:
        self.cells, self.total, self.folder, self.observer = cells, total, folder, observer
        self.left = {cell.name: cell for cell in cells}
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
        return _Worker(*start_worker(_work, self.cells, self.folder))

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
        cell = self.cells[number]
        if kind == "started":
            worker.cell = cell
            self.observer.started(cell)
            return
        worker.cell = None
        if kind == "finished":
            self.observer.finished(cell, content)
            self.left.pop(cell.name, None)
            self._tell()
        else:
            self.observer.given_up(cell, content)

    def _ended(self, worker: _Worker) -> None:
        self.workers.remove(worker)
        worker.process.join()
        worker.pipe.close()
        if worker.process.exitcode == 0:
            return
        self.observer.lost(worker.cell)
        if worker.cell is None:
            self.deaths[""] += 1
            if self.deaths[""] > MOST_DEATHS * 4:
                how = how_it_ended(worker.process)
                raise OSError(f"worker processes end before they begin ({how}); use fewer --jobs")
        else:
            self.deaths[worker.cell.name] += 1
            if self.deaths[worker.cell.name] >= MOST_DEATHS and not worker.cell.path(self.folder).exists():
                reason = f"its process ended {MOST_DEATHS} times ({how_it_ended(worker.process)})"
                give_up(worker.cell, self.folder, reason)
                self.observer.given_up(worker.cell, reason)
        self.workers.append(self._start())

    def _count(self) -> None:
        left = {name: cell for name, cell in self.left.items() if not cell.path(self.folder).exists()}
        if len(left) < len(self.left):
            self.left = left
            self._tell()

    def _tell(self) -> None:
        self.observer.counted(self.total - len(self.left), self.total)

    def _kept(self) -> str:
        done = self.total - len(self.left)
        return f"{done} of {self.total} results are there; make room, then go on"
