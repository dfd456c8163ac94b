"""Models that are not part of the package: from a file, or from an entry point."""

import json
from pathlib import Path

import pytest
import torch

from kuramotognn import Graph, KuramotoGNN
from kuramotognn.cli import main
from kuramotognn.config.model_settings import settings_class
from kuramotognn.kernels import kuramoto_per_edge
from kuramotognn.models.lookup import find_model
from tests.conftest import Refused
from tests.models.test_kuramotognn import example

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "own_equation.py"
MODEL = '''
import torch
from torch_geometric.nn import GCNConv


class Tiny(torch.nn.Module):
    """One graph convolution.

    Args:
        hidden_channels: width of the hidden states.
        slope: slope of the rectifier for negative numbers.
    """

    def __init__(self, in_channels: int, hidden_channels: int, out_channels: int, slope: float = 0.1) -> None:
        super().__init__()
        self.conv, self.out = GCNConv(in_channels, hidden_channels), torch.nn.Linear(hidden_channels, out_channels)
        self.slope = slope

    def forward(self, x, edge_index, edge_weight=None):
        return self.out(torch.nn.functional.leaky_relu(self.conv(x, edge_index, edge_weight), self.slope))


class Untyped(torch.nn.Module):
    def __init__(self, in_channels: int, out_channels: int, depth=3) -> None:
        super().__init__()


class Scaled(Tiny):
    def __init__(self, in_channels: int, out_channels: int, width: int = 4) -> None:
        super().__init__(in_channels, width, out_channels)
        self.scale = float(torch.ones(width).numpy().sum())


class Other(Tiny):
    def __init__(self, in_channels: int, out_channels: int, name: str = "other") -> None:
        super().__init__(in_channels, 4, out_channels)


class NoWidths(Tiny):
    def __init__(self, channels: int = 3) -> None:
        super().__init__(channels, channels, channels)


class Fails(Tiny):
    def __init__(self, in_channels: int, out_channels: int, depth: int = 3) -> None:
        {}[depth]


class NoEdges(Tiny):
    def forward(self, x):
        return self.out(x)


class OneClass(Tiny):
    def __init__(self, in_channels: int, out_channels: int, depth: int = 3) -> None:
        super().__init__(in_channels, 4, 1)


NUMBER = 3
'''
QUICK = ["--splits", "1", "--training.epochs", "3", "--json"]
NARROW = ["--model.hidden-channels", "8"]


@pytest.fixture
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "mine.py"
    path.write_text(MODEL)
    return path


def test_the_example_is_short_and_is_its_equation() -> None:
    assert len(EXAMPLE.read_text().splitlines()) < 30
    settings = settings_class(f"{EXAMPLE}:SecondHarmonic")
    field = settings.model_fields["second"]
    assert (field.default, field.description) == (0.5, "Strength h of the second harmonic.")
    equation = find_model(f"{EXAMPLE}:SecondHarmonic").equation
    assert equation is not None
    data = example()
    model = KuramotoGNN(5, 8, 3, adjacency="random-walk", coupling=1.5, equation=equation(0.3)).double()
    graph = Graph.from_edge_index(data.edge_index, 12, dtype=torch.float64)
    x = torch.randn(12, 8, dtype=torch.float64)
    a = model.field.adjacency(x, graph)
    first, second = (kuramoto_per_edge(graph.pattern, a, k * x) for k in (1, 2))
    torch.testing.assert_close(model.field(x, graph)(0.0, x), x + 1.5 * (first + 0.3 * second))


