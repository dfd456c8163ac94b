from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
import torch
from torch_geometric.data import Data
from torch_geometric.utils import to_scipy_sparse_matrix

from kuramotognn import SparseFeatures
from kuramotognn.data import DataError, from_data, from_networkx, from_scipy, read_graphml


def data() -> Data:
    torch.manual_seed(0)
    edges = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
    masks = {f"{part}_mask": torch.eye(4, 3).bool().roll(k, 0) for k, part in enumerate(("train", "val", "test"))}
    return Data(x=torch.randn(4, 5), edge_index=edges, y=torch.tensor([0, 1, -1, 1]), **masks)


def test_pyg_data_with_masks() -> None:
    source = data()
    dataset = from_data(source, class_names=["no", "yes"])
    assert torch.as_tensor(dataset.x).equal(source.x)
    assert dataset.edge_index.equal(source.edge_index)
    assert dataset.y.tolist() == [0, 1, -1, 1]
    assert dataset.class_names == ("no", "yes")
    assert [split.train.tolist() for split in dataset.given_splits] == [[0], [1], [2]]
    assert dataset.given_splits[2].test.tolist() == [0]
    with pytest.raises(DataError, match="the Data object has no y"):
        from_data(Data(x=source.x, edge_index=source.edge_index))
    with pytest.raises(ValueError, match="is out of range"):
        from_data(Data(x=source.x[:2], edge_index=source.edge_index, y=source.y[:2]))


def test_scipy_matrices() -> None:
    source = data()
    adjacency = to_scipy_sparse_matrix(source.edge_index, torch.arange(6.0), 4)
    dataset = from_scipy(adjacency, scipy.sparse.csr_array(np.eye(4)), [0, 1, 0, 1], weighted=True)
    assert isinstance(dataset.x, SparseFeatures)
    assert dataset.edge_weight is not None
    found = torch.sparse_coo_tensor(dataset.edge_index, dataset.edge_weight, (4, 4), check_invariants=True).to_dense()
    assert found.numpy() == pytest.approx(adjacency.toarray())
    assert from_scipy(adjacency, np.eye(4), [0, 1, 0, 1]).edge_weight is None
    with pytest.raises(DataError, match="must be square"):
        from_scipy(np.ones((2, 3)), np.eye(2), [0, 1])
    with pytest.raises(DataError, match="whole numbers"):
        from_scipy(adjacency, np.eye(4), [0.5, 1, 0, 1])


def karate() -> nx.Graph:
    graph = nx.karate_club_graph()
    for node, degree in graph.degree():
        graph.nodes[node]["degree"] = degree
    return graph


def test_networkx_and_graphml(tmp_path: Path) -> None:
    graph = karate()
    dataset = from_networkx(graph, label="club", weight="weight")
    assert dataset.class_names == ("Mr. Hi", "Officer")
    assert torch.as_tensor(dataset.x).flatten().tolist() == [graph.degree(node) for node in graph]
    index = {node: place for place, node in enumerate(dataset.node_ids)}
    assert dataset.edge_weight is not None
    found = dict(zip(map(tuple, dataset.edge_index.t().tolist()), dataset.edge_weight.tolist(), strict=True))
    for source, target, weight in graph.edges(data="weight"):
        assert found[index[str(source)], index[str(target)]] == weight == found[index[str(target)], index[str(source)]]
    nx.write_graphml(graph, tmp_path / "karate.graphml")
    again = read_graphml(tmp_path / "karate.graphml", label="club", weight="weight")
    assert again.edge_index.equal(dataset.edge_index)
    assert torch.as_tensor(again.x).equal(torch.as_tensor(dataset.x))
    (tmp_path / "bomb.graphml").write_text('<!DOCTYPE x [<!ENTITY a "b">]><graphml/>')
    with pytest.raises(DataError, match="defines entities"):
        read_graphml(tmp_path / "bomb.graphml", label="club")


def test_directed_graphs_stay_directed() -> None:
    graph = nx.DiGraph([("a", "b"), ("b", "c")])
    nx.set_node_attributes(graph, {"a": 1.0, "b": 2.0, "c": 3.0}, "size")
    nx.set_node_attributes(graph, {"a": "u", "b": "v"}, "kind")
    dataset = from_networkx(graph, label="kind")
    assert dataset.edge_index.t().tolist() == [[0, 1], [1, 2]]
    assert dataset.y.tolist() == [0, 1, -1]
    with pytest.raises(DataError, match="has no nodes"):
        from_networkx(nx.Graph(), label="kind")
