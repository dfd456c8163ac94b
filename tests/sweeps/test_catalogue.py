from importlib.resources import files
from pathlib import Path

import pytest
import torch

from kuramotognn.config.resolve import ConfigError
from kuramotognn.data import DATASETS, PROTOCOLS
from kuramotognn.models.registry import MODELS
from kuramotognn.reports.published import published
from kuramotognn.reports.result_tables import published_number
from kuramotognn.sweeps.catalogue import (
    ORDER,
    Experiment,
    experiments,
    find_experiment,
    parse_experiment,
    read_tuned,
)
from kuramotognn.sweeps.plan import plan_sweep

PAPER = Path(__file__).parent.parent.parent.parent / "shared" / "paper" / "published_results.csv"


def test_every_file_is_an_experiment_and_the_other_way_round() -> None:
    folder = files("kuramotognn.sweeps").joinpath("experiments")
    assert {path.name for path in folder.iterdir()} == {f"{name}.toml" for name in ORDER}


@pytest.mark.parametrize("name", ORDER)
def test_every_cell_can_be_built(name: str) -> None:
    """Settings are valid, the model's constructor takes them, and the protocol is the data set's."""
    experiment = find_experiment(name)
    built: set[tuple[str, str]] = set()
    for place in experiment.places():
        config = place.case().config
        assert config.data.protocol == experiment.protocol
        assert experiment.protocol in DATASETS[place.dataset].protocols
        assert config.model.name == place.model.partition("@")[0]
        for axis in experiment.axes:
            value = config.model_dump()
            for part in axis.setting_for(place.model).split("."):
                value = value[part]
            assert value == place.at[axis.name]
        if (place.dataset, place.model) not in built:
            built.add((place.dataset, place.model))
            model = config.model.build(5, 3, config.solver)
            assert isinstance(model, torch.nn.Module)
    assert len({place.case().digest for place in experiment.places()}) == len(list(experiment.places()))


@pytest.mark.parametrize("name", [name for name in ORDER if find_experiment(name).published == name])
def test_every_number_of_the_paper_has_its_cell(name: str) -> None:
    """Each row of the paper's file is found from one case of each preset of the experiment that repeats it."""
    experiment = find_experiment(name)
    text = files("kuramotognn.reports").joinpath("published.csv").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines()[1:] if line.split(",")[0] == experiment.published]
    found = [
        (place.dataset, place.model.partition("@")[0], tuple(place.at.items()), number)
        for place in experiment.places()
        for number in experiment.numbers
        if published_number(place, number) is not None
    ]
    assert len(rows) == len(set(found))
    if not any("@" in model for model in experiment.models):
        assert len(set(found)) == len(found)


def test_the_papers_numbers_are_the_shared_ones() -> None:
    if not PAPER.exists():
        pytest.skip("the paper's file is not at hand (looked for shared/paper beside the checkout)")
    ours = files("kuramotognn.reports").joinpath("published.csv").read_bytes()
    assert ours == PAPER.read_bytes()


def test_numbers_of_the_paper_by_hand() -> None:
    found = published("main-accuracy", dataset="cora", model="kuramotognn", metric="test_accuracy")
    assert found is not None
    assert (found.mean, found.std) == (85.18, 1.3)
    grid = published("depth-coupling-grid", dataset="cora", model="kuramotognn", metric="test_accuracy", T=2, K=0.7)
    assert grid is not None
    statistics = published("dataset-statistics", dataset="cora", model=None, metric="nodes")
    assert statistics is not None
    assert statistics.mean == 2485
    assert published("main-accuracy", dataset="texas", model="gcn", metric="test_accuracy") is None


def test_every_model_has_a_name_in_print() -> None:
    assert all(info.title for info in MODELS.values())
    for experiment in experiments().values():
        assert {model.partition("@")[0] for model in experiment.models} <= MODELS.keys()


def test_the_issue_is_covered() -> None:
    main = find_experiment("main-accuracy").models
    assert len({model.partition("@")[0] for model in main}) == 8
    assert set(find_experiment("main-accuracy-recipe").models) == {
        f"{model}@recipe" for model in main if "@" not in model
    }
    assert len(find_experiment("main-accuracy").datasets) == 6
    depths = find_experiment("depth").axes[0].values
    assert depths == (1, 4, 8, 16, 32, 64, 80, 100)
    assert find_experiment("depth").settings.solver == {"method": "euler", "step_size": 0.1}


def test_equal_cells_of_two_experiments_are_run_once() -> None:
    main = {place.case().digest for place in find_experiment("main-accuracy").places(["cora"], ["kuramotognn"])}
    labels = {place.case().digest for place in find_experiment("labels-per-class").places(["cora"], ["kuramotognn"])}
    assert main < labels


