import inspect
import math
import re
import tomllib
from pathlib import Path

import pytest
from torch import nn

from kuramotognn.config.resolve import ConfigError, flatten, parse, presets_of, read_toml, recommended, resolve
from kuramotognn.config.search_spaces import Choice, LogUniform, search_space
from kuramotognn.config.tree import Config
from kuramotognn.data import DATASETS, OWN_GRAPH
from kuramotognn.models.registry import MODELS


def test_flag_beats_file_beats_recommended_beats_default() -> None:
    advice = recommended("cora", "kuramotognn")
    assert "time" in advice["model"]
    plain = resolve({})
    assert plain.config.model.time == advice["model"]["time"]
    assert plain.sources["model.time"] == "recommended"
    assert plain.sources["seed"] == "default"
    file = {"model": {"time": 3.0}, "seed": 4}
    from_file = resolve({}, file)
    assert (from_file.config.model.time, from_file.sources["model.time"]) == (3.0, "file")
    both = resolve({"model": {"time": 5.0}}, file)
    assert (both.config.model.time, both.sources["model.time"]) == (5.0, "flag")
    assert (both.config.seed, both.sources["seed"]) == (4, "file")


def test_a_step_size_and_a_number_of_steps_replace_each_other() -> None:
    assert recommended("cora", "kuramotognn")["solver"]["step_size"]
    steps = resolve({"solver": {"steps": 7}}).config.solver
    assert (steps.steps, steps.step_size) == (7, None)
    adaptive = resolve({"solver": {"method": "dopri5"}}).config.solver
    assert (adaptive.method, adaptive.steps, adaptive.step_size) == ("dopri5", None, None)
    fixed = resolve({"solver": {"method": "rk4"}}, {"solver": {"method": "dopri5", "rtol": 1e-3}}).config.solver
    assert (fixed.method, fixed.rtol, fixed.step_size) == ("rk4", None, None)


def test_a_configuration_survives_its_file(tmp_path: Path) -> None:
    config = resolve({"model": {"phase_range": (0.0, math.pi)}, "training": {"select_time": True}}).config
    path = tmp_path / "config.toml"
    path.write_text(config.to_toml(), encoding="utf-8")
    assert parse(read_toml(path)) == config


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("dataset", DATASETS)
def test_recommended_settings_build(dataset: str, model: str) -> None:
    config = resolve({"dataset": dataset, "model": {"name": model}}).config
    assert config.model.name == model
    assert isinstance(config.model.build(10, 3, config.solver), nn.Module)


PRESETS = Path(inspect.getfile(Config)).parent / "presets"


@pytest.mark.parametrize("path", sorted(PRESETS.rglob("*.toml")), ids=lambda path: str(path.relative_to(PRESETS)))
def test_presets_build_and_are_kept(path: Path) -> None:
    preset, dataset, model = path.parent.parent.name, path.parent.name, path.stem
    resolved = resolve({"dataset": dataset, "model.name": model, "preset": preset})
    assert resolved.config.preset == preset
    assert all(resolved.sources[name] == "preset" for name, _ in flatten(read_toml(path)))
    assert isinstance(resolved.config.model.build(10, 3, resolved.config.solver), nn.Module)
    again = tomllib.loads(resolved.config.to_toml())
    assert again["preset"] == preset
    assert parse(again) == resolved.config


#: Sizes, rates and what all models share.
UNDOCUMENTED = {"preset", "data.protocol", "data.normalisation", "data.largest_component", "splits", "model.adjacency"}
UNDOCUMENTED |= {f"model.{name}" for name in ("hidden_channels", "num_layers", "time", "coupling", "heads")}
UNDOCUMENTED |= {f"model.{name}" for name in ("attention_channels", "input_dropout", "dropout", "alpha", "theta")}
UNDOCUMENTED |= {"model.stiffness", "model.damping", "training.optimiser", "training.learning_rate"}
UNDOCUMENTED |= {"training.weight_decay", "training.epochs", "training.patience", "training.time_candidates"}


