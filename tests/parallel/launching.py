"""Start the command line as ranks: by torchrun, or by hand as other launchers do, also in network namespaces."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

started: list[subprocess.Popen[str]] = []
COMMAND = [sys.executable, "-m", "kuramotognn"]


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "KURAMOTOGNN_OFFLINE": "1", **more}


def one_process(arguments: Sequence[str], folder: Path) -> None:
    done = subprocess.run([*COMMAND, *arguments], cwd=folder, env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def torchrun(size: int, arguments: Sequence[str], folder: Path) -> subprocess.Popen[str]:
    launcher = ["torch.distributed.run", "--nproc-per-node", str(size), "--master-port", str(free_port())]
    return start([sys.executable, "-m", *launcher, *COMMAND[1:], *arguments], folder, environment())


def rank_by_hand(
    rank: int, size: int, arguments: Sequence[str], folder: Path, *, master: str, namespace: str | None = None
) -> subprocess.Popen[str]:
    """A rank as Slurm or a script starts it; rank 0 is the master at ``host:port``."""
    host, port = master.split(":")
    variables = {"RANK": str(rank), "WORLD_SIZE": str(size), "MASTER_ADDR": host, "MASTER_PORT": port}
    inside = ["ip", "netns", "exec", namespace] if namespace else []
    if namespace:
        variables["GLOO_SOCKET_IFNAME"] = namespace
    return start([*inside, *COMMAND, *arguments], folder, environment(**variables))


def start(command: Sequence[str], folder: Path, variables: dict[str, str]) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        command, cwd=folder, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    started.append(process)
    return process


def end_all() -> None:
    """End what a test has left."""
    while started:
        process = started.pop()
        process.terminate()  # torchrun passes it on.
        try:
            process.communicate(timeout=5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def wait_for(path: Path, pattern: str, seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not list(path.glob(pattern)):
        assert time.monotonic() < end, f"no {pattern} in {path}"
        time.sleep(0.05)