def test_the_report_card_starts_from_defaults_and_has_every_model() -> None:
    card = find_experiment("oversmoothing")
    assert set(card.models) == set(MODELS)
    (place, *_) = card.places(["cora"], ["kuramotognn"])
    config = place.case().config
    assert config.model.coupling == 1.0  # Not the recommended one.
    assert (config.model.time, config.solver.step_size, config.training.optimiser) == (2.0, 1.0, "adam")


def test_an_axis_takes_settings_found_at_its_values_where_a_model_has_them() -> None:
    axis = {"name": "T", "setting": "model.time", "values": [3], "preset": "as-coded"}
    content = {"title": "", "about": "", "protocol": "random-per-class", "datasets": ["cora"], "splits": 1, "seeds": 1}
    models = ["kuramotognn", "grand-nl"]
    experiment = parse_experiment("x", content | {"models": models, "rows": "model", "columns": "T", "axes": [axis]})
    with_preset, without = (place.case().config for place in experiment.places())
    assert (with_preset.preset, with_preset.model.time, with_preset.model.interaction) == (
        "as-coded",
        3.0,
        "local-order",
    )
    assert (without.preset, without.model.time) == (None, 3.0)
    tuned = {("cora", "kuramotognn"): {"recommended": False, "model": {"name": "kuramotognn", "coupling": 0.7}}}
    mine = next(iter(experiment.places())).case(tuned).config
    assert (mine.preset, mine.model.coupling) == (None, 0.7)


def test_a_sweep_and_its_jobs() -> None:
    sweep = plan_sweep(find_experiment("depth"), splits=2, seeds=3, datasets=["cora"], models=["grand-l"])
    assert len(sweep.cells) == 8 * 2 * 3
    assert sweep.cells[0].split == sweep.cells[7].split == 0
    assert sweep.label(sweep.cells[1]) == "cora grand-l T=4 split 0"


def test_data_that_is_missing_is_named_with_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KURAMOTOGNN_DATA", str(tmp_path))
    sweep = plan_sweep(find_experiment("main-accuracy"), splits=1)
    assert {cell.case.config.dataset for cell in sweep.cells} == {"cora"}
    assert "Photo/raw/amazon_electronics_photo.npz" in sweep.missing["photo"]
    monkeypatch.setenv("KURAMOTOGNN_OFFLINE", "1")
    assert "photo" in plan_sweep(find_experiment("main-accuracy"), splits=1, download=True).missing["photo"].lower()


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"splits": 101}, "which has 100 splits to report on, got 101"),
        ({"splits": 0}, "splits must be at least 1, got 0"),
        ({"datasets": ["coora"]}, "has no data set 'coora'; did you mean 'cora'"),
        ({"models": ["gnc"]}, "has no model 'gnc'; did you mean 'gcn'"),
    ],
)
def test_wrong_selections(settings: dict[str, object], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        plan_sweep(find_experiment("main-accuracy"), **settings)  # type: ignore[arg-type]


def test_unknown_experiments_and_wrong_files(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="unknown experiment 'dept'; did you mean 'depth'"):
        find_experiment("dept")
    content = find_experiment("depth").model_dump(exclude={"name"})
    with pytest.raises(ConfigError, match="experiment mine: colour: Extra inputs are not permitted"):
        parse_experiment("mine", content | {"colour": "red"})
    with pytest.raises(ConfigError, match="'K' is not one of T, dataset, metric, model"):
        parse_experiment("mine", content | {"rows": "K"})
    file = tmp_path / "best.toml"
    file.write_text("splits = 3\n")
    with pytest.raises(ConfigError, match="names no data set or no model"):
        read_tuned([file])


def test_tuned_settings_take_the_place_of_recommended_ones(tmp_path: Path) -> None:
    file = tmp_path / "best.toml"
    file.write_text(
        'dataset = "cora"\nrecommended = false\n[model]\nname = "kuramotognn"\ncoupling = 2.5\ntime = 3.0\n'
    )
    tuned = read_tuned([file])
    (place,) = find_experiment("main-accuracy").places(["cora"], ["kuramotognn"])
    assert place.case(tuned).config.model.coupling == 2.5  # type: ignore[attr-defined]
    deep = next(iter(find_experiment("depth").places(["cora"], ["kuramotognn"]))).case(tuned).config
    assert (deep.model.coupling, deep.model.time) == (2.5, 1.0)  # type: ignore[attr-defined]


def test_protocols_have_a_number_of_splits() -> None:
    assert all(isinstance(experiment, Experiment) for experiment in experiments().values())
    assert {experiment.protocol for experiment in experiments().values()} <= PROTOCOLS.keys()
