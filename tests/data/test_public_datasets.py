import math
import runpy
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.datasets import Planetoid
from torch_geometric.utils import homophily, is_undirected

from kuramotognn import Graph, SparseFeatures, load_dataset, random_per_class
from kuramotognn.data import NodeDataset

ROOT = Path(__file__).parent.parent.parent


def test_embedded_cora_has_the_published_statistics() -> None:
    cora = load_dataset("cora")
    assert (cora.num_nodes, cora.num_features, cora.num_classes) == (2708, 1433, 7)
    assert cora.edge_index.size(1) == 2 * 5278
    assert is_undirected(cora.edge_index)
    assert torch.bincount(cora.y).tolist() == [298, 418, 818, 426, 217, 180, 351]
    component = cora.largest_component()
    assert (component.num_nodes, component.edge_index.size(1)) == (2485, 2 * 5069)
    assert component.x.shape == (2485, 1433)
    assert len(component.node_ids) == 2485


def test_embedded_cora_is_sparse_and_binary() -> None:
    x = load_dataset("cora").x
    assert isinstance(x, SparseFeatures)
    assert x.values.unique().tolist() == [1.0]
    assert x.values.numel() == 49216


def test_subset_keeps_each_node_with_its_data() -> None:
    cora = load_dataset("cora")
    nodes = torch.tensor([100, 5, 2000])
    part = cora.subset(nodes)
    assert part.node_ids == tuple(cora.node_ids[node] for node in nodes)
    assert part.y.equal(cora.y[nodes])
    assert part.x.to_dense().equal(cora.x.to_dense()[nodes])  # type: ignore[union-attr]


@pytest.mark.parametrize("name", ["Cora", "CORA", " cora "])
def test_case_and_blanks_of_a_name_do_not_matter(name: str) -> None:
    assert load_dataset(name).name == "cora"


def test_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(
        ValueError, match="unknown dataset 'coora'; did you mean 'cora'\\?; known: amazon-ratings, citeseer,"
    ):
        load_dataset("coora")


def test_the_embedded_file_is_what_the_tool_builds(shared_datasets: Path) -> None:
    build = runpy.run_path(str(ROOT / "tools" / "build_cora.py"))["build"]
    with np.load(ROOT / "src" / "kuramotognn" / "data" / "cora.npz", allow_pickle=False) as embedded:
        built = build(shared_datasets / "linqs_cora")
        assert set(embedded) == set(built)
        for name in built:
            np.testing.assert_array_equal(embedded[name], built[name])


def test_same_graph_as_planetoids_cora(shared_datasets: Path, tmp_path: Path) -> None:
    """Planetoid has the papers and words in another order: compare what does not depend on it."""
    shutil.copytree(shared_datasets / "Cora", tmp_path / "Cora")
    theirs, ours = Planetoid(str(tmp_path), "Cora")[0], load_dataset("cora")

    def neighbourhoods(x: torch.Tensor, edge_index: torch.Tensor) -> list[tuple[int, int, int]]:
        source, target = edge_index
        degree = torch.bincount(target, minlength=len(x))
        second = torch.zeros_like(degree).index_add(0, target, degree[source])
        return sorted(zip((x > 0).sum(1).tolist(), degree.tolist(), second.tolist(), strict=True))

    dense = ours.x.to_dense()
    assert neighbourhoods(dense, ours.edge_index) == neighbourhoods(theirs.x, theirs.edge_index)
    assert sorted(torch.bincount(ours.y).tolist()) == sorted(torch.bincount(theirs.y).tolist())


def test_homophily_of_a_small_graph() -> None:
    """Edges 0–1 (same class) and 1–2 (different classes) count; a self-loop and edges of unlabelled nodes do not."""
    edge_index = torch.tensor([[0, 1, 1, 2, 0, 2, 3], [1, 0, 2, 1, 0, 3, 2]])
    y = torch.tensor([0, 0, 1, -1])
    data = NodeDataset("by-hand", torch.eye(4), edge_index, y, ("a", "b"), list("wxyz"))
    assert data.edge_homophily() == 0.5
    assert math.isnan(replace(data, y=torch.full((4,), -1)).edge_homophily())


def test_homophily_equals_that_of_pyg() -> None:
    cora = load_dataset("cora")
    assert cora.edge_homophily() == pytest.approx(homophily(cora.edge_index, cora.y, method="edge"))


def test_the_repr_of_a_data_set_is_two_short_lines() -> None:
    cora = load_dataset("cora")
    assert repr(cora).splitlines() == [
        "NodeDataset 'cora': 2708 nodes in 7 classes",
        f"  edge_index [2, {cora.edge_index.size(1)}], x [2708, 1433] sparse",
    ]
    split = random_per_class(cora.y, 0)
    weighted = replace(cora, edge_weight=torch.ones(cora.edge_index.size(1)), given_splits=(split, split))
    assert "7 classes, 2 given splits\n" in repr(weighted)
    assert ", weighted, x [" in repr(weighted)
    assert repr(cora.x) == "SparseFeatures([2708, 1433], 49216 entries)"
    assert repr(Graph.from_edge_index(torch.tensor([[0, 1], [1, 2]]), 3)) == "Graph(3 nodes, 2 directed edges)"