def test_unknown_presets_get_a_sentence() -> None:
    with pytest.raises(ConfigError, match="unknown preset 'as-code'; did you mean 'as-coded'"):
        resolve({"preset": "as-code"})
    with pytest.raises(ConfigError, match="as-coded has no settings for gat on cora; for gat it has no data set"):
        resolve({"preset": "as-coded", "model.name": "gat"})


def test_recommended_settings_have_a_model() -> None:
    """A file of recommended settings that no model reads would be silently without effect."""
    folder = Path(inspect.getfile(Config)).parent / "recommended"
    for file in folder.glob("*/*"):
        assert file.parent.name in (*DATASETS, OWN_GRAPH)
        assert file.stem in MODELS


@pytest.mark.parametrize("model", MODELS)
def test_a_search_space_names_settings_and_valid_values(model: str) -> None:
    known = dict(flatten(resolve({"model.name": model}).config.model_dump()))
    space = search_space(MODELS[model], known)
    assert set(space) <= set(known)
    for name, where in space.items():
        for value in where.options if isinstance(where, Choice) else (where.low, where.high):
            resolve({"model.name": model, name: value})


def test_as_coded_settings_are_documented() -> None:
    """Every setting of a preset but sizes and rates stands in the table, with its value."""
    text = (Path(__file__).parents[2] / "docs" / "as-coded.md").read_text(encoding="utf-8")
    named = {name.removeprefix("model.") for name in re.findall(r"`([\w.]+(?: = [\w-]+)?)`", text)}
    for path in (PRESETS / "as-coded").rglob("*.toml"):
        dataset, model = path.parent.name, path.stem
        flags = {"dataset": dataset, "model.name": model}
        plain = dict(flatten(resolve(flags, {"recommended": False}).config.model_dump()))
        for name, value in flatten(resolve(flags | {"preset": "as-coded"}).config.model_dump()):
            if value == plain[name] or name.startswith("solver.") or name in UNDOCUMENTED:
                continue
            short = name.removeprefix("model.")
            word = {True: "true", False: "false"}.get(value, value) if isinstance(value, str | bool) else ""
            assert {short, f"{short} = {word}"} & named, f"{dataset}/{model}: {name} = {value}"


#: Without ogbn-arxiv, which has no weight decay and no input dropout, and roman-empire with a weight decay of 9e-5.
@pytest.mark.parametrize(
    ("model", "dataset"),
    [
        (model, name)
        for model in MODELS
        for name in presets_of(model).get("as-coded", ())
        if name not in ("ogbn-arxiv", "roman-empire")
    ],
)
def test_a_search_space_reaches_the_authors_settings(model: str, dataset: str) -> None:
    """Of their numbers; the time of GraphCON and the widths are searched on a grid."""
    authors = dict(
        flatten(resolve({"preset": "as-coded", "dataset": dataset, "model.name": model}).config.model_dump())
    )
    space = search_space(MODELS[model], authors)
    for name, where in space.items():
        if not isinstance(where, Choice):
            assert where.low <= authors[name] <= where.high, name
    most = {"model.time": 20.0, "model.hidden_channels": 256, "training.epochs": 1500}
    for name, limit in most.items():
        if isinstance(where := space.get(name), Choice):
            assert max(where.options) == limit  # type: ignore[type-var]


def test_search_spaces_cover_webkb() -> None:
    settings = dict(flatten(resolve({"dataset": "texas"}).config.model_dump()))
    space = search_space(MODELS["kuramotognn"], settings)
    assert (space["model.time"], space["model.coupling"]) == (LogUniform(0.001, 4.0), LogUniform(0.001, 1.0))
    assert all(space == search_space(MODELS[name], settings) for name in ("kuramotognn", "kuramotognn-res"))
    epochs = [search_space(info, settings)["training.epochs"] for info in MODELS.values()]
    assert epochs == [Choice((1500,))] * len(MODELS)


