"""Loading the compiled library, and whose threads it uses."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from kuramotognn.kernels import CoupledSystem, library
from tests.kernels.comparing import assert_same_bits, leaves, normal, random_graph, with_gradients

ROOT = Path(__file__).parent.parent.parent
FORKS = "ignore:This process:DeprecationWarning"  # Python 3.12 and later warn of any fork in a process with threads.


def child(code: str, timeout: float | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-W", FORKS, "-c", code]
    return subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, timeout=timeout)


PRINT_ISA = "from kuramotognn.kernels.library import kernels; print(kernels().isa)"


@pytest.mark.parametrize("isa", library.instruction_sets())
def test_the_environment_chooses_the_instruction_set(isa: str) -> None:
    assert child(PRINT_ISA, KURAMOTOGNN_ISA=isa).stdout.strip() == isa


def test_an_unknown_instruction_set_names_those_at_hand() -> None:
    answer = child(PRINT_ISA, KURAMOTOGNN_ISA="avx1024").stderr
    assert f"KURAMOTOGNN_ISA must be one of {', '.join(library.instruction_sets())}, got 'avx1024'" in answer


def test_every_instruction_set_has_every_kernel() -> None:
    assert library.LIBRARY is not None
    names = re.findall(r"^KG_KERNEL\((\w+),", (ROOT / "csrc" / "kernels.cpp").read_text(), re.MULTILINE)
    assert len(names) > 8
    for isa in library.instruction_sets():
        assert all(hasattr(library.LIBRARY, f"kg_{name}_{isa}") for name in names)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda path: None, "are missing"),
        (lambda path: path.write_bytes(b"not a library"), "invalid ELF header|file too short|not a"),
        (lambda path: path.write_bytes(library.FILE.read_bytes()[:-1]), "lacks its end"),
        (lambda path: path.write_bytes(library.FILE.read_bytes()[:5000]), "lacks its end"),
    ],
    ids=["missing", "damaged", "without its last byte", "truncated"],
)
def test_a_library_that_cannot_be_loaded_is_a_reason(
    make: Callable[[Path], None], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "lib.so"
    make(path)
    monkeypatch.setattr(library, "FILE", path)
    with pytest.raises(OSError, match=sentence):
        library._load()


def test_an_install_without_a_compiler_succeeds(tmp_path: Path) -> None:
    folders = ("--build-temp", str(tmp_path / "temporary"), "--build-lib", str(tmp_path))
    without = {"CC": "no-compiler", "CXX": "no-compiler"}
    command = [sys.executable, "setup.py", "build_ext", *folders]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | without, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not list(tmp_path.rglob("*.so"))


def test_a_library_of_another_version_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "SparseJob", library._job("int64: only"))
    with pytest.raises(OSError, match="are of another version; install the package again"):
        library._load()


def test_without_its_library_the_package_computes_with_torch(tmp_path: Path) -> None:
    """As installed where there is no compiler."""
    package = Path(library.__file__).parent.parent
    shutil.copytree(package, tmp_path / "kuramotognn", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    code = """
import warnings, torch
from kuramotognn import Graph, KuramotoGNN, backend_in_use
graph = Graph.from_edge_index(torch.tensor([[0, 1], [1, 0]]), 2)
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    for _ in range(2):
        KuramotoGNN(3, 4, 2, time=1.0)(torch.ones(2, 3), graph).sum().backward()
print(backend_in_use(), sum("computing with torch" in str(each.message) for each in told))
"""
    answer = child(code, PYTHONPATH=str(tmp_path))
    assert answer.stdout.split() == ["torch", "1"], answer.stderr


@pytest.fixture
def own_threads() -> Iterator[None]:
    """Threads of the library instead of torch's."""
    assert library.LIBRARY is not None
    library.LIBRARY.kg_use_launcher(None)
    yield
    openmp = library._torchs_openmp()
    library.LIBRARY.kg_use_launcher(openmp and openmp.GOMP_parallel)


def test_torchs_threads_are_used() -> None:
    assert library._torchs_openmp() is not None


FORK = """
import os, types, torch
from kuramotognn import Graph, KuramotoGNN
from kuramotognn.kernels import library
torch.set_num_threads(2)
model, graph = KuramotoGNN(64, 32, 3, time=2.0), Graph.from_edge_index(torch.randint(0, 2000, (2, 8000)), 2000)
def train():
    torch.randn(1 << 20).sin()  # on two threads
    model(torch.ones(2000, 64), graph).sum().backward()
"""


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")


@needs_fork
def test_a_forked_child_can_train_after_its_parent_did() -> None:
    code = "train()\nif not os.fork():\n    train()\n    os._exit(7)\ntrain()\n"
    code += "print(os.waitstatus_to_exitcode(os.wait()[1]), torch.get_num_threads())"
    assert child(FORK + code, timeout=60).stdout.split() == ["7", "2"]


@needs_fork
def test_a_forked_child_says_that_it_may_hang_where_openmp_cannot_end_its_threads() -> None:
    code = "library._prepare_forks(library.LIBRARY, types.SimpleNamespace())\nif os.fork(): os.wait()"
    assert "torch may hang in a forked process" in child(FORK + code, timeout=60).stderr


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_own_threads_give_the_same_bits(
    threads: int, set_threads: Callable[[int], None], request: pytest.FixtureRequest
) -> None:
    graph = random_graph(300, 1500, torch.float64)
    a, x, source = leaves(graph.weight, normal(0, 300, 20), normal(1, 300, 20))

    def run(_: int = 0) -> list[torch.Tensor]:
        end = CoupledSystem(graph.pattern, a, source, 1.5).flow(x, [0.1], 5, 1 << 30)
        return with_gradients(end, [a, x, source], normal(2, 300, 20))

    set_threads(1)
    expected = run()
    request.getfixturevalue("own_threads")
    set_threads(threads)
    with ThreadPoolExecutor(3) as pool:
        for result in pool.map(run, range(3)):
            assert_same_bits(result, expected)
