import shlex
from dataclasses import replace

from kuramotognn.cli.reproduce import _names, _values
from kuramotognn.reports.commands import entry_command, experiment_command
from kuramotognn.reports.published import title
from kuramotognn.sweeps.plan import plan_sweep
from tests.reports.made import made


def test_the_command_of_a_cell_makes_its_runs_and_no_others() -> None:
    (result,) = made("depth-coupling-grid", lambda _: (80.0, 0.8), splits=3).values()
    entry = next(e for e in result.grids[0].entries if e.place.at == {"T": 12.0, "K": 0.7})
    words = shlex.split(entry_command(entry))
    assert words[:3] == ["kuramotognn", "reproduce", "depth-coupling-grid"]
    flags = dict(zip(words[3::2], words[4::2], strict=True))
    sweep = plan_sweep(
        result.experiment,
        datasets=_names(flags["--datasets"]),
        models=_names(flags["--models"]),
        only=_values(flags["--only"]),
        splits=int(flags["--splits"]),
        seeds=int(flags["--seeds"]),
    )
    ((place, case),) = sweep.cases
    assert (place, case.digest) == (entry.place, entry.place.case().digest)
    assert [(cell.split, cell.seed) for cell in sweep.cells] == [(0, 0), (1, 0), (2, 0)]


def test_seeds_and_splits_that_are_missing_in_between_are_asked_for() -> None:
    (result,) = made("main-accuracy", lambda _: (80.0, 0.8)).values()
    entry = replace(result.grids[0].entries[0], samples={1: (1.0,), 4: (1.0, 2.0)})
    assert entry_command(entry).endswith("--splits 5 --seeds 2")


def test_an_experiment_of_which_nothing_was_run_has_no_empty_flags() -> None:
    (result,) = made("solver-evaluations", lambda _: None).values()
    assert experiment_command(result) == "kuramotognn reproduce solver-evaluations --splits 1 --seeds 1"


def test_presets_in_print() -> None:
    assert title("kuramotognn@as-coded") == "KuramotoGNN, as coded"
    assert title("gcn@recipe") == "GCN, with recipe"
