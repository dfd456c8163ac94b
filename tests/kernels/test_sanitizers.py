"""The kernel tests with a library that checks every address and every undefined operation."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
CHECKS = "-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -O1 -g"
TESTS = ("kernels/test_flow.py", "kernels/test_attention.py", "kernels/test_sparse.py", "kernels/test_elementary.py")
NOT_HERE = "compiled or own_threads or forked"  # torch's compiler starts compilers of its own


def run(*command: str, **environment: str) -> None:
    done = subprocess.run(command, cwd=ROOT, env=os.environ | environment, capture_output=True, text=True)
    assert done.returncode == 0, (done.stdout + done.stderr)[-5000:]


@pytest.fixture(scope="module")
def checked_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("gcc") is None:
        pytest.skip("gcc's sanitizers are not at hand")
    folder = tmp_path_factory.mktemp("sanitized")
    build = ("--build-temp", str(folder / "temporary"), "--build-lib", str(folder))
    run(sys.executable, "setup.py", "build_ext", *build, KURAMOTOGNN_CXXFLAGS=CHECKS)
    (library,) = folder.rglob("libkuramotognn.so")
    return library


def runtime() -> str:
    """Libraries to load first: the sanitizer looks for the C++ library when it starts, and Python alone has none."""
    command = ("gcc", "-print-file-name=libasan.so"), ("gcc", "-print-file-name=libstdc++.so")
    return " ".join(subprocess.run(each, capture_output=True, text=True).stdout.strip() for each in command)


@pytest.mark.slow
@pytest.mark.parametrize("tests", [*TESTS, "simulate/test_simulation.py"])
def test_no_bad_address_and_nothing_undefined(tests: str, checked_library: Path) -> None:
    options = ("-q", "-x", "-s", "-p", "no:cacheprovider", "-k", f"not ({NOT_HERE})")
    run(
        *(sys.executable, "-m", "pytest", *options, f"tests/{tests}"),
        LD_PRELOAD=runtime(),
        ASAN_OPTIONS="detect_leaks=0",
        KURAMOTOGNN_LIBRARY=str(checked_library),
        OMP_NUM_THREADS="2",
    )
