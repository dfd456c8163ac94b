from kuramotognn.reports.coverage import coverage, coverage_section, settings_section
from tests.reports.made import made


def test_every_number_of_the_paper_is_counted_once() -> None:
    results = made("main-accuracy", lambda place: (80.0, 0.8) if place.dataset != "photo" else None)
    results |= made("heterophilic-large", lambda _: None)
    found = {each.table: each for each in coverage(results)}
    assert sum(each.numbers for each in found.values()) == 438
    assert all(each.ours + each.missing.total() == each.numbers for each in found.values())
    assert found["main-accuracy"].ours == 40
    assert found["main-accuracy"].missing == {("not run yet", "photo"): 8}
    assert "roman-empire (5): its node features are not at hand" in coverage_section(results).rows[6][4]


def test_a_number_with_several_presets_counts_once() -> None:
    results = made("solver-evaluations", lambda place: (100.0, 0.8) if "@" in place.model else None, splits=1)
    found = {each.table: each for each in coverage(results)}
    assert found["solver-evaluations"].ours + found["solver-evaluations"].missing.total() == 12


def test_the_papers_settings_stand_beside_ours() -> None:
    rows = {row[:2]: row[2:] for row in settings_section().rows}
    paper, ours, strength, _ = rows["cora", "KuramotoGNN"]
    assert (paper, strength) == ("12", "1")
    assert float(ours) > 0
    assert rows["cora", "GRAND-l"][2:] == ("", "")