@pytest.mark.parametrize("model", ["example", "file"])
def test_train_evaluate_and_predict(
    model: str, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen, setting = (EXAMPLE, "second") if model == "example" else (file, "slope")
    monkeypatch.chdir(chosen.parent)
    name = f"./{chosen.name}:{'SecondHarmonic' if model == 'example' else 'Tiny'}"
    run = tmp_path / "run"
    assert main(["train", "--model", name, f"--model.{setting}", "0.2", *NARROW, *QUICK, "--out", str(run)]) == 0
    used = json.loads(capsys.readouterr().out)["config"]["model"]
    assert used["name"] == f"{chosen}:{name.split(':')[1]}"
    assert used[setting] == 0.2
    monkeypatch.chdir(tmp_path)
    assert main(["evaluate", str(run), "--json"]) == 0
    (evaluation,) = json.loads(capsys.readouterr().out)
    assert evaluation["test_accuracy"] == evaluation["recorded"]["test_accuracy"]
    assert main(["predict", str(run), "--out", str(tmp_path / "out.csv"), "--quiet"]) == 0
    assert main(["models", f"{chosen}:{name.split(':')[1]}"]) == 0
    assert f"--model.{setting}" in capsys.readouterr().out


def test_a_constructor_may_need_the_values_of_tensors(file: Path, tmp_path: Path) -> None:
    assert main(["train", "--model", f"{file}:Scaled", *QUICK, "--out", str(tmp_path / "run")]) == 0


@pytest.fixture
def installed(tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package with two models, as an installer leaves it."""
    facts = tmp_path / "other-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text("[kuramotognn.models]\ntiny = mine:Tiny\nbroken = mine:Gone\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.syspath_prepend(file.parent)


@pytest.mark.usefixtures("installed")
def test_entry_points(tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path_factory.mktemp("runs") / "run"
    assert main(["train", "--model", "tiny", "--model.slope", "0.2", *NARROW, *QUICK, "--out", str(run)]) == 0
    used = json.loads(capsys.readouterr().out)["config"]["model"]
    assert (used["name"], used["slope"]) == ("tiny", 0.2)
    assert main(["train", "--model", "broken"]) == 2
    assert "model 'broken' of mine:Gone cannot be loaded: AttributeError" in capsys.readouterr().err
    assert main(["train", "--model", "tinny"]) == 2
    assert "unknown model 'tinny'; did you mean 'tiny'?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("missing.py:A", None, "model file 'missing.py' does not exist"),
        ("{file}", MODEL, "names no class; write FILE.py:CLASS"),
        ("{file}:Tyni", MODEL, "has no class 'Tyni'; did you mean 'Tiny'?"),
        ("{file}:NUMBER", MODEL, "is neither a torch module nor an Equation"),
        ("{file}:Untyped", MODEL, "parameter 'depth' of Untyped has no type; write it as depth: float = 1.0"),
        (
            "{file}:NoWidths",
            MODEL,
            "must take in_channels and out_channels by name: got an unexpected keyword argument",
        ),
        ("{file}:Other", MODEL, "wrong.py:Other cannot be a setting, which may not have this name; rename it"),
        ("{file}:Fails", MODEL, "wrong.py:Fails failed: KeyError: 3; it is called as model(x, edge_index)"),
        ("{file}:NoEdges", MODEL, "failed: TypeError: NoEdges.forward() takes 2 positional arguments but 3 were given"),
        ("{file}:OneClass", MODEL, "must give a row a node and a column a class, [2485, 7], and gave [2485, 1]"),
        ("{file}:Tiny", "import nowhere", "cannot be imported: ModuleNotFoundError: No module named 'nowhere'"),
        ("{file}:Tiny", "class Tiny(:", "cannot be imported: SyntaxError"),
        ("{file}:Tiny", "import sys; sys.exit(3)", "cannot be imported: SystemExit"),
    ],
)
def test_models_that_cannot_be_used_get_a_sentence(
    assert_refused: Refused, tmp_path_factory: pytest.TempPathFactory, name: str, content: str | None, sentence: str
) -> None:
    path = tmp_path_factory.mktemp("models") / "wrong.py"
    if content is not None:
        path.write_text(content)
    assert_refused(["train", "--model", name.format(file=path), "--quiet"], sentence)
