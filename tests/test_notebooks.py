"""The notebooks of examples/: script and notebook have the same cells, and the scripts run within their time."""

import json
import runpy
import time
from pathlib import Path

import pytest

SCRIPTS = sorted((Path(__file__).parent.parent / "examples" / "notebooks").glob("*.py"))
SECONDS = 60


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_script_and_notebook_are_a_pair(script: Path) -> None:
    jupytext = pytest.importorskip("jupytext", reason="jupytext is not installed (make docs does)")
    kept = json.loads(script.with_suffix(".ipynb").read_text(encoding="utf-8"))["cells"]
    cells = [(cell["cell_type"], "".join(cell["source"])) for cell in kept]
    assert cells == [(cell.cell_type, cell.source) for cell in jupytext.read(script).cells]
    assert all(output["output_type"] != "error" for cell in kept for output in cell.get("outputs", []))


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_notebook_runs(script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    start = time.process_time()  # A busy machine does not count.
    runpy.run_path(str(script), run_name="__main__")
    assert time.process_time() - start < SECONDS
