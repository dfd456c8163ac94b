import math

import pytest

from kuramotognn.reports.leads import leads, leads_section
from kuramotognn.reports.opening import opening
from kuramotognn.reports.paper_claims import (
    FAILS,
    HOLDS,
    NOT_RUN,
    PARTLY,
    UNTESTED,
    claims,
    claims_section,
    main_sentences,
)
from kuramotognn.reports.parameter_grid import headline_section, parameter_grids
from kuramotognn.sweeps.catalogue import Experiment, Place, experiments, find_experiment
from tests.reports.made import Numbers, made


def main_table(difference: float, splits: int = 9) -> list[str]:
    """Verdicts when KuramotoGNN is that far from all other models, which are alike."""

    def number(place: Place) -> Numbers:
        return (80.0 + difference if place.model == "kuramotognn" else 80.0), 0.8

    return [claim.verdict for claim in claims(made("main-accuracy", number, splits))]


def test_a_claim_to_lead_follows_the_numbers() -> None:
    assert main_table(+2.0) == [HOLDS]
    assert main_table(-2.0) == [FAILS]
    assert main_table(+2.0, splits=8) == [UNTESTED], "seven comparisons, of which none could be significant"
    assert [claim.verdict for claim in claims(made("main-accuracy", lambda _: None))] == [NOT_RUN]


def test_a_lead_on_some_data_sets_holds_in_part() -> None:
    def number(place: Place) -> Numbers:
        return (82.0 if (place.model, place.dataset) == ("kuramotognn", "photo") else 80.0), 0.8

    results = made("main-accuracy", number, splits=9)
    (claim,) = claims(results)
    assert claim.verdict == PARTLY
    assert "Best mean in 1 of 6 cells (in the paper 6), significantly in 1" in claim.evidence
    assert "photo +2.0" in claim.evidence
    assert "best mean on 1 of 6 data sets, significantly on 1" in main_sentences(results)[0]


def test_what_was_not_run_is_said() -> None:
    def number(place: Place) -> Numbers | None:
        return (80.0, 0.8) if place.dataset == "cora" else None

    (claim,) = claims(made("main-accuracy", number, splits=9))
    assert claim.told == f"{FAILS} (1 of 6 cells)"


def two_rows() -> Experiment:
    experiment = find_experiment("main-accuracy")
    return experiment.model_copy(
        update={"models": ("kuramotognn", "kuramotognn@as-coded", "gcn"), "datasets": ("cora",)}
    )


def test_the_row_of_kuramotognn_is_chosen_on_validation() -> None:
    numbers = {"kuramotognn": (81.0, 0.9), "kuramotognn@as-coded": (84.0, 0.7), "gcn": (82.0, 0.99)}
    result = made(two_rows(), lambda place: numbers[place.model])["main-accuracy"]
    (lead,) = leads(result)
    assert lead.ours.place.model == "kuramotognn"
    assert lead.best.place.model == "gcn"
    assert lead.behind
    assert not lead.ahead
    assert [name for name, _ in result.grids[0].rows] == ["KuramotoGNN", "KuramotoGNN, as coded", "GCN"]


def test_presets_do_not_take_data_sets_from_the_ranking() -> None:
    def number(place: Place) -> Numbers | None:
        only_cora = "@" in place.model and place.dataset != "cora"
        return None if only_cora or place.dataset == "photo" else (80.0 + len(place.model), 0.8)

    experiment = find_experiment("main-accuracy")
    models = ("kuramotognn", "kuramotognn@as-coded", "gcn", "gcnii")
    (grid,) = made(experiment.model_copy(update={"models": models}), number)["main-accuracy"].grids
    assert grid.ranking is not None
    assert grid.ranking.datasets == ("cora", "citeseer", "pubmed", "computers", "coauthor-cs")
    assert dict(grid.ranking.ranks) == {"KuramotoGNN": 1.0, "GCNII": 2.0, "GCN": 3.0}


def test_depth_is_compared_with_the_best_depth_on_validation() -> None:
    """The best depth of KuramotoGNN is 16 on validation and 4 on test."""

    def number(place: Place) -> Numbers:
        depth = place.at["T"]
        if place.model == "kuramotognn":
            return {4.0: 90.0, 16.0: 84.0, 64.0: 83.0, 100.0: 80.0}.get(depth, 82.0), (0.9 if depth == 16 else 0.8)
        return (80.0 if depth < 64 or place.model == "grand-l" else 60.0), 1 / depth

    kept, collapse = claims(made("depth", number))
    assert (kept.verdict, collapse.verdict) == (PARTLY, HOLDS)
    assert (
        "cora −1.00 ± 0.00 (p = 0.0078) at T = 64, −4.00 ± 0.00 (p = 0.0078) at T = 100 against T = 16" in kept.evidence
    )
    assert "citeseer −20.01" in collapse.evidence
    assert "GRAND-l with X(0): cora +0.00" in collapse.evidence


def test_the_headline_is_the_maximum_of_the_papers_grid() -> None:
    """85.18 and 82.97 are of the paper; of ours the cell that validation chooses is shown, not the best."""

    def number(place: Place) -> Numbers:
        chosen = (place.at["T"], place.at["K"]) == (8.0, 0.9)
        return 80.0 + place.at["K"] + (2.0 if place.at["T"] == 2 else 0.0), (0.9 if chosen else 0.8)

    result = made("depth-coupling-grid", number, splits=1)["depth-coupling-grid"]
    section = headline_section(result)
    assert "The published 85.18 on cora is the maximum of a published grid of 32 settings" in section.text[0]
    assert "the mean of the 20 with T ≥ 8 is 82.97" in section.text[0]
    assert section.rows[0][5:] == ("80.90 (T = 8, K = 0.9)", "83.00", "81.10", "80.85")
    cora = parameter_grids(result)[0]
    assert cora.spread == pytest.approx(0.3)
    assert cora.published_spread == pytest.approx(85.18 - 81.37)
    assert math.isnan(cora.deviation), "one split"


def test_little_is_less_than_the_deviation_over_splits() -> None:
    verdicts = [
        claims(made("depth-coupling-grid", lambda place, slope=slope: (80 + slope * place.at["T"], 0.8)))[0].verdict
        for slope in (0.01, 1.0)
    ]
    assert verdicts == [HOLDS, FAILS]


def test_evaluations_are_compared_within_a_preset() -> None:
    numbers = {"kuramotognn": 110, "grand-l": 120, "kuramotognn@as-coded": 1900, "grand-l@as-coded": 200}
    (claim,) = claims(made("solver-evaluations", lambda place: (numbers[place.model], 0.8), splits=1))
    assert claim.verdict == PARTLY
    assert "KuramotoGNN, as coded: cora 9.5 (9.5), citeseer 9.5 (4.0)" in claim.evidence
    assert "KuramotoGNN: cora 0.9 (9.5)" in claim.evidence


def test_an_opening_of_nothing_says_what_was_not_run() -> None:
    nothing = [made(name, lambda _: None)[name] for name in experiments()]
    titles = [section.title for section in opening(nothing)]
    assert titles[0] == "What holds"
    assert "The paper's numbers" in titles
    section = claims_section({result.experiment.name: result for result in nothing})
    assert section is not None
    assert section.text == ("Of 7 claims of the paper, 7 have not been run.",)
    assert claims_section({}) is leads_section({}) is None
