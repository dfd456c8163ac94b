"""The page of results on the site: the tables of docs/results.md, one number a column, so that they can be sorted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tools.write_results import drawings, results, shown

from kuramotognn.reports.commands import experiment_command
from kuramotognn.reports.report_files import (
    interval,
    markdown_table,
    ours,
    stale_notice,
    theirs,
    verdict,
)
from kuramotognn.reports.result_tables import Entry, ExperimentResult, Grid, compact, turned

COLUMNS = ("ours", "95 % interval", "paper", "ours − paper", "splits")


def page(written: str) -> str:
    """The opening of the written page, the tables of all results, and what the written page has after them."""
    found = shown(results())
    head = written.partition(f"\n## {found[0].experiment.title}\n")[0]
    tail = written.partition("\n## What each option adds")
    parts = [head, HOW_TO_READ, *(_section(result) for result in found)]
    return "\n".join([*parts, "".join(tail[1:])])


HOW_TO_READ = """
Click on the head of a column to sort by it. A number is the mean ± the standard deviation over splits; *paper* is the
number that the paper prints. *Within* and *outside* say whether the paper's number lies in the 95 % bootstrap interval
of our mean.
"""


def _section(result: ExperimentResult) -> str:
    experiment = result.experiment
    pictures = [(caption, f"images/{name}") for caption, (name, _) in drawings(result).items()]
    about = " ".join(experiment.about.split())
    lines = [f"## {experiment.title}", "", *stale_notice(result), about, ""]
    dotted = " Dotted: the paper." if experiment.figure == "lines" and experiment.published else ""
    for caption, address in pictures:
        lines += [f"![{experiment.title}: {caption}]({address})", f"*{caption.capitalize()}.{dotted}*", ""]
    for grid in (compact(grid) for grid in result.grids if any(entry.summary for entry in grid.entries)):
        lines += [f"### {grid.heading}", ""] if grid.heading else []
        lines += _beside_the_paper(grid) if grid.has_paper else markdown_table(grid)
        lines += ["", f"Protocol {experiment.protocol}; {grid.coverage}.", ""]
    facts = "; ".join(f"{name} {value}" for name, value in result.provenance.items())
    origin = ['??? info "Where these numbers come from"', f"    `{experiment_command(result)}`", "", f"    {facts}", ""]
    return "\n".join([*lines, *origin])


def _beside_the_paper(grid: Grid) -> Iterator[str]:
    """A tab for each column of the table, or for each data set; in it a row for each model."""
    grid = turned(grid) if grid.corner == "dataset" else grid
    for place, name in enumerate(grid.columns):
        yield f'=== "{name}"'
        yield ""
        rows = [(row, entries[place]) for row, entries in grid.rows]
        for line in _table(grid.corner, rows):
            yield f"    {line}"
        yield ""


def _table(corner: str, rows: Sequence[tuple[str, Entry]]) -> Iterator[str]:
    shown = [(name, _cells(entry)) for name, entry in rows]
    used = [place for place in range(len(COLUMNS)) if any(cells[place] for _, cells in shown)]
    yield "| " + " | ".join([corner, *(COLUMNS[place] for place in used)]) + " |"
    yield "|---|" + "---:|" * len(used)
    for name, cells in shown:
        yield "| " + " | ".join([name, *(cells[place] for place in used)]) + " |"


def _cells(entry: Entry) -> tuple[str, ...]:
    splits = str(len(entry.by_split)) if entry.summary and entry.summary.count > 1 else ""
    return ours(entry), interval(entry), theirs(entry), verdict(entry), splits
