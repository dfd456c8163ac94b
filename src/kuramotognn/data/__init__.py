"""Data sets and their splits."""

from kuramotognn.data.datasets import DATASETS, DatasetInfo, Protocol, dataset_name, load_dataset
from kuramotognn.data.errors import DataError
from kuramotognn.data.node_dataset import UNLABELLED, NodeDataset
from kuramotognn.data.splits import Split, fraction, given_split, k_fold, random_per_class

__all__ = [
    "DATASETS",
    "UNLABELLED",
    "DataError",
    "DatasetInfo",
    "NodeDataset",
    "Protocol",
    "Split",
    "dataset_name",
    "fraction",
    "given_split",
    "k_fold",
    "load_dataset",
    "random_per_class",
]
