"""Over-smoothing of trained models and of any PyG model, as a picture and a table."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from rich.table import Table

from kuramotognn.atomic_write import write_atomically
from kuramotognn.cli.output import PLAIN, Output
from kuramotognn.cli.terminal import make_console, say
from kuramotognn.printable import printable

if TYPE_CHECKING:
    from kuramotognn.diagnostics import Decay, Profile

COLUMNS = 4
"""Depths that a table shows."""


def diagnose(
    *runs: Path,
    model: Annotated[list[str] | None, Parameter(consume_multiple=True)] = None,
    dataset: str = "cora",
    layers: int = 32,
    channels: int = 64,
    arguments: Annotated[list[str] | None, Parameter(consume_multiple=True)] = None,
    epochs: int = 0,
    seed: int = 0,
    compare: Annotated[bool, Parameter(negative="")] = False,
    split: int | None = None,
    measures: list[str] | None = None,
    pairs: int = 20_000,
    exact: Annotated[bool, Parameter(negative="")] = False,
    out: Path | None = None,
    output: Output = PLAIN,
) -> None:
    """Measure how alike nodes become over the depth of a model, and say whether it over-smooths.

    The model is that of a run, or any PyG model: --model torch_geometric.nn.GCN, --model my_model.py:MyGNN.

    Parameters
    ----------
    runs
        Run folder; several with --compare.
    model
        Any PyG model: a dotted path, FILE.py:CLASS, or FILE.py with one class; several with --compare. It is called as
        model(x, edge_index), or as model(data) where its forward has one argument.
    dataset
        Data set that the model is made for.
    layers
        Its number of layers, where the constructor takes one.
    channels
        Its width, where the constructor takes one.
    arguments
        Further arguments of the constructor, such as heads=4 dropout=0.5.
    epochs
        Train it on split 0 for so many epochs first; with 0 the initial weights are measured.
    seed
        Seed of its weights.
    compare
        Overlay several runs in one picture.
    split
        Split whose model is measured (default: the first one).
    measures
        Measures to take (default: all that apply), such as pairwise-distance, dirichlet, mad, effective-rank.
    pairs
        Pairs of nodes sampled for the mean pairwise distance.
    exact
        Take all pairs instead.
    out
        Picture to write, .svg or .png (default: oversmoothing.svg in the split's folder, comparison.svg in the first
        run's folder; oversmoothing-MODEL.svg here for --model).
    """
    if not runs and not model:
        raise ValueError("name a run folder: kuramotognn diagnose RUN; or a model: --model torch_geometric.nn.GCN")
    if len(runs) + len(model or ()) > 1 and not compare:
        raise ValueError(f"diagnose takes one run, got {len(runs) + len(model or ())}; overlay several with --compare")
    if out is not None and out.suffix not in (".svg", ".png", ".pdf"):
        raise ValueError(f"--out must end in .svg, .png or .pdf, got {str(out)!r}")
    from kuramotognn.runs.profile_model import Maker, parse_arguments, profile_model
    from kuramotognn.runs.profile_run import profile_run  # What a picture needs is slow to load.

    sample = None if exact else pairs
    found = [profile_run(run, split, measures=measures, pairs=sample) for run in runs]
    profiles, test_accuracy = [profile for profile, _ in found], None
    for target in model or ():
        maker = Maker(target, channels, layers, parse_arguments(arguments or ()), seed)
        profile, trained = profile_model(maker, dataset, epochs=epochs, measures=measures, pairs=sample)
        profiles.append(profile)
        test_accuracy = trained.test_accuracy if trained else None
    if compare:
        names = [run.name for run in runs] + [Path(target).name for target in model or ()]
        _show_comparison(names, profiles, out or (runs[0] if runs else Path()) / "comparison.svg", output)
    else:
        usual = found[0][1] / "oversmoothing.svg" if found else Path(f"oversmoothing-{profiles[0].model}.svg")
        _show_profile(profiles[0], out or usual, output, test_accuracy)


def _show_profile(profile: Profile, picture: Path, output: Output, test_accuracy: float | None) -> None:
    from kuramotognn.plots.panels import draw
    from kuramotognn.plots.profile_plots import name_of, profile_panels

    decays = _decays(profile)
    record = profile.as_dict() | {"decay": {name: _plain(decay) for name, decay in decays.items()}}
    record |= {} if test_accuracy is None else {"test_accuracy": test_accuracy}
    draw(profile_panels(profile), picture)
    write_atomically(picture.with_suffix(".json"), json.dumps(record, indent=2) + "\n")
    if output.json:
        print(json.dumps(record, indent=2))
        return
    if output.verbose:
        make_console().print(_table(profile, decays))
    for name, decay in list(decays.items())[:1]:
        say(f"{profile.model}: {name_of(name)}: {decay.describe(profile.unit)}")
    if test_accuracy is not None:
        say(f"{profile.model}: test accuracy {100 * test_accuracy:.2f} % after training")
    if output.verbose:
        say(f"saved {picture} and {picture.with_suffix('.json').name}")


def _show_comparison(sources: list[str], profiles: list[Profile], picture: Path, output: Output) -> None:
    from kuramotognn.plots.panels import draw
    from kuramotognn.plots.profile_plots import comparison_panels, name_of

    labels = _labels(sources, [profile.model for profile in profiles])
    named = dict(zip(labels, profiles, strict=True))
    panels = comparison_panels(named)
    if not panels:
        raise ValueError("the runs share no measure that is compared; leave out --measures")
    draw(panels, picture)
    decays = {label: _decays(profile) for label, profile in named.items()}
    if output.json:
        record = {
            label: profile.as_dict() | {"decay": {name: _plain(decay) for name, decay in decays[label].items()}}
            for label, profile in named.items()
        }
        print(json.dumps(record, indent=2))
        return
    if output.verbose:
        table = Table(title="Over-smoothing: exponential decay of differences with depth")
        table.add_column("measure")
        for label, profile in named.items():
            table.add_column(f"{printable(label, 60)}, {profile.depth[-1]:g} {profile.unit}")
        for name in dict.fromkeys(name for laws in decays.values() for name in laws):
            clauses = [
                laws[name].describe(named[label].unit).split(":")[0] if name in laws else ""
                for label, laws in decays.items()
            ]
            table.add_row(name_of(name), *clauses)
        make_console().print(table)
    say(f"saved {picture}")


def _decays(profile: Profile) -> dict[str, Decay]:
    from kuramotognn.diagnostics import is_oversmoothing

    return {name: is_oversmoothing(profile, name) for name in profile.floor}


def _plain(decay: Decay) -> dict[str, Any]:
    """As JSON: None in place of NaN and infinity, which it does not have."""
    record = asdict(decay) | {"oversmoothing": bool(decay)}
    return {key: None if isinstance(value, float) and value - value != 0 else value for key, value in record.items()}


def _labels(sources: list[str], models: list[str]) -> list[str]:
    """The models' names; with the folder or file where two are the same, with a number where these are too."""
    unique = [m if models.count(m) == 1 else f"{m} ({source})" for m, source in zip(models, sources, strict=True)]
    return [label if unique.count(label) == 1 else f"{label} {k + 1}" for k, label in enumerate(unique)]


def _table(profile: Profile, decays: dict[str, Decay]) -> Table:
    last = len(profile.depth) - 1
    shown = sorted({round(k * last / (COLUMNS - 1)) for k in range(COLUMNS)})
    table = Table(title=f"{printable(profile.model, 60)}: how alike nodes become with depth")
    table.add_column(profile.unit)
    for k in shown:
        table.add_column(f"{profile.depth[k]:.4g}", justify="right", no_wrap=True)
    table.add_column("decay", no_wrap=True)
    for name, values in profile.measures.items():
        law = decays[name].law if name in decays else ""
        table.add_row(name, *(f"{values[k]:.3g}" for k in shown), law)
    return table
