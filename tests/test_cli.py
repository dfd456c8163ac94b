import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest

from kuramotognn import __version__
from kuramotognn.cli import main
from kuramotognn.models.registry import MODELS
from tests.conftest import Refused

QUICK = [
    *("--splits", "2", "--model.hidden-channels", "8", "--model.time", "1"),
    *("--training.epochs", "3", "--training.learning-rate", "0.05"),
]


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "quick"
    assert main(["train", *QUICK, "--quiet", "--out", str(folder)]) == 0
    return folder


def test_train_prints_settings_table_and_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["train", *QUICK]) == 0
    told = capsys.readouterr()
    assert "model.time=1.0" in told.err
    for word in ("split", "validation", "test", "evals", "seconds", "mean", "± std", "random-per-class"):
        assert word in told.out
    (folder,) = (tmp_path / "runs").iterdir()
    assert f"saved in runs/{folder.name}" in told.out
    assert folder.name.startswith("cora-kuramotognn-")


def test_train_as_json_prints_the_result_and_nothing_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", *QUICK, "--json", "--out", str(tmp_path / "run")]) == 0
    told = capsys.readouterr()
    assert told.err == ""
    assert json.loads(told.out) == json.loads((tmp_path / "run" / "result.json").read_text())


def test_file_and_flags(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("splits = 1\nseed = 3\n[model]\nhidden_channels = 8\ntime = 1\n[training]\nepochs = 2\n")
    arguments = ["train", "--config", str(file), "--training.epochs", "1", "--json", "--out", str(tmp_path / "run")]
    assert main(arguments) == 0
    used = json.loads(capsys.readouterr().out)["config"]
    assert (used["seed"], used["training"]["epochs"], used["model"]["hidden_channels"]) == (3, 1, 8)


def test_the_model_decides_the_flags(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--model", "grand-l", "--help"]) == 0
    grand = capsys.readouterr().out
    assert "--model.time" in grand
    assert "--model.coupling" not in grand
    assert main(["train", "--help"]) == 0
    assert "--model.coupling" in capsys.readouterr().out
    for index, spelled in enumerate((["--model", "grand-l"], ["--model=grand-l"])):
        assert main(["train", *QUICK, *spelled, "--json", "--out", str(tmp_path / str(index))]) == 0
        used = json.loads(capsys.readouterr().out)["config"]["model"]
        assert (used["name"], used["time"]) == ("grand-l", 1.0)
    file = tmp_path / "mine.toml"
    file.write_text('[model]\nname = "grand-l"\n')
    assert main(["train", "--config", str(file), "--model.coupling", "3"]) == 2
    assert "grand-l has no setting model.coupling" in capsys.readouterr().err


def test_evaluate(run_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", str(run_folder)]) == 0
    assert "computed again (recorded)" in " ".join(capsys.readouterr().out.split())
    assert main(["evaluate", str(run_folder), "--json"]) == 0
    evaluations = json.loads(capsys.readouterr().out)
    assert all(e["test_accuracy"] == e["recorded"]["test_accuracy"] for e in evaluations)
    assert main(["evaluate", str(run_folder), "--quiet"]) == 0
    assert capsys.readouterr().out.startswith("test accuracy ")


def test_predict(run_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "predictions.csv"
    assert main(["predict", str(run_folder), "--out", str(out), "--split", "1"]) == 0
    assert "wrote 2485 predictions" in capsys.readouterr().out
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert rows[0].keys() >= {"node", "part", "label", "prediction", "p(Theory)"}


def test_datasets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["datasets", "--data-root", str(tmp_path)]) == 0
    told = capsys.readouterr().out
    for word in ("2485", "5069", "ogbn-arxiv", "1166243", "random-per-class", "0.804"):
        assert word in told
    assert main(["--data-root", str(tmp_path), "datasets", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert len(rows) == 12
    assert [name for name, row in rows.items() if row["present"]] == ["cora"]
    assert rows["cora"]["ours"]["edges"] == rows["cora"]["paper"]["edges"] == 5069
    assert rows["pubmed"]["ours"] is None
    assert main(["datasets", "--quiet", "--data-root", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "cora\n"


def test_an_absent_data_set_says_which_file_to_put_where(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["train", "--dataset", "pubmed", "--offline", "--data-root", str(tmp_path), "--quiet"]
    assert main(arguments) == 2
    told = capsys.readouterr().err
    assert f"{tmp_path}/PubMed/raw/ind.pubmed.x is not there and downloads are switched off" in told
    assert "get https://github.com/kimiyoung/planetoid/raw/master/data/ind.pubmed.x and put it there" in told


def test_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.strip() == __version__
    assert main(["train", "--help"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    for word in ("--model.time", "Integration time T, the depth", "--solver.method", "--dataset", "--resume"):
        assert word in told


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["train", "--dataset", "coora"], "unknown dataset 'coora'; did you mean 'cora'?"),
        (["train", "--model.tme", "3"], "kuramotognn has no setting model.tme; did you mean 'time'?"),
        (
            ["train", "--model", "grand-l", "--model.coupling", "3"],
            "grand-l has no setting model.coupling; it has",
        ),
        (["train", "--model", "gran"], "unknown model 'gran'; did you mean 'grand-l'?"),
        (["train", "--trainin.epochs", "3"], "Did you mean --training.epochs?"),
        (["train", "--model.time", "-1"], "model.time must be positive, got -1"),
        (["train", "--model.time", "0"], "model.time must be positive, got 0"),
        (["train", "--model.coupling", "0"], "model.coupling must be positive, got 0"),
        (["train", "--solver.step-size", "-0.5"], "solver.step_size must be positive, got -0.5"),
        (["train", "--solver.step-size", "0"], "solver.step_size must be positive, got 0"),
        (["train", "--solver.method", "eulr"], "method must be one of"),
        (["train", "--model.heads", "5"], "heads must divide the attention width"),
        (["train", "--data.per-class", "300"], "fewer than the 300 asked for; lower per_class"),
        (["train", "--model.time", "soon"], 'Invalid value for --model.time: unable to convert "soon" into float'),
        (["train", "--device", "gpu"], "device"),
        (["train", "--config", "missing.toml"], "config file 'missing.toml' does not exist"),
        (["trian"], 'Did you mean "train"?'),
        (["evaluate", "missing"], "'missing' is not a run folder: there is no such folder"),
        (["predict", "missing", "--out", "x.csv"], "is not a run folder"),
        (["train", "--resume", "missing"], "is not a run folder"),
        (["train", "--resume", "missing", "--seed", "3"], "--resume goes on with the run's own settings"),
    ],
)
def test_mistakes_get_one_sentence_and_exit_code_two(
    assert_refused: Refused, arguments: list[str], sentence: str
) -> None:
    assert_refused([*arguments, "--quiet"], sentence)


def test_config_files_with_mistakes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mine.toml"
    for content, sentence in [("[model]\ntme = 3", "did you mean 'time'?"), ("= 3", "is not TOML")]:
        file.write_text(content)
        assert main(["train", "--config", str(file)]) == 2
        assert sentence in capsys.readouterr().err


def test_folders_that_are_not_runs(run_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", str(tmp_path)]) == 2
    assert "is not a run folder: it has no config.toml" in capsys.readouterr().err
    assert main(["predict", str(run_folder), "--out", str(tmp_path / "x.csv"), "--split", "9"]) == 2
    assert "split 9 is not among the finished splits" in capsys.readouterr().err
    assert main(["predict", str(run_folder), "--out", str(tmp_path / "no" / "x.csv")]) == 2
    assert "make it, or name another file" in capsys.readouterr().err


def test_tampered_files_get_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "run"
    assert main(["train", *QUICK, "--quiet", "--out", str(folder)]) == 0
    config, model, result = (
        folder / "config.toml",
        folder / "split-0" / "model.safetensors",
        folder / "split-0" / "result.json",
    )
    whole = {path: path.read_bytes() for path in (config, model, result)}

    def evaluate_with(path: Path, content: bytes) -> str:
        for other, original in whole.items():
            other.write_bytes(original)
        path.write_bytes(content)
        capsys.readouterr()
        assert main(["evaluate", str(folder)]) == 2
        told = capsys.readouterr().err
        assert told.count("\n") == 1
        return told

    assert "model.safetensors is corrupted" in evaluate_with(model, whole[model][:-3])
    assert "is not a result file" in evaluate_with(result, b"{}")
    assert "is not a result file" in evaluate_with(result, b"[")
    assert "does not fit the model" in evaluate_with(config, whole[config].replace(b"channels = 8", b"channels = 16"))
    assert "is not TOML" in evaluate_with(config, b"\x00")


def test_a_diverging_run_stops_with_the_time_and_a_remedy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = ["--solver.method", "dopri5", "--solver.max-evaluations", "10", "--out", str(tmp_path / "run")]
    assert main(["train", *QUICK, *settings, "--quiet"]) == 2
    assert "dopri5 needs more than max_evaluations=10 at t = " in capsys.readouterr().err


def test_models(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models"]) == 0
    told = capsys.readouterr().out
    assert all(name in told for name in MODELS)
    assert main(["models", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in facts] == list(MODELS)
    assert main(["models", "grand++", "--json"]) == 0
    one = json.loads(capsys.readouterr().out)
    assert one["python"].startswith("GRAND(")
    assert "time" in [setting["name"] for setting in one["settings"]]
    assert main(["models", "grand++"]) == 0
    assert "--model.time" in capsys.readouterr().out
    assert main(["models", "--quiet"]) == 0
    assert capsys.readouterr().out.split() == list(MODELS)
    assert main(["models", "grand"]) == 2
    assert "unknown model 'grand'; did you mean" in capsys.readouterr().err


def test_models_without_a_flow_have_no_solver(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--model", "gcn", "--help"]) == 0
    assert "--solver" not in capsys.readouterr().out
    assert main(["train", "--model", "gcn", "--solver.steps", "3"]) == 2
    assert "gcn has no flow to integrate and takes no --solver.steps" in capsys.readouterr().err


def test_inputs_are_looked_for_before_settings_are_printed(assert_refused: Refused) -> None:
    assert_refused(["train", "--nodes", "gone.csv", "--edges", "edges.csv"], "gone.csv does not exist")


def test_quiet_shows_no_warnings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "loud.py").write_text(
        "import warnings\nfrom kuramotognn import GCN\n\n\nclass Loud(GCN):\n"
        "    def predict(self, x, graph):\n        warnings.warn('once upon a time')\n"
        "        return super().predict(x, graph)\n"
    )
    settings = ["--model", f"{tmp_path}/loud.py:Loud", "--splits", "1", "--training.epochs", "1"]
    assert main(["train", *settings, "--quiet", "--out", str(tmp_path / "run")]) == 0
    assert capsys.readouterr().err == ""


def test_completion_can_be_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert main(["--install-completion", "--shell", "bash"]) == 0
    (script,) = tmp_path.glob(".local/share/bash-completion/completions/kuramotognn")
    assert str(script) in capsys.readouterr().out.replace("\n", "")
    assert subprocess.run(["bash", "-n", str(script)]).returncode == 0
    assert "--nodes" in script.read_text()


def test_a_reader_that_goes_away_is_no_error() -> None:
    """`kuramotognn models | head -1` ends without a word."""
    command = [sys.executable, "-m", "kuramotognn", "models", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 141


def test_a_broken_pipe_to_another_process_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object) -> None:
        raise BrokenPipeError("a worker is gone")

    monkeypatch.setattr("kuramotognn.cli.models._overview", broken)
    assert main(["models"]) == 2
    assert capsys.readouterr().err == "kuramotognn: a worker is gone\n"
