"""The same jobs on Ray: one machine or many. Only this process writes results, so that nodes need no common disk."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch

from kuramotognn.experiments.claims import Claims
from kuramotognn.experiments.jobs import Job, load, store
from kuramotognn.experiments.workers import MOST_DEATHS, ONE_THREAD, SweepObserver

#: Jobs handed to Ray ahead of time, for each processor.
AHEAD = 2


def run_on_cluster(
    jobs: Sequence[Job], folder: Path, *, address: str = "auto", observer: SweepObserver | None = None
) -> list[dict[str, Any]]:
    """Do the jobs that have no result in ``folder`` yet on a Ray cluster, one processor each.

    Jobs of a node that is lost are given to others. Data sets must be where each node looks for them.

    Args:
        jobs: what to do.
        folder: where results are kept, on this machine.
        address: ``auto`` for the cluster this machine belongs to (one is started when there is none), or an address.
        observer: told of progress.
    """
    try:
        import ray
    except ImportError as error:
        raise ValueError("--cluster needs Ray: pip install 'kuramotognn[cluster]'") from error
    observer, total = observer or SweepObserver(), len(jobs)
    started = not ray.is_initialized()
    if started:
        _connect(address)
    try:
        perform = ray.remote(num_cpus=1, max_retries=MOST_DEATHS)(_perform)
        with Claims(folder) as claims, ExitStack() as held:
            left = [job for job in jobs if not job.path(folder).exists()]
            done = total - len(left)
            observer.counted(done, total)
            # Jobs that another runner has claimed are its own to do.
            queue = [
                job for job in left if held.enter_context(claims.claim(job.name)) and not job.path(folder).exists()
            ]
            queue.reverse()
            running: dict[Any, Job] = {}
            while queue or running:
                processors = ray.cluster_resources().get("CPU", 1)
                width = AHEAD * max(1, int(processors))
                while queue and len(running) < width:
                    job = queue.pop()
                    running[perform.remote(job)] = job
                    observer.started(job)
                ready, _ = ray.wait(list(running), timeout=5)
                for reference in ready:
                    job = running.pop(reference)
                    record = _result(job, reference)
                    store(record, job.path(folder))
                    done += 1
                    observer.finished(job, record)
                    observer.counted(done, total)
    finally:
        if started:
            ray.shutdown()
    return [load(job.path(folder)) for job in jobs if job.path(folder).exists()]


def _connect(address: str) -> None:
    import ray

    settings: dict[str, Any] = {"logging_level": "ERROR", "log_to_driver": False}
    try:
        ray.init(address=address, **settings)
    except ConnectionError:
        if address != "auto":
            raise ValueError(f"there is no Ray cluster at {address!r}; start one with `ray start --head`") from None
        ray.init(_node_ip_address="127.0.0.1", include_dashboard=False, **settings)


def _perform(job: Job) -> dict[str, Any]:
    os.environ.update(ONE_THREAD)
    torch.set_num_threads(1)
    return job.perform()


def _result(job: Job, reference: Any) -> dict[str, Any]:
    import ray

    try:
        record: dict[str, Any] = ray.get(reference)
    except ray.exceptions.OutOfMemoryError:
        return job.failure("out of memory on the node that ran it")
    except ray.exceptions.WorkerCrashedError:
        return job.failure(f"its process was killed {MOST_DEATHS + 1} times")
    return record
