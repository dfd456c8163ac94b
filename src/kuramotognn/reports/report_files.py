"""Reports: the tables of experiments as Markdown, CSV, LaTeX and one HTML page that needs nothing else."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment
from markupsafe import Markup

from kuramotognn.atomic_write import write_atomically
from kuramotognn.reports.commands import entry_command, experiment_command
from kuramotognn.reports.experiment_charts import charts
from kuramotognn.reports.opening import opening
from kuramotognn.reports.result_tables import (
    WHOLE,
    Entry,
    ExperimentResult,
    Grid,
    compact,
    experiment_result,
    shape,
)
from kuramotognn.reports.sections import MINUS, Section, counted, markdown_row, p_value, signed
from kuramotognn.runs.provenance import provenance
from kuramotognn.sweeps.catalogue import Experiment
from kuramotognn.sweeps.records import Records, pack

HTML, MARKDOWN = "report.html", "report.md"
STALE = "Stale: these runs are of older code, whose numbers today's code does not reproduce to the digit."


@dataclass(frozen=True)
class Report:
    """Where a report was written, and which experiments have something in it."""

    folder: Path
    experiments: tuple[str, ...]
    runs: int

    @property
    def page(self) -> Path:
        """The HTML page."""
        return self.folder / HTML


def write_report(
    experiments: Sequence[Experiment],
    sources: Sequence[Path],
    folder: Path,
    tuned: Mapping[tuple[str, str], Mapping[str, Any]] | None = None,
    packed: Path | None = None,
) -> Report:
    """Write ``report.html``, ``report.md`` and, for each experiment, ``NAME.csv`` and ``NAME.tex``.

    Args:
        experiments: what to show, as far as it was run.
        sources: folders of results.
        folder: where to write.
        tuned: the settings that the runs started from, where these were not the recommended ones.
        packed: where to put the results themselves, as ``NAME.jsonl``.
    """
    records = Records(*sources)
    results = [experiment_result(experiment, records, tuned) for experiment in experiments]
    shown = [result for result in results if any(not grid.empty for grid in result.grids)]
    folder.mkdir(parents=True, exist_ok=True)
    for result in shown:
        write_atomically(folder / f"{result.experiment.name}.csv", to_csv(result))
        write_atomically(folder / f"{result.experiment.name}.tex", to_latex(result))
        if packed:
            pack(result.records, packed / f"{result.experiment.name}.jsonl")
    sections = opening(results)
    text = [*(section.to_markdown() for section in sections), *(to_markdown(result) for result in shown)]
    write_atomically(folder / MARKDOWN, "\n".join(text))
    write_atomically(folder / HTML, to_html(shown, [result for result in results if result not in shown], sections))
    return Report(folder, tuple(result.experiment.name for result in shown), sum(len(r.records) for r in shown))


def ours(entry: Entry) -> str:
    """Our number: mean and standard deviation, or why there is none."""
    if entry.summary is None:
        return f"failed ({len(entry.failed)})" if entry.failed else "–"
    spec = shape(entry.number)
    spread = "" if entry.summary.count == 1 or spec == WHOLE else f" ± {entry.summary.std:{spec}}"
    return f"{entry.summary.mean:{spec}}{spread}"


def interval(entry: Entry) -> str:
    """The 95 % interval of the mean, where there is one."""
    summary, spec = entry.summary, shape(entry.number)
    return "" if summary is None or summary.low != summary.low else f"[{summary.low:{spec}}, {summary.high:{spec}}]"


def theirs(entry: Entry) -> str:
    """The paper's number."""
    if entry.paper is None:
        return ""
    spec = shape(entry.number)
    return f"{entry.paper.mean:{spec}}" + (f" ± {entry.paper.std:{spec}}" if entry.paper.std is not None else "")


def verdict(entry: Entry) -> str:
    """Our number against the paper's."""
    if entry.difference is None:
        return ""
    return (
        signed(entry.difference, shape(entry.number)) + {None: "", True: ", within", False: ", outside"}[entry.within]
    )


