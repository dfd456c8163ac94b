import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kuramotognn.sweeps.workers import run_cells
from tests.sweeps.small_sweep import small_jobs
from tests.sweeps.test_workers import ROOT, outcomes

#: Ray takes the machine's outer address for its own unless it is told that there are no other machines.
LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0"}


@pytest.mark.slow
def test_all_results_arrive_though_one_of_two_nodes_is_killed(tmp_path: Path) -> None:
    if importlib.util.find_spec("ray") is None:
        pytest.skip("Ray is not installed (pip install 'kuramotognn[cluster]')")
    environment = os.environ | {
        "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}",
        "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
        **LOOPBACK,
    }
    done = subprocess.run(
        [sys.executable, "-m", "tests.sweeps.ray_sweep", str(tmp_path / "ray"), "8"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "killed a node" in done.stdout
    assert "addresses ['127.0.0.1']" in done.stdout
    assert "results 16 of 16" in done.stdout
    run_cells(small_jobs(8), tmp_path / "local")
    assert outcomes(tmp_path / "ray") == outcomes(tmp_path / "local")
