"""Profiles of any PyG model, by the name of its class."""

import json
from pathlib import Path

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GCN

from kuramotognn import load_dataset, oversmoothing_profile
from kuramotognn.cli import main
from kuramotognn.runs.profile_model import Maker, parse_arguments, profile_model

MODEL = """
import torch
from torch_geometric.nn import GCNConv

class Stack(torch.nn.Module):
    def __init__(self, nfeat, nhid, nclass, layers, dropout=0.5):
        super().__init__()
        self.dropout = dropout
        sizes = [nfeat, *[nhid] * (layers - 1), nclass]
        self.convs = torch.nn.ModuleList(GCNConv(*pair) for pair in zip(sizes, sizes[1:]))

    def forward(self, data):
        x = data.x
        for conv in self.convs:
            x = conv(x, data.edge_index)
        return x
"""


def test_a_dotted_path_is_measured_as_the_model_itself() -> None:
    profile, trained = profile_model(Maker("torch_geometric.nn.GCN", 8, 6, seed=3), measures=["mad", "dirichlet"])
    dataset = load_dataset("cora").largest_component()
    counts = dataset.x.to_dense()
    data = Data(x=counts / counts.sum(dim=1, keepdim=True), edge_index=dataset.edge_index)  # The default normalisation.
    with torch.random.fork_rng():
        torch.manual_seed(3)
        model = GCN(1433, 8, num_layers=6, out_channels=7)
    expected = oversmoothing_profile(model, data, measures=["mad", "dirichlet"])
    assert trained is None
    assert profile.model == "GCN"
    assert profile.depth == expected.depth
    for name, values in expected.measures.items():
        assert profile.measures[name] == pytest.approx(values, rel=1e-4)


def test_a_file_with_one_class_that_takes_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "stack.py"
    path.write_text(MODEL)
    picture = tmp_path / "stack.svg"
    common = ["--layers", "5", "--channels", "6", "--arguments", "dropout=0.1", "--out", str(picture)]
    assert main(["diagnose", "--model", str(path), *common, "--epochs", "3", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["model"] == "Stack"
    assert record["width"] == [6, 6, 6, 6, 7]
    assert 0 < record["test_accuracy"] < 1
    assert picture.is_file()


def test_several_models_in_one_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    models = ["torch_geometric.nn.GCN", "torch_geometric.nn.GraphSAGE"]
    assert main(["diagnose", "--compare", "--model", *models, "--layers", "6", "--channels", "8", "--json"]) == 0
    assert list(json.loads(capsys.readouterr().out)) == ["GCN", "GraphSAGE"]
    assert (tmp_path / "comparison.svg").is_file()


def test_models_of_the_library_too() -> None:
    profile, _ = profile_model(Maker("kuramotognn.KuramotoGNN", 8, arguments={"time": 2.0}), measures=["order"])
    assert profile.unit == "time"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["torch_geometric.nn.GCM"], "nor a dotted path that can be imported"),
        (["missing.py"], "missing.py"),
        (["TWO"], "must name one model class"),
        (["STACK:Stak"], "did you mean 'Stack'"),
        (["STACK", "--arguments", "dropout"], "an argument is written NAME=VALUE"),
        (["STACK", "--arguments", "drop=1"], "Stack has no argument 'drop'"),
        (
            ["torch.nn.Bilinear"],
            "Bilinear needs an argument 'in1_features'; give it with --arguments in1_features=VALUE",
        ),
        (["STACK", "--channels", "-1"], "cannot be made"),
        (["STACK", "--epochs", "-1"], "epochs must be at least 0, got -1"),
        (["os.sep"], "is no model"),
        (["torch.nn.Identity"], "no message-passing layer"),
    ],
)
def test_mistakes_get_one_sentence_and_exit_code_two(
    arguments: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stack, two = tmp_path / "stack.py", tmp_path / "two.py"
    stack.write_text(MODEL)
    two.write_text(MODEL + MODEL.replace("class Stack", "class Other"))
    words = [word.replace("STACK", str(stack)).replace("TWO", str(two)) for word in arguments]
    assert main(["diagnose", "--model", *words]) == 2
    told = capsys.readouterr().err
    assert sentence in told
    assert told.count("\n") == 1


def test_arguments_are_literals_or_text() -> None:
    assert parse_arguments(["heads=4", "norm=batch_norm", "jk='cat'", "add=True"]) == {
        "heads": 4,
        "norm": "batch_norm",
        "jk": "cat",
        "add": True,
    }
