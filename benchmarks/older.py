"""The kernels at hand against those of an older commit, and what a fresh process waits for its first gradient."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks import workloads
from benchmarks.timing import summary

ROOT = Path(__file__).parent.parent
COMMIT = "3ea1a84"
"""The last commit whose kernels were compiled by numba at first use; `make bench` installs the numba it needs."""
FIRST_GRADIENT = """
import time
start = time.perf_counter()
import torch
torch_there = time.perf_counter()
import kuramotognn
from kuramotognn import KuramotoGNN
model = KuramotoGNN(50, 16, 3, time=2.0)
edges = torch.stack([torch.arange(2000), torch.arange(2000).roll(1)])
model(torch.ones(2000, 50), edges).sum().backward()
print(torch_there - start, time.perf_counter() - torch_there)
"""


def compare(turns: int = 7) -> dict:
    """Flows, an epoch and simulations in two processes that take turns."""
    lines = [f"flow {name}" for name in workloads.available() if name != "ogbn-arxiv"]
    lines += ["epoch", "simulate all", "simulate graph"]
    out: dict[str, dict] = {}
    with _older_checkout() as older, ExitStack() as stack:
        workers = {name: stack.enter_context(_worker(source)) for name, source in (("numba", older), ("C++", ROOT))}
        for line in lines:
            seconds: dict[str, list[float]] = {name: [] for name in workers}
            for turn in range(turns + 1):  # The first one also builds the workload and warms up.
                # In turn: whoever is second meets the threads of the first, which still wait for more work.
                for name, worker in list(workers.items())[:: 1 if turn % 2 else -1]:
                    assert worker.stdin is not None
                    assert worker.stdout is not None
                    worker.stdin.write(line + "\n")
                    worker.stdin.flush()
                    answer = float(worker.stdout.readline())
                    if turn:
                        seconds[name].append(answer)
            out[line] = {name: summary(values, seconds["numba"]) for name, values in seconds.items()}
            print(f"{line:20s} C++ / numba {out[line]['C++']['ratio']:.2f}", flush=True)
    return out


def first_gradient(repeats: int = 5) -> dict:
    """Seconds of `import torch`, and from then to the first gradient, each in a fresh process."""
    pairs = [[float(word) for word in _run(FIRST_GRADIENT, ROOT).split()] for _ in range(repeats)]
    torch_import, rest = zip(*pairs, strict=True)
    return {"import torch": median(torch_import), "first gradient after it": median(rest), "repeats": repeats}


def _run(code: str, source: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=_environment(source)
    )
    return done.stdout


def _environment(source: Path) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": f"{source / 'src'}{os.pathsep}{ROOT}", "PYTHONWARNINGS": "ignore"}


@contextmanager
def _worker(source: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "benchmarks.worker"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=_environment(source)
    ) as worker:
        yield worker
        assert worker.stdin is not None
        worker.stdin.close()


@contextmanager
def _older_checkout() -> Iterator[Path]:
    with TemporaryDirectory() as folder:
        archive = subprocess.run(["git", "archive", COMMIT, "src"], cwd=ROOT, check=True, capture_output=True).stdout
        subprocess.run(["tar", "-x", "-C", folder], input=archive, check=True)
        yield Path(folder)
