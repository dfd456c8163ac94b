"""Exported models: the folder, the card, loading without running code, and the models that come with the library."""

import csv
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from torch.nn.functional import softmax

from kuramotognn import load_dataset, load_pretrained
from kuramotognn.cli import main
from kuramotognn.runs.exported import SHIPPED, files_of, pretrained_names
from kuramotognn.runs.model_card import PARTS, plain
from tests.runs.test_own_graph import SETTINGS, two_communities, write_csv

SHORT = ["--model.hidden-channels", "8", "--model.time", "1", "--training.epochs", "5", "--quiet"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exported") / "mine"
    assert main(["train", *SHORT, "--splits", "2", "--training.select-time", "--out", str(folder)]) == 0
    return folder


@pytest.fixture(scope="module")
def exported(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shared") / "my-model"
    assert main(["export", str(run), "--card", "--split", "1", "--out", str(folder), "--quiet"]) == 0
    return folder


def test_the_folder_holds_what_is_needed_and_no_more(exported: Path) -> None:
    names = {path.relative_to(exported).as_posix() for path in files_of(exported)}
    assert names == {"README.md", "config.toml", "split-1/model.safetensors", "split-1/result.json"}


def test_its_logits_are_those_of_the_run(run: Path, exported: Path) -> None:
    rows = list(csv.reader((run / "split-1" / "predictions.csv").read_text().splitlines()))[1:]
    written = np.array([row[-7:] for row in rows], dtype=float)
    logits = load_pretrained(exported).predict()
    assert softmax(logits, dim=-1).numpy() == pytest.approx(written, abs=1e-5)


def test_its_parameters_are_plain_safetensors(run: Path, exported: Path) -> None:
    ours, theirs = (load_file(folder / "split-1" / "model.safetensors") for folder in (exported, run))
    assert ours.keys() == theirs.keys()
    assert all((ours[name] == theirs[name]).all() for name in ours)


def test_the_card_gives_data_split_accuracy_settings_and_limits(exported: Path) -> None:
    pretrained = load_pretrained(exported)
    card, result = pretrained.card, pretrained.result
    headings = re.findall(r"^#+ (.*)", card, flags=re.MULTILINE)
    assert headings == ["my-model", "Data", "Split", "Result", "How it was trained", "Use", "Limits"]
    for text in (
        "2485 nodes, 5069 edges, 1433 features, largest connected component",
        "Protocol `random-per-class`, split 1: 20 nodes of each class train",
        "140 nodes train, 1360 validate,\n985 test",
        f"| accuracy | test | {100 * result.test_accuracy:.2f} % |",
        f"Epoch {result.best_epoch} of 5, chosen by validation accuracy; seed 0; read at time",
        "| `model.hidden_channels` | 8 |",
        'load_pretrained("my-model")',
    ):
        assert text in card
    assert "{{" not in card


def test_every_protocol_has_words() -> None:
    from kuramotognn.data.protocols import PROTOCOLS

    assert PARTS.keys() == PROTOCOLS.keys()


def test_markdown_shows_names_as_they_are() -> None:
    assert plain("a|b <script> *x* [y](z)\n# h") == r"a\|b &lt;script> \*x\* \[y\](z)\\n# h"


def test_commands_that_take_a_run_take_it(exported: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", str(exported), "--json"]) == 0
    (split,) = json.loads(capsys.readouterr().out)
    assert split["test_accuracy"] == load_pretrained(exported).result.test_accuracy
    assert main(["diagnose", str(exported), "--measures", "mad", "--out", str(tmp_path / "mad.svg"), "--quiet"]) == 0
    assert main(["predict", str(exported), "--out", str(tmp_path / "all.csv"), "--quiet"]) == 0
    assert len((tmp_path / "all.csv").read_text().splitlines()) == 1 + 2485


def test_a_graph_of_ones_own(tmp_path: Path) -> None:
    files = write_csv(two_communities(), tmp_path)
    run, out = tmp_path / "run", tmp_path / "shared"
    assert main(["train", *files, "--label", "y", *SETTINGS, "--out", str(run)]) == 0
    assert main(["export", str(run), "--card", "--out", str(out), "--quiet"]) == 0
    assert str(tmp_path) not in "".join(path.read_text(errors="replace") for path in files_of(out))
    loaded = load_pretrained(out)
    assert loaded.classes == ("0", "1", "2")
    assert main(["predict", str(out), *files, "--out", str(tmp_path / "again.csv"), "--quiet"]) == 0
    first, again = (path.read_text() for path in (run / "split-0" / "predictions.csv", tmp_path / "again.csv"))
    chosen = [[row["prediction"] for row in csv.DictReader(text.splitlines())] for text in (first, again)]
    assert chosen[0] == chosen[1]


def test_a_model_in_a_python_file_is_refused_and_not_run(exported: Path, tmp_path: Path) -> None:
    folder = tmp_path / "sent"
    shutil.copytree(exported, folder)
    (tmp_path / "evil.py").write_text("raise SystemExit('this code was run')")
    settings = (folder / "config.toml").read_text()
    named = settings.replace('name = "kuramotognn"', f'name = "{tmp_path / "evil.py"}:Model"')
    assert named != settings
    (folder / "config.toml").write_text(named)
    with pytest.raises(ValueError, match="is Python code in"):
        load_pretrained(folder)
    assert main(["export", str(folder), "--out", str(tmp_path / "out")]) == 2


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["export", "missing"], "'missing' is not a run folder"),
        (["export", "RUN", "--out", "RUN"], "exists and is not empty; name another folder with --out"),
        (["export", "RUN", "--split", "7", "--out", "new"], "split 7 is not among the finished splits"),
        (["export", "RUN", "--note", "text"], "--note is a paragraph of the model card; add --card"),
        (["pretrained", "kuramotogn-cora"], "did you mean 'kuramotognn-cora'"),
        (["pretrained", "--out", "new"], "name the model to copy to 'new'"),
        (["pretrained", "RUN"], "does not say what it takes"),
    ],
)
def test_mistakes_get_one_sentence_and_exit_code_two(
    arguments: list[str], sentence: str, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(run) if word == "RUN" else word for word in arguments]) == 2
    told = capsys.readouterr().err
    assert sentence in told
    assert told.count("\n") == 1


