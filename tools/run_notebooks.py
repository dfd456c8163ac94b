"""Run the notebooks of examples/notebooks and keep their outputs: NAME.py becomes NAME.ipynb.

python tools/run_notebooks.py [NAME ...]
"""

import os
import sys
import tempfile
import time
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parent.parent / "examples" / "notebooks"
SECONDS = 300
"""A notebook takes less than 60 s on an idle core; a busy machine gets more."""


def main() -> None:
    os.environ["OMP_NUM_THREADS"] = "1"
    os.environ["PYTHONWARNINGS"] = "ignore"  # Of the libraries that are imported; they name folders of this machine.
    for name in sys.argv[1:] or sorted(path.stem for path in FOLDER.glob("*.py")):
        start = time.perf_counter()
        notebook = run(FOLDER / f"{name}.py")
        (FOLDER / f"{name}.ipynb").write_text(nbformat.writes(notebook) + "\n", encoding="utf-8")
        print(f"{name:20s} {time.perf_counter() - start:5.1f} s")


def run(script: Path) -> nbformat.NotebookNode:
    notebook = jupytext.read(script)
    notebook.metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    with tempfile.TemporaryDirectory() as folder:  # A notebook may write files.
        resources = {"metadata": {"path": folder}}
        NotebookClient(notebook, timeout=SECONDS, resources=resources).execute()
    for number, cell in enumerate(notebook.cells):
        cell.metadata = {}  # Times of the day.
        cell.id = str(number)  # Random otherwise.
    return notebook


if __name__ == "__main__":
    main()
