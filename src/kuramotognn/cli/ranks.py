"""Commands over several processes: rank 0 prints and writes, and one sentence names the rank that failed."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory

from kuramotognn.printable import printable

FOR_RANKS = ("train", "evaluate", "predict")
FAILURE = 1
PATIENCE = 1.5
"""Seconds that other ranks leave rank 0 to report a failure that all of them have."""
COPIED = ("config.toml", "result.json", "split-*/result.json", "split-*/model.safetensors", "split-*/encoder.json")

Complain = Callable[..., int]

_copies: list[str] = []  # of run folders, to be removed where a process ends at once


def several_processes() -> bool:
    """Whether a launcher such as torchrun has started this process as one of several."""
    return "RANK" in os.environ and int(os.environ.get("WORLD_SIZE", "1")) > 1


def run_as_rank(run: Callable[[Complain], int], tokens: Sequence[str]) -> int:
    """Run a command as one of several processes; ``run`` is called with what reports an error."""
    from kuramotognn.parallel.launch import LOST, LaunchError, RankProcess

    stderr, rank = sys.stderr, int(os.environ["RANK"])

    def say(sentence: str) -> None:
        print(f"kuramotognn: {printable(sentence, 2000)}", file=stderr, flush=True)

    def lost(sentence: str) -> None:
        if sentence:
            say(f"{sentence}; go on with train --resume, with any number of ranks")
        for copy in _copies:
            rmtree(copy, ignore_errors=True)
        os._exit(FAILURE)

    def complain(sentence: str, code: int = 2) -> int:
        if rank:
            time.sleep(PATIENCE)
        if process.first_to_fail():
            say(f"rank {rank}: {sentence}")
        return code

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(FAILURE))  # Launchers end the other ranks of a failed one by it.
    try:
        process = RankProcess(lost)
    except LaunchError as error:
        say(f"rank {rank}: {error}")
        return FAILURE
    try:
        with process.group(), _only_first_prints(rank):
            command = next((token for token in tokens if not token.startswith("-")), "")
            if command not in FOR_RANKS:
                complain(f"{command or 'kuramotognn'} runs in one process; of several ranks are {', '.join(FOR_RANKS)}")
                _end(2)
            if code := run(complain):
                _end(code)
        return 0
    except RuntimeError as error:
        if not _connection_broke(error):
            complain(f"{type(error).__name__}: {str(error).splitlines()[0]}")
            raise
        time.sleep(LOST + 5)  # Meanwhile signs of life, or the launcher, tell which rank is to blame.
        return complain("the connection to another rank broke; go on with train --resume", FAILURE)


def _connection_broke(error: RuntimeError) -> bool:
    import torch.distributed as dist

    return isinstance(error, dist.DistError) or any(word in str(error) for word in ("gloo", "NCCL", "onnection"))


def _end(code: int) -> None:
    """End at once: other ranks may wait in an exchange, which leaving the group in order would wait for."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


@contextmanager
def _only_first_prints(rank: int) -> Iterator[None]:
    if rank == 0:
        yield
        return
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        yield


def is_first() -> bool:
    """Whether this process writes: it is rank 0, or the only one."""
    return not several_processes() or os.environ["RANK"] == "0"


@contextmanager
def run_folder(folder: Path) -> Iterator[Path]:
    """The folder in which this process works on a run: that of rank 0, and for other ranks a copy that is dropped.

    So every rank does the same, and no rank but the first needs to see the folder.
    """
    if not several_processes():
        yield folder
        return
    from kuramotognn.parallel.launch import current_ranks

    ranks = current_ranks()
    assert ranks is not None
    files: Mapping[str, bytes] = ranks.from_first(_files(folder) if ranks.rank == 0 else None)
    if ranks.rank == 0:
        yield folder
        return
    with TemporaryDirectory(prefix="kuramotognn-rank-") as made:
        _copies.append(made)
        for name, content in files.items():
            path = Path(made) / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)
        yield Path(made)


def _files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for pattern in COPIED
        for path in folder.glob(pattern)
        if path.is_file()
    }
