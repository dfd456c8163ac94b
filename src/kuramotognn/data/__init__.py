"""Data sets and their splits."""

from kuramotognn.data.columns import Category, Columns, Encoder
from kuramotognn.data.convert import from_data, from_networkx, from_scipy, read_graphml
from kuramotognn.data.datasets import DATASETS, OWN_GRAPH, DatasetInfo, Protocol, dataset_name, load_dataset
from kuramotognn.data.errors import DataError
from kuramotognn.data.node_dataset import UNLABELLED, NodeDataset
from kuramotognn.data.own import GraphFiles, Understood, read_graph, read_nodes_edges
from kuramotognn.data.splits import Split, fraction, given_split, k_fold, random_per_class

__all__ = [
    "DATASETS",
    "OWN_GRAPH",
    "UNLABELLED",
    "Category",
    "Columns",
    "DataError",
    "DatasetInfo",
    "Encoder",
    "GraphFiles",
    "NodeDataset",
    "Protocol",
    "Split",
    "Understood",
    "dataset_name",
    "fraction",
    "from_data",
    "from_networkx",
    "from_scipy",
    "given_split",
    "k_fold",
    "load_dataset",
    "random_per_class",
    "read_graph",
    "read_graphml",
    "read_nodes_edges",
]