def test_every_model_is_searched_with_the_same_training() -> None:
    settings = {"data.protocol": "random-per-class", "training.consistency": 1.0}
    shared = [
        {name: where for name, where in search_space(info, settings).items() if name.startswith("training.")}
        for info in MODELS.values()
    ]
    for each in shared:
        each.pop("training.affine_weight_decay", None)  # Of GCNII's code alone.
    assert all(each == shared[0] for each in shared)
    assert shared[0].keys() >= {"training.consistency", "training.clip_norm", "training.weight_decay"}


def test_the_model_decides_which_settings_are_recommended() -> None:
    assert hasattr(resolve({"model": {"name": "kuramotognn"}}).config.model, "coupling")
    other = resolve({"model": {"name": "grand-l"}})
    assert not hasattr(other.config.model, "coupling")
    assert not hasattr(resolve({}, {"model": {"name": "grand-l", "time": 3.0}}).config.model, "coupling")


def test_a_files_table_of_another_model_is_left_out() -> None:
    file = {"model": {"name": "kuramotognn", "coupling": 2.0, "time": 3.5}, "seed": 7}
    chosen = resolve({"model": {"name": "grand-l"}}, file)
    assert (chosen.config.model.name, chosen.config.seed) == ("grand-l", 7)
    assert chosen.sources["model.time"] != "file"
    nameless = resolve({"model": {"name": "grand-l"}}, {"model": {"time": 3.5}})
    assert (nameless.config.model.time, nameless.sources["model.time"]) == (3.5, "file")


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"modle": {}}, "unknown setting 'modle'; did you mean 'model'?"),
        ({"model": {"tme": 1.0}}, "kuramotognn has no setting model.tme; did you mean 'time'?; it has name, hidden_ch"),
        ({"model": {"name": "grand-l", "coupling": 1.0}}, "grand-l has no setting model.coupling; it has name, hidden"),
        ({"model": {"name": "gran"}}, "unknown model 'gran'; did you mean 'grand-l'?; known: kuramotognn, "),
        ({"model": {"name": 3}}, "unknown model '3'"),
        ({"model": {"name": "grand-l", "time": -1.0}}, "model.time must be positive, got -1.0"),
        ({"model": {"time": -1.0}}, "model.time must be positive, got -1.0"),
        ({"model": {"time": 0}}, "model.time must be positive, got 0"),
        ({"model": {"coupling": 0.0}}, "model.coupling must be positive, got 0.0"),
        ({"solver": {"step_size": -0.1}}, "solver.step_size must be positive, got -0.1"),
        ({"model": {"time": "8"}}, "model.time must be a valid number, got '8'"),
        ({"model": {"dropout": 1.5}}, "model.dropout must be less than 1, got 1.5"),
        ({"model": {"adjacency": "atention"}}, "got 'atention'; did you mean 'attention'?"),
        ({"dataset": "coora"}, "unknown dataset 'coora'; did you mean 'cora'?"),
        ({"model": 3}, "model must be a table of settings ([model] in the file), got 3"),
        ({"training": {"epochs": 2.5}}, "training.epochs must be a valid integer, got 2.5"),
    ],
)
def test_wrong_settings_get_a_sentence(settings: dict[str, object], sentence: str) -> None:
    with pytest.raises(ConfigError) as raised:
        parse(settings)
    assert sentence in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_table_given_as_a_value_gets_a_sentence() -> None:
    with pytest.raises(
        ConfigError, match=r"model must be a table of settings \(\[model\] in the file\), got 'kuramotognn'"
    ):
        resolve({"model": {"time": 3.0}}, {"model": "kuramotognn"})


@pytest.mark.parametrize(
    ("content", "sentence"),
    [(b"time = = 3", "is not TOML"), (b"\xff\xfe\x00", "is not TOML"), (None, "does not exist")],
)
def test_files_that_are_not_toml(tmp_path: Path, content: bytes | None, sentence: str) -> None:
    path = tmp_path / "settings.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=sentence):
        read_toml(path)


def test_a_folder_is_not_a_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is a folder"):
        read_toml(tmp_path)


def test_configurations_are_frozen() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Config().seed = 3  # type: ignore[misc]
