"""A sweep on a real Ray cluster of two nodes, one of which is killed in the middle: ``python -m … FOLDER SPLITS``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import ray
from ray.cluster_utils import Cluster

from kuramotognn.sweeps.cells import Cell
from kuramotognn.sweeps.ray_cluster import run_on_cluster
from kuramotognn.sweeps.workers import SweepObserver
from tests.sweeps.small_sweep import small_jobs

NODE = {"num_cpus": 1, "node_ip_address": "127.0.0.1", "object_store_memory": 80 << 20, "include_dashboard": False}


class KillANode(SweepObserver):
    """Kills the second node, with what it runs, after some results."""

    def __init__(self, cluster: Cluster, node: Any) -> None:
        self.cluster, self.node, self.finished_jobs = cluster, node, 0

    def finished(self, cell: Cell, record: dict[str, Any]) -> None:
        self.finished_jobs += 1
        if self.finished_jobs == 3:
            self.cluster.remove_node(self.node, allow_graceful=False)
            print("killed a node", flush=True)


if __name__ == "__main__":
    cluster = Cluster(initialize_head=True, head_node_args=NODE)
    second = cluster.add_node(**NODE)
    ray.init(address=cluster.address, logging_level="ERROR", log_to_driver=False)
    assert len(ray.nodes()) == 2
    print("addresses", sorted({node["NodeManagerAddress"] for node in ray.nodes()}), flush=True)
    cells = small_jobs(int(sys.argv[2]))
    records = run_on_cluster(cells, Path(sys.argv[1]), observer=KillANode(cluster, second))
    print("results", sum("result" in record for record in records), "of", len(cells), flush=True)
    ray.shutdown()
    cluster.shutdown()
