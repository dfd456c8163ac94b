"""Data sets and their splits."""

from kuramotognn.data.datasets import DATASETS, DatasetInfo, NodeDataset, dataset_name, load_dataset
from kuramotognn.data.splits import Split, random_per_class

__all__ = ["DATASETS", "DatasetInfo", "NodeDataset", "Split", "dataset_name", "load_dataset", "random_per_class"]
