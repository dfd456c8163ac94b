"""The paper's claims against the results: what holds, by how much, and by which test."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from kuramotognn.models.registry import DEFAULT_MODEL
from kuramotognn.reports.depth_losses import DepthLosses, losses_with_depth
from kuramotognn.reports.leads import Lead, is_ours, leads
from kuramotognn.reports.parameter_grid import LARGE_TIME, parameter_grids
from kuramotognn.reports.published import title
from kuramotognn.reports.result_tables import FEWEST_SPLITS, Entry, ExperimentResult
from kuramotognn.reports.sections import Section, counted, p_value, signed

HOLDS, PARTLY, FAILS, UNTESTED, NOT_RUN = "holds", "holds in part", "does not hold", "not tested", "not run yet"
#: Each of them of one claim and of several.
COUNTED = {
    HOLDS: ("holds", "hold"),
    PARTLY: ("holds in part", "hold in part"),
    FAILS: ("does not hold", "do not hold"),
    UNTESTED: ("could not be tested", "could not be tested"),
    NOT_RUN: ("has not been run", "have not been run"),
}
#: A deep flow may lose this many points against its best depth; a collapse loses this many.
MOST_LOST, COLLAPSE = 1.5, 10.0
#: More cells than these are counted, not listed.
FEW_CELLS = 6


@dataclass(frozen=True)
class Claim:
    """A claim of the paper and what became of it.

    Attributes:
        statement: what the paper says.
        verdict: one of the words above.
        scope: how much of what the claim is about was run.
        evidence: by how much it holds or fails.
        test: by which test.
    """

    statement: str
    verdict: str = NOT_RUN
    scope: str = ""
    evidence: str = "–"
    test: str = "–"

    @property
    def told(self) -> str:
        """The verdict with its scope."""
        return self.verdict + (f" ({self.scope})" if self.scope else "")


def claims(results: Mapping[str, ExperimentResult]) -> list[Claim]:
    """The claims that the given experiments are about."""
    found: list[Claim] = []
    for name, make in _MAKERS.items():
        if name in results:
            stale = ["stale runs"] if results[name].all_stale else []
            found += [
                claim
                if claim.verdict == NOT_RUN
                else replace(claim, scope=", ".join(filter(None, [claim.scope, *stale])))
                for claim in make(results[name])
            ]
    return found


def claims_section(results: Mapping[str, ExperimentResult]) -> Section | None:
    """All claims in a table, the conclusion before it; None where the experiments are about none."""
    found = claims(results)
    if not found:
        return None
    verdicts = [claim.verdict for claim in found]
    counts = [
        f"{verdicts.count(word)} {words[verdicts.count(word) > 1]}"
        for word, words in COUNTED.items()
        if word in verdicts
    ]
    rows = [(claim.statement, claim.told, claim.evidence, claim.test) for claim in found]
    return Section(
        "What holds",
        (f"Of {counted(len(found), 'claim')} of the paper, {', '.join(counts)}.", *main_sentences(results)),
        ("claim", "verdict", "by how much", "test"),
        rows,
        (
            "Differences are points of test accuracy from the best other model in a column of a table below, a cell. "
            "A claim to lead holds if KuramotoGNN has the best mean in as many of the cells as in the paper and is "
            "significantly ahead (p < 0.05) in half of those; it holds in part if it is significantly ahead in one, "
            f"and does not hold if it is in none. With depth, up to {MOST_LOST:g} points count as no loss and "
            f"{COLLAPSE:g} or more as a collapse. Of several KuramotoGNN rows the one with the best validation "
            "accuracy is taken, and so is the best depth. ± is a standard error. Splits of one graph share nodes, so "
            "the p-values are optimistic.",
        ),
    )


def main_sentences(results: Mapping[str, ExperimentResult]) -> list[str]:
    """The result of the main table in words."""
    found = leads(results["main-accuracy"]) if "main-accuracy" in results else []
    if not found:
        return []
    total = len(results["main-accuracy"].experiment.datasets)
    scope = f"{total} data sets" if len(found) == total else f"the {len(found)} data sets that were run (of {total})"
    against = (
        f"In the main table KuramotoGNN has the best mean on {sum(lead.difference > 0 for lead in found)} of {scope}, "
        f"significantly on {_count(lead.ahead for lead in found)}; it is significantly behind on "
        f"{_count(lead.behind for lead in found)}: {_listed(lead.words for lead in found)}"
    )
    differences = {lead.ours.place.dataset: lead.ours.difference for lead in found if lead.ours.difference is not None}
    below = [f"{dataset} {signed(value)}" for dataset, value in differences.items() if value < 0]
    paper = f"KuramotoGNN is below the paper's number on {_count(bool(each) for each in below)} of them"
    return [against, paper + (f": {', '.join(below)}." if below else ".")]


def _leading(statement: str, result: ExperimentResult) -> Claim:
    """The verdict on a claim to lead."""
    found = leads(result)
    if not found:
        return Claim(statement)
    best, ahead = sum(lead.difference > 0 for lead in found), sum(lead.ahead for lead in found)
    claimed = sum(lead.published is True for lead in found) or len(found)
    tested = [lead for lead in found if not math.isnan(lead.p)]
    verdict = HOLDS if best >= claimed and 2 * ahead >= claimed else PARTLY if ahead else FAILS if tested else UNTESTED
    evidence = (
        f"Best mean in {best} of {counted(len(found), 'cell')} (in the paper {claimed}), significantly in "
        f"{ahead or 'none'}; significantly behind in {_count(lead.behind for lead in found)}. {_differences(found)}"
    )
    return Claim(statement, verdict, _scope(len(found), result), evidence, _wilcoxon(tested))


def _scope(run: int, result: ExperimentResult) -> str:
    cells = len({_cell(entry) for grid in result.grids for entry in grid.entries} - {None})
    return "" if run == cells else f"{run} of {cells} cells"


def _cell(entry: Entry) -> tuple[object, ...] | None:
    labels = entry.place.at.get("labels")
    return None if labels == 20 else (entry.place.dataset, *entry.place.at.values())


def _differences(found: Sequence[Lead]) -> str:
    if len(found) <= FEW_CELLS:
        return f"Differences: {_listed(lead.words for lead in found)}"
    values = sorted(lead.difference for lead in found)
    return f"Differences from {signed(values[0])} to {signed(values[-1])}, mean {signed(fmean(values))}; see below."


def _wilcoxon(tested: Sequence[Lead]) -> str:
    if not tested:
        return "none: too few common splits"
    splits, others = ({getattr(lead, name) for lead in tested} for name in ("splits", "others"))
    return f"paired Wilcoxon over {_span(splits)} common splits, Holm over {_span(others)} models"


def _main(result: ExperimentResult) -> list[Claim]:
    claim = _leading("KuramotoGNN leads the main table, 20 labels a class on six data sets", result)
    ranking = next((grid.ranking for grid in result.grids if grid.ranking), None)
    if ranking is None:
        return [claim]
    ours = {title(entry.place.model) for grid in result.grids for entry in grid.entries if is_ours(entry)}
    own = [f"{name} {rank:.2f}" for name, rank in ranking.ranks.items() if name in ours]
    words = f" Mean rank among {len(ranking.ranks)} models: {', '.join(own)}." if own else ""
    ranks = (
        f"; Friedman over {counted(len(ranking.datasets), 'data set')} {p_value(ranking.friedman)}, Nemenyi's critical "
    )
    ranks += f"difference {ranking.critical:.2f} ranks" + ("" if ranking.decidable else ": too few data sets to decide")
    return [replace(claim, evidence=claim.evidence + words, test=claim.test + ranks)]


def _few_labels(result: ExperimentResult) -> list[Claim]:
    return [_leading("With 1, 2, 5 or 10 labels a class it is the most accurate on most data sets", result)]


def _heterophilic(result: ExperimentResult) -> list[Claim]:
    return [_leading("It does well on small heterophilic graphs", result)]


def _depth(result: ExperimentResult) -> list[Claim]:
    ours, source, without = (
        [losses for grid in result.grids if (losses := losses_with_depth(grid, chosen))]
        for chosen in (is_ours, lambda e: e.place.model == "grand-l", lambda e: e.place.model == "grand-l-no-x0")
    )
    total = len(result.experiment.datasets)
    kept = _deep("Depth does not hurt KuramotoGNN, up to T = 100", ours, lambda loss: loss >= -MOST_LOST, total)
    collapse = _deep("Without X(0), GRAND-l collapses with depth", without, lambda loss: loss <= -COLLAPSE, total)
    if collapse.verdict != NOT_RUN and source:
        contrast = f" GRAND-l with X(0): {_listed(each.words for each in source)}"
        collapse = replace(collapse, evidence=collapse.evidence + contrast)
    return [kept, collapse]


def _deep(statement: str, found: Sequence[DepthLosses], holds: Callable[[float], bool], total: int) -> Claim:
    met = [holds(loss) for losses in found for loss in losses.means]
    if not met:
        return Claim(statement)
    counts = {losses.splits for losses in found}
    test = f"paired differences over {_span(counts)} splits"
    test += ", Wilcoxon, not corrected" if max(counts) >= FEWEST_SPLITS else ": too few for a test"
    return Claim(statement, _all(met), _of(len(found), total), _listed(losses.words for losses in found), test)


def _grid(result: ExperimentResult) -> list[Claim]:
    statement = f"From T = {LARGE_TIME:g} on, coupling strength and depth matter little"
    found = [grid for grid in parameter_grids(result) if grid.ours]
    if not found:
        return [Claim(statement)]
    met = [grid.spread <= grid.deviation for grid in found]
    words = [
        f"{grid.dataset}: means differ by up to {grid.spread:.2f} (in the paper {grid.published_spread:.2f}), by K "
        f"alone up to {grid.spread_of_coupling:.2f}, and the standard deviation over splits is {grid.deviation:.2f}"
        for grid in found
    ]
    tests = ", ".join(f"{grid.dataset} {p_value(grid.friedman)}" for grid in found)
    evidence = _listed(words) + " Little means less than the standard deviation over splits."
    scope = _of(len(found), len(result.experiment.datasets))
    return [Claim(statement, _all(met), scope, evidence, f"Friedman over splits, T ≥ {LARGE_TIME:g}: {tests}")]


def _evaluations(result: ExperimentResult) -> list[Claim]:
    statement = "With an adaptive solver KuramotoGNN needs more evaluations than GRAND-l"
    table = {(entry.place.dataset, entry.place.model): entry for grid in result.grids for entry in grid.entries}
    ratios: dict[str, list[str]] = {}
    met, datasets = [], set()
    for (dataset, model), ours in table.items():
        name, at, preset = model.partition("@")
        theirs = table.get((dataset, f"grand-l{at}{preset}"))
        if name == DEFAULT_MODEL and theirs and ours.summary and theirs.summary:
            met.append(ours.mean > theirs.mean)
            datasets.add(dataset)
            paper = f" ({ours.paper.mean / theirs.paper.mean:.1f})" if ours.paper and theirs.paper else ""
            ratios.setdefault(title(model), []).append(f"{dataset} {ours.mean / theirs.mean:.1f}{paper}")
    if not met:
        return [Claim(statement)]
    words = _listed(f"{name}: {', '.join(own)}" for name, own in ratios.items())
    evidence = f"As a multiple of GRAND-l's evaluations, in brackets the paper's. {words}"
    scope = _of(len(datasets), len(result.experiment.datasets))
    return [Claim(statement, _all(met), scope, evidence, "none: counts of one split")]


_MAKERS: Mapping[str, Callable[[ExperimentResult], list[Claim]]] = {
    "main-accuracy": _main,
    "depth": _depth,
    "labels-per-class": _few_labels,
    "heterophilic-webkb": _heterophilic,
    "depth-coupling-grid": _grid,
    "solver-evaluations": _evaluations,
}


def _all(met: Sequence[bool]) -> str:
    return HOLDS if all(met) else PARTLY if any(met) else FAILS


def _of(run: int, total: int) -> str:
    return "" if run == total else f"{run} of {total} data sets"


def _listed(parts: Iterable[str]) -> str:
    return f"{'; '.join(parts)}."


def _count(met: Iterable[bool]) -> str:
    return str(sum(met) or "none")


def _span(counts: set[int]) -> str:
    return str(min(counts)) if len(counts) == 1 else f"{min(counts)}–{max(counts)}"