def test_a_result_that_is_not_computed_again_is_not_exported(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changed = tmp_path / "changed"
    shutil.copytree(run, changed)
    path = changed / "split-0" / "result.json"
    record = json.loads(path.read_text())
    path.write_text(json.dumps(record | {"test_accuracy": 0.99}))
    assert main(["export", str(changed), "--out", str(tmp_path / "out")]) == 2
    assert "99.00 % in its result" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_parameters_of_another_width_are_refused(exported: Path, tmp_path: Path) -> None:
    folder = tmp_path / "wide"
    shutil.copytree(exported, folder)
    path = folder / "config.toml"
    path.write_text(path.read_text().replace("hidden_channels = 8", "hidden_channels = 800000000"))
    with pytest.raises(ValueError, match="does not fit the model"):
        load_pretrained(folder)


def test_other_features_are_refused(exported: Path) -> None:
    with pytest.raises(ValueError, match="takes 1433 features of a node, got 4"):
        load_pretrained(exported).predict(_small_graph())


def _small_graph() -> object:
    from kuramotognn import from_data

    return from_data(two_communities())


@pytest.mark.parametrize("name", pretrained_names())
def test_a_shipped_model_gives_the_accuracy_of_its_card(name: str) -> None:
    pretrained = load_pretrained(name)
    found = pretrained.evaluate()
    # Machines round differently.
    assert found.test_accuracy == pytest.approx(found.recorded.test_accuracy, abs=0.002)
    assert f"test accuracy {100 * found.recorded.test_accuracy:.2f} %" in pretrained.card
    dataset = load_dataset("cora")  # With its small components, which the model has not seen.
    right = pretrained.predict(dataset).argmax(dim=-1) == torch.as_tensor(dataset.y)
    assert right.float().mean() > 0.75
    assert not re.search(r"\+changes|unknown", (pretrained.folder / "README.md").read_text())


def test_shipped_models_are_small_and_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "kuramotognn-cora" in pretrained_names()
    assert len(pretrained_names()) == 2
    assert sum(path.stat().st_size for path in files_of(SHIPPED)) <= 2_000_000
    assert main(["pretrained", "--json"]) == 0
    assert [each["name"] for each in json.loads(capsys.readouterr().out)] == pretrained_names()
    assert main(["pretrained", "--quiet"]) == 0
    assert capsys.readouterr().out.split() == pretrained_names()
    assert main(["pretrained", "kuramotognn-cora", "--out", str(tmp_path / "copy"), "--quiet"]) == 0
    assert main(["evaluate", str(tmp_path / "copy"), "--quiet"]) == 0
