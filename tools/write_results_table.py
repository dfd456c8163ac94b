"""Put the tables of results/runs between two marks in README.md."""

from __future__ import annotations

import sys
from pathlib import Path

from kuramotognn.experiments.catalogue import experiments
from kuramotognn.experiments.report import readme_block
from kuramotognn.files import write_atomically

ROOT = Path(__file__).parent.parent
BEGIN, END = "<!-- results: written by `make results-table` -->", "<!-- end of results -->"


def with_results(readme: str) -> str:
    head, _, rest = readme.partition(BEGIN)
    _, mark, tail = rest.partition(END)
    if not mark:
        raise ValueError(f"README.md has no lines {BEGIN!r} and {END!r}")
    tables = [experiment for experiment in experiments().values() if not experiment.axes]
    block = readme_block([e for e in tables if e.measure == "accuracy"], ROOT / "results" / "runs")
    return f"{head}{BEGIN}\n\n{block}\n{END}{tail}"


if __name__ == "__main__":
    path = ROOT / "README.md"
    write_atomically(path, with_results(path.read_text(encoding="utf-8")))
    sys.exit(0)