def to_markdown(result: ExperimentResult, pictures: Sequence[tuple[str, str]] = ()) -> str:
    """All tables of an experiment, after pictures of given captions and addresses."""
    experiment = result.experiment
    lines = [f"## {experiment.title}", "", *stale_notice(result), _flat(experiment.about), ""]
    lines += markdown_pictures(experiment, pictures)
    for grid in (grid for grid in result.grids if not grid.empty):
        if grid.heading:
            lines += [f"### {grid.heading}", ""]
        lines += markdown_table(grid)
        lines += ["", f"Protocol {experiment.protocol}; {grid.coverage}. {legend(grid)}", ""]
    facts = "; ".join(f"{name} {value}" for name, value in result.provenance.items())
    return "\n".join([*lines, f"`{experiment_command(result)}` · {facts}", ""])


def markdown_pictures(experiment: Experiment, pictures: Sequence[tuple[str, str]]) -> list[str]:
    """A line for each picture, and an empty one after it."""
    return [line for caption, address in pictures for line in (f"![{experiment.title}: {caption}]({address})", "")]


def markdown_table(grid: Grid) -> list[str]:
    """The lines of one table."""
    ranks = grid.ranking.ranks if grid.ranking else {}
    head = [grid.corner, *grid.columns, *(["mean rank"] if ranks else [])]
    lines = [markdown_row(head), markdown_row(["---"] * len(head))]
    for name, row in grid.rows:
        cells = [name, *(_markdown_cell(entry) for entry in row)]
        lines.append(markdown_row([*cells, *([rank(grid, name)] if ranks else [])]))
    return lines


def rank(grid: Grid, name: str) -> str:
    """The mean rank of a row."""
    return f"{grid.ranking.ranks[name]:.2f}" if grid.ranking and name in grid.ranking.ranks else "–"


def legend(grid: Grid) -> str:
    """How to read a table."""
    words = "Mean ± standard deviation"
    if grid.has_paper:
        words += "; in brackets the paper's number, ours minus it, and whether it lies within the 95 % bootstrap "
        words += "interval of our mean"
    return f"{words}. {ranks_legend(grid)}".strip()


def ranks_legend(grid: Grid) -> str:
    """What the mean ranks of a table rest on; empty where it has none."""
    ranking = grid.ranking
    if ranking is None:
        return ""
    words = f"Mean rank: 1 is the best, over the {counted(len(ranking.datasets), 'data set')} that all models have. "
    words += f"Friedman test {p_value(ranking.friedman)}; Nemenyi's critical difference at 5 % is "
    words += f"{ranking.critical:.2f} ranks"
    return words + (
        ", and a bar joins models that are closer." if ranking.decidable else ": too few data sets to decide."
    )


def front_page(result: ExperimentResult, pictures: Sequence[tuple[str, str]] = ()) -> str:
    """What there is of an experiment, without columns and rows that are empty, for the front page."""
    experiment = result.experiment
    lines = [f"**{experiment.title}.** {_flat(experiment.about)}", "", *stale_notice(result)]
    lines += markdown_pictures(experiment, pictures)
    for grid in (compact(grid) for grid in result.grids if not grid.empty):
        lines += [*markdown_table(grid), "", f"Protocol {experiment.protocol}; {grid.coverage}. {legend(grid)}", ""]
    return "\n".join([*lines, f"`{experiment_command(result)}`, commit {result.provenance['commit']}.", ""])


def to_csv(result: ExperimentResult) -> str:
    """One line for each number."""
    axes = [axis.name for axis in result.experiment.axes]
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    head = "experiment protocol dataset model {axes} number runs splits failed mean std low high"
    head += " paper_mean paper_std difference paper_within"
    writer.writerow(head.format(axes=" ".join(axes)).split())
    for entry in (entry for grid in result.grids for entry in grid.entries):
        if not (entry.runs or entry.failed or entry.paper):
            continue  # An empty line, such as of a preset without settings for the data set.
        place, summary, paper = entry.place, entry.summary, entry.paper
        writer.writerow(
            [place.experiment.name, place.experiment.protocol, place.dataset, place.model]
            + [f"{place.at[axis]:g}" for axis in axes]
            + [entry.number, entry.runs, len(entry.by_split), len(entry.failed)]
            + ([_number(x) for x in (summary.mean, summary.std, summary.low, summary.high)] if summary else [""] * 4)
            + ([paper.mean, "" if paper.std is None else paper.std] if paper else ["", ""])
            + ["" if entry.difference is None else _number(entry.difference)]
            + [{None: "", True: "yes", False: "no"}[entry.within]]
        )
    return buffer.getvalue()


