"""Worker processes that end with the process that started them. Importing this does not import torch."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from kuramotognn.environment import environment

ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def start_worker(target: Callable[..., None], *arguments: object) -> tuple[BaseProcess, Connection]:
    """Start ``target(*arguments, pipe)`` in a process of one thread; returns the process and our end of the pipe."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    # As bytes: what they name is slow to import, and the process should watch its parent before.
    work = pickle.dumps((target, arguments))
    process = context.Process(target=_enter, args=(work, theirs), daemon=True)
    with environment(ONE_THREAD), _without_ctrl_c():
        process.start()
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


def how_it_ended(process: BaseProcess) -> str:
    """How a process ended, in words."""
    code = process.exitcode
    if code is None or code >= 0:
        return f"exit code {code}"
    name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
    return f"{name}{'; out of memory?' if name == 'SIGKILL' else ''}"


class _without_ctrl_c:  # noqa: N801 -- used as a function
    """Ctrl-C reaches all processes of a terminal; those started in this block leave it to their parent."""

    def __enter__(self) -> None:
        if sys.platform != "win32":
            self.before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})

    def __exit__(self, *_: object) -> None:
        if sys.platform != "win32":
            signal.pthread_sigmask(signal.SIG_SETMASK, self.before)


def _enter(work: bytes, pipe: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_follow_parent, daemon=True).start()
    warnings.simplefilter("ignore")  # A sentence for the user goes through the pipe.
    target, arguments = pickle.loads(work)
    _use_one_thread()
    target(*arguments, pipe)


def _use_one_thread() -> None:
    import torch

    torch.set_num_threads(1)


def _follow_parent() -> None:
    """A killed parent cannot end its children: they watch it."""
    parent: Any = multiprocessing.parent_process()
    wait([parent.sentinel])
    os._exit(1)
