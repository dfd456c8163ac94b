import torch

from kuramotognn.config.resolve import resolve
from kuramotognn.data import NodeDataset
from kuramotognn.runs.task import Task


def test_reversed_edges_carry_messages_and_weights_from_target_to_source() -> None:
    edges, weight = torch.tensor([[0, 0, 1], [1, 2, 2]]), torch.tensor([1.0, 2.0, 3.0])
    ids = ("a", "b", "c")
    dataset = NodeDataset("chain", torch.eye(3), edges, torch.tensor([0, 1, 0]), ("x", "y"), ids, weight)
    for reverse in (False, True):
        graph = Task.of(resolve({"data.reverse_edges": reverse}, {"recommended": False}).config, dataset).graph
        received = torch.zeros(3, 3).index_put((graph.pattern.row, graph.pattern.col), graph.weight)
        stored = torch.tensor([[0.0, 1.0, 2.0], [0.0, 0.0, 3.0], [0.0, 0.0, 0.0]])
        assert torch.equal(received, stored if reverse else stored.T)
