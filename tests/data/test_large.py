"""200,000 nodes with 2 million edges are read in 20 s and 2 GB of memory."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

MEASURE = """
import json, resource, sys, time
from kuramotognn.data import read_nodes_edges
start = time.perf_counter()
dataset = read_nodes_edges(sys.argv[1], sys.argv[2], label="topic", id="key", weight="w")
seconds = time.perf_counter() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(json.dumps([seconds, peak, dataset.num_nodes, dataset.edge_index.size(1)]))
"""


@pytest.mark.slow
def test_two_million_edges(tmp_path: Path) -> None:
    rnd, nodes, edges = np.random.default_rng(0), 200_000, 2_000_000
    ids = np.array([f"node-{number}" for number in range(nodes)])
    columns = {f"x{column}": rnd.standard_normal(nodes).round(4) for column in range(16)}
    frame = pl.DataFrame({"key": ids, **columns, "kind": ids.astype("U6"), "topic": rnd.integers(0, 10, nodes)})
    frame.with_columns(kind=pl.Series(rnd.choice(["a", "b", "c"], nodes))).write_csv(tmp_path / "nodes.csv")
    ends = rnd.choice(nodes, (2, edges))
    pairs = {"s": ids[ends[0]], "t": ids[ends[1]], "w": np.ones(edges)}
    pl.DataFrame(pairs).write_csv(tmp_path / "edges.csv")
    command = [sys.executable, "-c", MEASURE, str(tmp_path / "nodes.csv"), str(tmp_path / "edges.csv")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, peak, found_nodes, found_edges = json.loads(done.stdout)
    assert found_nodes == nodes
    assert found_edges > 1.99 * edges
    assert seconds < 20
    assert peak < 2e9, f"{peak / 1e9:.2f} GB at most"