def to_latex(result: ExperimentResult) -> str:
    """Tables for ``booktabs``, the paper's numbers in a line of their own below ours."""
    parts = []
    for grid in (grid for grid in result.grids if not grid.empty):
        title = f"{result.experiment.title}{': ' if grid.heading else ''}{grid.heading}"
        caption = f"{title}. Protocol {result.experiment.protocol}; {grid.coverage}."
        lines = [r"\begin{table}", r"  \centering", rf"  \caption{{{latex(caption)}}}"]
        lines += [rf"  \begin{{tabular}}{{l{'r' * len(grid.columns)}}}", r"    \toprule"]
        lines += ["    " + _latex_row([grid.corner, *grid.columns]), r"    \midrule"]
        for name, row in grid.rows:
            lines.append("    " + _latex_row([name, *(ours(entry) for entry in row)]))
            if any(entry.paper for entry in row):
                cells = (rf"\emph{{{latex(theirs(entry))}}}" for entry in row)
                lines.append(rf"    \quad\emph{{paper}} & {' & '.join(cells)} \\")
        parts.append("\n".join([*lines, r"    \bottomrule", r"  \end{tabular}", r"\end{table}", ""]))
    return "\n".join(parts)


def latex(text: str) -> str:
    """Text with LaTeX's special characters made harmless."""
    special = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    special |= {character: f"\\{character}" for character in "&%$#_{}"}
    special |= {"±": r"$\pm$", "–": "--", MINUS: "$-$", "×": r"$\times$"}
    return "".join(special.get(character, character) for character in text)


def to_html(
    results: Sequence[ExperimentResult], waiting: Sequence[ExperimentResult] = (), sections: Sequence[Section] = ()
) -> str:
    """One page with everything in it: no script, style, font or picture from elsewhere; all text is escaped."""
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"ours": ours, "interval": interval, "theirs": theirs, "verdict": verdict}
    environment.filters |= {"command": entry_command, "rank": rank, "ranks_legend": ranks_legend}
    template, sortable = (
        files("kuramotognn.reports").joinpath(name).read_text(encoding="utf-8")
        for name in ("report.html.j2", "sortable.js")
    )
    return environment.from_string(template).render(
        sortable=Markup(sortable),
        opening=sections,
        sections=[
            {
                "result": result,
                "experiment": result.experiment,
                "grids": [grid for grid in result.grids if not grid.empty],
                # Not escaped: drawn by us, and matplotlib escapes the text in it.
                "charts": [(caption, Markup(picture)) for caption, picture in charts(result)],
                "command": experiment_command(result),
                "stale": STALE if result.all_stale else "",
                "provenance": result.provenance,
            }
            for result in results
        ],
        waiting=[result.experiment for result in waiting],
        runs=sum(len(result.records) for result in results),
        now=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        source=provenance(),
    )


def _markdown_cell(entry: Entry) -> str:
    paper = theirs(entry)
    if not paper:
        return ours(entry)
    against = verdict(entry)
    return f"{ours(entry)} ({paper}{'; ' if against else ''}{against})"


def stale_notice(result: ExperimentResult) -> list[str]:
    """The lines that mark tables of older code; none for others."""
    return [f"**{STALE}**", ""] if result.all_stale else []


def _latex_row(cells: Sequence[str]) -> str:
    return " & ".join(latex(cell) for cell in cells) + r" \\"


def _number(value: float) -> str:
    return "" if value != value else f"{value:.6g}"


def _flat(text: str) -> str:
    return " ".join(text.split())
