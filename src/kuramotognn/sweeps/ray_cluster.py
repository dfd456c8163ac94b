"""The same cells on Ray: one machine or many. Only this process writes results, so that nodes need no common disk."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch

from kuramotognn.sweeps.cells import Cell, give_up, load, store
from kuramotognn.sweeps.work_claims import Claims
from kuramotognn.sweeps.worker_process import ONE_THREAD
from kuramotognn.sweeps.workers import MOST_DEATHS, SweepObserver

#: Cells handed to Ray ahead of time, for each processor.
AHEAD = 2


def run_on_cluster(
    cells: Sequence[Cell], folder: Path, *, address: str = "auto", observer: SweepObserver | None = None
) -> list[dict[str, Any]]:
    """Do the cells that have no result in ``folder`` yet on a Ray cluster, one processor each.

    Cells of a node that is lost are given to others. Data sets must be where each node looks for them.

    Args:
        cells: what to do.
        folder: where results are kept, on this machine.
        address: ``auto`` for the cluster this machine belongs to (one is started when there is none), or an address.
        observer: called with the progress.
    """
    try:
        import ray
    except ImportError as error:
        raise ValueError("--cluster needs Ray: pip install 'kuramotognn[cluster]'") from error
    observer, total = observer or SweepObserver(), len(cells)
    started = not ray.is_initialized()
    if started:
        _connect(address)
    try:
        perform = ray.remote(num_cpus=1, max_retries=MOST_DEATHS)(_perform)
        with Claims(folder) as claims, ExitStack() as held:
            left = [cell for cell in cells if not cell.path(folder).exists()]
            done = total - len(left)
            observer.counted(done, total)
            # Cells that another runner has claimed are its own to do.
            queue = [
                cell for cell in left if held.enter_context(claims.claim(cell.name)) and not cell.path(folder).exists()
            ]
            queue.reverse()
            running: dict[Any, Cell] = {}
            while queue or running:
                processors = ray.cluster_resources().get("CPU", 1)
                width = AHEAD * max(1, int(processors))
                while queue and len(running) < width:
                    cell = queue.pop()
                    running[perform.remote(cell)] = cell
                    observer.started(cell)
                ready, _ = ray.wait(list(running), timeout=5)
                for reference in ready:
                    cell = running.pop(reference)
                    try:
                        record = _result(reference)
                    except OSError as error:
                        give_up(cell, folder, str(error))
                        observer.given_up(cell, str(error))
                        continue
                    store(record, cell.path(folder))
                    done += 1
                    observer.finished(cell, record)
                    observer.counted(done, total)
    finally:
        if started:
            ray.shutdown()
    return [load(cell.path(folder)) for cell in cells if cell.path(folder).exists()]


def _connect(address: str) -> None:
    import ray

    settings: dict[str, Any] = {"logging_level": "ERROR", "log_to_driver": False}
    try:
        ray.init(address=address, **settings)
    except ConnectionError:
        if address != "auto":
            raise ValueError(f"there is no Ray cluster at {address!r}; start one with `ray start --head`") from None
        ray.init(_node_ip_address="127.0.0.1", include_dashboard=False, **settings)


def _perform(cell: Cell) -> dict[str, Any]:
    os.environ.update(ONE_THREAD)
    torch.set_num_threads(1)
    return cell.perform()


def _result(reference: Any) -> dict[str, Any]:
    import ray

    try:
        record: dict[str, Any] = ray.get(reference)
    except ray.exceptions.OutOfMemoryError as error:
        raise OSError("out of memory on the node that ran it") from error
    except ray.exceptions.WorkerCrashedError as error:
        raise OSError(f"its process was killed {MOST_DEATHS + 1} times") from error
    except ray.exceptions.RayTaskError as error:
        raise OSError(str(error.cause)) from error
    return record
