"""Commands over several processes: rank 0 prints and writes, and one sentence names the rank that failed."""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory

from kuramotognn.cli.app import COMMANDS
from kuramotognn.printable import printable

FOR_RANKS = ("train", "evaluate", "predict")
FAILURE, USER_ERROR = 1, 2
PATIENCE = 1.5
"""Seconds that other ranks leave rank 0 to report a failure that all of them have."""
COPIED = ("config.toml", "result.json", "split-*/result.json", "split-*/model.safetensors", "split-*/encoder.json")

Complain = Callable[..., int]

_copies: list[str] = []  # of run folders, to be removed where a process ends at once


def several_processes() -> bool:
    """Whether a launcher such as torchrun has started this process as one of several."""
    return "RANK" in os.environ and os.environ.get("WORLD_SIZE", "1") != "1"


def launcher_mistake() -> str | None:
    """What is wrong with the variables in which a launcher describes the group."""
    values = {name: os.environ.get(name, "") for name in ("RANK", "WORLD_SIZE", "MASTER_PORT", "MASTER_ADDR")}
    for name, value in values.items():
        if not value:
            return f"the variable {name} is not set; a launcher such as torchrun sets it for every rank"
        if name != "MASTER_ADDR" and not value.isdecimal():
            return f"the variable {name} must be a whole number, got {value!r}"
    if int(values["RANK"]) >= int(values["WORLD_SIZE"]):
        return f"RANK must be below WORLD_SIZE={values['WORLD_SIZE']}, got {values['RANK']}: ranks count from 0"
    return None


def run_as_rank(run: Callable[[Complain], int], tokens: Sequence[str]) -> int:
    """Run a command as one of several processes; ``run`` is called with what reports an error."""
    if mistake := launcher_mistake():
        print(f"kuramotognn: {printable(mistake, 2000)}", file=sys.stderr)
        return USER_ERROR
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")  # Its warnings of lost connections are stack traces.
    from kuramotognn.parallel.launch import LOST, LaunchError, RankProcess

    stderr, rank = sys.stderr, int(os.environ["RANK"])

    def say(sentence: str) -> None:
        print(f"kuramotognn: {printable(sentence, 2000)}", file=stderr, flush=True)

    def lost(sentence: str) -> None:
        if sentence:
            say(f"{sentence}; go on with train --resume, with any number of ranks")
        _end(FAILURE)

    def complain(sentence: str, code: int = USER_ERROR) -> int:
        if rank:
            time.sleep(PATIENCE)
        if process.first_to_fail():
            say(f"rank {rank}: {sentence}")
        return code

    signal.signal(signal.SIGTERM, lambda *_: _end(FAILURE))  # Launchers send it to the other ranks of a failed one.
    try:
        process = RankProcess(lost)
    except LaunchError as error:
        say(f"rank {rank}: {error}")
        return FAILURE
    try:
        with process.group(), _only_first_prints(rank):
            command = next((token for token in tokens if token in COMMANDS), "kuramotognn")
            if command not in FOR_RANKS:
                code = complain(f"{command} runs in one process; {', '.join(FOR_RANKS)} run over several")
            else:
                code = run(complain)
            if code:
                _end(code)
    except Exception as error:
        if _connection_broke(error):
            time.sleep(LOST + 5)  # Meanwhile signs of life, or the launcher, tell which rank is to blame.
        traceback.print_exc(file=stderr)
        _end(complain(f"{type(error).__name__}: {error}", FAILURE))
    return 0


def _connection_broke(error: Exception) -> bool:
    return isinstance(error, RuntimeError) and any(word in str(error) for word in ("gloo", "NCCL", "onnection"))


def _end(code: int) -> None:
    """End at once: leaving the group in order would wait for ranks that wait for this one."""
    for copy in _copies:
        rmtree(copy, ignore_errors=True)
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
