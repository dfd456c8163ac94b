"""Tables with very many columns."""

import time
from pathlib import Path

import numpy as np
import pytest

from kuramotognn.data import ColumnEncoder, read_nodes_edges


def write(folder: Path, rows: int, columns: int) -> np.ndarray:
    values = np.random.default_rng(0).integers(0, 1000, (rows, columns)) / 8
    lines = [f"{node},{node % 3}," + ",".join(map(str, values[node].tolist())) for node in range(rows)]
    (folder / "n.csv").write_text("\n".join(["id,label," + ",".join(f"c{k}" for k in range(columns)), *lines]))
    (folder / "e.csv").write_text("a,b\n0,1\n")
    return values


@pytest.mark.parametrize("columns", [
    pytest.param(20_000, id="20,000"),
    pytest.param(100_000, id="100,000", marks=pytest.mark.slow),
])  # fmt: skip
def test_cpu_time_of_a_wide_table(columns: int, tmp_path: Path) -> None:
    values = write(tmp_path, 60, columns)
    start = time.process_time()
    dataset = read_nodes_edges(tmp_path / "n.csv", tmp_path / "e.csv")
    assert dataset.columns is not None
    x = ColumnEncoder.fit(dataset.columns, dataset.y.nonzero().flatten(), standardise=True).apply(dataset.columns)
    assert time.process_time() - start < 10 * columns / 100_000
    assert x.shape == (60, columns)
    assert np.array_equal(np.asarray(dataset.x), values)
