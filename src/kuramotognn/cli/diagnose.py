"""Over-smoothing of trained models, as a picture and a table."""

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
    compare: Annotated[bool, Parameter(negative="")] = False,
    split: int | None = None,
    measures: list[str] | None = None,
    pairs: int = 20_000,
    exact: Annotated[bool, Parameter(negative="")] = False,
    out: Path | None = None,
    output: Output = PLAIN,
) -> None:
    """Measure how alike nodes become over the depth of a trained model, and say whether it over-smooths.

    Parameters
    ----------
    runs
        Run folder; several with --compare.
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
        Picture to write, .svg or .png (default: oversmoothing.svg in the split's folder; comparison.svg in the first
        run's folder).
    """
    from kuramotognn.runs.profile_run import profile_run  # What a picture needs is slow to load.

    if not runs:
        raise ValueError("name a run folder: kuramotognn diagnose RUN")
    if len(runs) > 1 and not compare:
        raise ValueError(f"diagnose takes one run, got {len(runs)}; overlay several with --compare")
    if out is not None and out.suffix not in (".svg", ".png", ".pdf"):
        raise ValueError(f"--out must end in .svg, .png or .pdf, got {str(out)!r}")
    found = [profile_run(run, split, measures=measures, pairs=None if exact else pairs) for run in runs]
    if compare:
        _show_comparison(runs, [profile for profile, _ in found], out or runs[0] / "comparison.svg", output)
    else:
        profile, folder = found[0]
        _show_profile(profile, out or folder / "oversmoothing.svg", output)


def _show_profile(profile: Profile, picture: Path, output: Output) -> None:
    from kuramotognn.plots.panels import draw
    from kuramotognn.plots.profile_plots import name_of, profile_panels

    decays = _decays(profile)
    record = profile.as_dict() | {"decay": {name: _plain(decay) for name, decay in decays.items()}}
    draw(profile_panels(profile), picture)
    write_atomically(picture.with_suffix(".json"), json.dumps(record, indent=2) + "\n")
    if output.json:
        print(json.dumps(record, indent=2))
        return
    if output.talkative:
        make_console().print(_table(profile, decays))
    for name, decay in list(decays.items())[:1]:
        say(f"{profile.model}: {name_of(name)}: {decay.describe(profile.unit)}")
    if output.talkative:
        say(f"saved {picture} and {picture.with_suffix('.json').name}")


def _show_comparison(runs: tuple[Path, ...], profiles: list[Profile], picture: Path, output: Output) -> None:
    from kuramotognn.plots.panels import draw
    from kuramotognn.plots.profile_plots import comparison_panels, name_of

    labels = _labels(runs, [profile.model for profile in profiles])
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
    if output.talkative:
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
    """As JSON has it: no numbers that are not."""
    record = asdict(decay) | {"oversmoothing": bool(decay)}
    return {key: None if isinstance(value, float) and value - value != 0 else value for key, value in record.items()}


def _labels(runs: tuple[Path, ...], models: list[str]) -> list[str]:
    """The models' names; with the folder where two are the same, with a number where these are too."""
    unique = [m if models.count(m) == 1 else f"{m} ({run.name})" for m, run in zip(models, runs, strict=True)]
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
