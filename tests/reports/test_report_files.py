import csv
import json
import re
from html import unescape
from html.parser import HTMLParser
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from kuramotognn.cli import main
from kuramotognn.cli.reproduce import _fitting
from kuramotognn.reports.report_files import (
    STALE,
    front_page,
    latex,
    to_csv,
    to_html,
    to_latex,
    to_markdown,
    write_report,
)
from kuramotognn.reports.result_tables import experiment_result
from kuramotognn.sweeps.catalogue import find_experiment
from kuramotognn.sweeps.cells import Cell, load
from kuramotognn.sweeps.records import Records
from tests.browser import assert_accessible, browser, console_messages
from tests.sweeps.invented import INVENTED, invent


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    for name in INVENTED:
        invent(name, folder)
    return folder


@pytest.fixture(scope="module")
def page(results: Path) -> Path:
    return write_report([find_experiment(name) for name in INVENTED], [results], results / "report").page


def test_a_number_is_the_mean_over_its_files(results: Path) -> None:
    experiment = find_experiment("main-accuracy")
    entry = next(
        entry
        for entry in experiment_result(experiment, Records(results)).grids[0].entries
        if (entry.place.dataset, entry.place.model) == ("cora", "kuramotognn")
    )
    (place,) = experiment.places(["cora"], ["kuramotognn"])
    tests = [100 * load(Cell(place.case(), split).path(results))["result"]["test_accuracy"] for split in range(8)]
    assert entry.summary is not None
    assert entry.summary.mean == pytest.approx(np.mean(tests))
    assert entry.summary.std == pytest.approx(np.std(tests, ddof=1))
    assert entry.difference == pytest.approx(np.mean(tests) - 85.18)
    assert entry.within == (entry.summary.low <= 85.18 <= entry.summary.high)
    assert (entry.runs, entry.failed) == (8, ())


def test_seeds_of_a_split_count_once(tmp_path: Path) -> None:
    """Runs on the same split are not independent: the interval is over splits."""
    experiment = invent("main-accuracy", tmp_path, splits=2)
    (place,) = experiment.places(["cora"], ["gat"])
    case = place.case()
    first = load(Cell(case, 0).path(tmp_path))
    for seed, value in ((0, 0.5), (1, 0.7)):
        record = first | {"seed": seed, "result": first["result"] | {"test_accuracy": value}}
        Cell(case, 0, seed).path(tmp_path).write_text(json.dumps(record))
    entry = next(
        e
        for e in experiment_result(experiment, Records(tmp_path)).grids[0].entries
        if (e.place.dataset, e.place.model) == ("cora", "gat")
    )
    assert entry.runs == 3
    assert entry.by_split[0] == pytest.approx(60.0)
    assert entry.summary is not None
    assert entry.summary.count == 2


def test_a_result_of_another_protocol_is_refused(tmp_path: Path) -> None:
    experiment = invent("coupling", tmp_path)
    for path in tmp_path.rglob("*.json"):
        record = load(path)
        record["result"]["protocol"] = "random-per-class"
        path.write_text(json.dumps(record))
    with pytest.raises(ValueError, match="a result of protocol random-per-class cannot stand in coupling"):
        experiment_result(experiment, Records(tmp_path))


def test_tuning_splits_stay_out(tmp_path: Path) -> None:
    experiment = invent("coupling", tmp_path)
    path = next(tmp_path.rglob("*.json"))
    path.write_text(json.dumps(load(path) | {"split": 1000}))
    runs = [entry.runs for entry in experiment_result(experiment, Records(tmp_path)).grids[0].entries]
    assert sorted(runs) == [0] + [1] * 20


def test_stale_runs_stay_out_and_are_counted(tmp_path: Path) -> None:
    experiment = invent("coupling", tmp_path)
    path = next(tmp_path.rglob("*.json"))
    path.write_text(json.dumps(load(path) | {"fingerprint": [1.0] * 6}))
    result = experiment_result(experiment, Records(tmp_path))
    assert sorted(entry.runs for entry in result.grids[0].entries) == [0] + [1] * 20
    assert "1 stale run" in result.provenance["left out"]
    assert STALE not in to_markdown(result)


def test_a_table_of_nothing_but_stale_runs_is_marked(tmp_path: Path) -> None:
    experiment = invent("coupling", tmp_path)
    for path in tmp_path.rglob("*.json"):
        path.write_text(json.dumps(load(path) | {"fingerprint": []}))
    result = experiment_result(experiment, Records(tmp_path))
    assert all(entry.runs for entry in result.grids[0].entries)
    assert STALE in to_markdown(result)
    assert STALE in unescape(to_html([result]))
    assert STALE in front_page(result)


def make_older(folder: Path, **changes: object) -> None:
    """Records as a version would have written them that lacked a setting."""
    for path in folder.rglob("*.json"):
        record = load(path)
        del record["config"]["training"]["checkpoint_every"]
        older = path.with_name(f"older-{path.name}")
        older.write_text(json.dumps(record | {"case": f"older-{record['case']}"} | changes))
        path.unlink()


def test_records_are_found_again_when_a_setting_has_come_since(tmp_path: Path) -> None:
    experiment = invent("coupling", tmp_path)
    make_older(tmp_path)
    assert all(entry.runs for entry in experiment_result(experiment, Records(tmp_path)).grids[0].entries)


def test_records_of_another_format_are_left_alone(tmp_path: Path) -> None:
    experiment = invent("coupling", tmp_path)
    make_older(tmp_path, format=0)
    assert not any(entry.runs for entry in experiment_result(experiment, Records(tmp_path)).grids[0].entries)


def test_packed_results_say_the_same(results: Path, tmp_path: Path) -> None:
    experiment = find_experiment("depth")
    write_report([experiment], [results], tmp_path / "report", packed=tmp_path / "packed")
    assert [path.name for path in (tmp_path / "packed").iterdir()] == ["depth.jsonl"]
    packed, loose = (experiment_result(experiment, Records(folder)) for folder in (tmp_path / "packed", results))
    assert to_csv(packed) == to_csv(loose)
    assert packed.records == loose.records
    assert (tmp_path / "packed" / "depth.jsonl").stat().st_size < 0.5 * sum(len(json.dumps(r)) for r in loose.records)


def test_markdown(results: Path) -> None:
    text = to_markdown(experiment_result(find_experiment("main-accuracy"), Records(results)))
    row = next(line for line in text.splitlines() if line.startswith("| KuramotoGNN |"))
    assert re.search(r"\d\d\.\d\d ± \d\.\d\d \(85\.18 ± 1\.30; [+−]\d\.\d\d, (within|outside)\)", row)
    assert "8 of 100 splits, 1 of the paper's 20 seeds; 6 of 54 cells failed" in text
    assert "kuramotognn reproduce main-accuracy --splits 8 --seeds 1" in text
    assert "| mean rank |" in text
    assert "failed (1)" in next(line for line in text.splitlines() if line.startswith("| GCN |"))


def test_the_front_page_shows_what_was_run_and_nothing_else(tmp_path: Path) -> None:
    experiment = invent("main-accuracy", tmp_path, splits=2)
    for path in tmp_path.rglob("*.json"):
        if path.parts[-3] != "cora" or path.parts[-2] not in ("gat", "kuramotognn"):
            path.unlink()
    lines = front_page(experiment_result(experiment, Records(tmp_path)), [("cora", "cora.svg")]).splitlines()
    table = [line.split(" | ")[0] for line in lines if line.startswith("|")]
    assert table == ["| model", "| ---", "| KuramotoGNN", "| KuramotoGNN, as coded", "| GAT"]
    assert "2 of 100 splits" in "".join(lines)
    assert "![Accuracy on six data sets: cora](cora.svg)" in lines


def test_a_table_too_wide_for_the_terminal_is_turned(results: Path) -> None:
    grid, _ = experiment_result(find_experiment("depth"), Records(results)).grids
    narrow, wide = _fitting(grid, Console(width=80)), _fitting(grid, Console(width=200))
    assert [column.header for column in narrow.columns] == ["T", "KuramotoGNN", "GRAND-l", "GRAND-l without X(0)"]
    assert [column.header for column in wide.columns][:3] == ["model", "T = 1", "T = 4"]
    assert narrow.row_count == 8
    told = Console(width=80, file=(out := StringIO()))
    told.print(narrow)
    assert "…" not in out.getvalue()


def test_csv_has_a_line_a_number(results: Path) -> None:
    rows = list(csv.DictReader(to_csv(experiment_result(find_experiment("depth"), Records(results))).splitlines()))
    assert len(rows) == 2 * 3 * 8
    assert {row["T"] for row in rows} == {"1", "4", "8", "16", "32", "64", "80", "100"}
    assert all(float(row["low"]) <= float(row["mean"]) <= float(row["high"]) for row in rows)


def test_latex_is_escaped_and_its_tables_are_rectangular(results: Path) -> None:
    assert latex("50 % of A&B_C {x} ~ ^ \\ #$") == (
        r"50 \% of A\&B\_C \{x\} \textasciitilde{} \textasciicircum{} \textbackslash{} \#\$"
    )
    text = to_latex(experiment_result(find_experiment("main-accuracy"), Records(results)))
    body = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert {line.count(" & ") for line in body} == {6}
    assert text.count(r"\toprule") == text.count(r"\bottomrule") == 1
    assert text.count("{") == text.count("}")


def test_comparisons_are_of_models_on_common_splits(results: Path) -> None:
    (grid,) = experiment_result(find_experiment("main-accuracy"), Records(results)).grids
    pairs = grid.comparisons["cora"]
    assert len(pairs) == 8 * 7 // 2, "GCN failed"
    assert all(pair.count == 8 for pair in pairs)


class Auditor(HTMLParser):
    """Counts what a page holds and notes what it would fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: dict[str, int] = {}
        self.fetched: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen[tag] = self.seen.get(tag, 0) + 1
        for name, value in attrs:
            internal = (value or "").startswith(("#", "data:"))
            if name in ("src", "href", "xlink:href") and not internal:
                self.fetched.append(f"{tag} {name} {value}")


def test_the_page_needs_nothing_else_and_escapes_names(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    auditor = Auditor()
    auditor.feed(text)
    assert auditor.fetched == []
    assert "@import" not in text
    assert "url(http" not in text
    assert "&lt;b&gt;invented&lt;/b&gt; &amp; diverged" in text
    assert "<b>invented</b>" not in text
    assert auditor.seen["svg"] == 1 + 2 + 3 + 1 + 1 + 3, "ranks, depth, maps, coupling, the flow, report cards"
    command = "kuramotognn reproduce depth --datasets citeseer --models grand-l --only T=64 --splits 8 --seeds 1"
    assert f"<code>{command}</code>" in text
    assert "What holds" in text
    assert text.count("currentColor") > 50, "axes and words take the page's ink"


def test_a_page_without_results_lists_what_to_run(tmp_path: Path) -> None:
    result = experiment_result(find_experiment("depth"), Records(tmp_path))
    assert "kuramotognn reproduce depth" in to_html([], [result])


def test_the_command(results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "report"
    assert main(["report", "depth", "--from", str(results), "--out", str(out)]) == 0
    assert capsys.readouterr().out == f"1 experiments, 384 runs: {out}/report.html\n"
    assert {path.name for path in out.iterdir()} == {"report.html", "report.md", "depth.csv", "depth.tex"}
    assert main(["report", "--from", str(tmp_path / "missing")]) == 2
    assert "there is no folder" in capsys.readouterr().err
    assert main(["report", "dept", "--from", str(results)]) == 2
    assert "did you mean 'depth'" in capsys.readouterr().err


SORTED = """
const column = [...document.querySelectorAll("table.sortable")].find((table) => table.offsetWidth);
const head = column.tHead.rows[0].cells[1], button = head.firstElementChild;
const cells = () => [...column.tBodies[0].rows].map((row) => row.cells[1].dataset.value);
const values = () => cells().filter((value) => value !== "");
button.click(); const down = values().map(Number);
button.click();
return {down, up: values().map(Number), told: head.getAttribute("aria-sort")};
"""
DRAWN = """return [...document.querySelectorAll("figure.chart svg")].map(
  (svg) => svg.getBoundingClientRect().height > 100 && svg.querySelectorAll("path").length > 3);"""


@pytest.mark.slow
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (1280, True), (390, False), (390, True)])
def test_the_page_in_a_browser(page: Path, tmp_path: Path, width: int, dark: bool) -> None:
    """No error, every figure drawn, tables sort, nothing wider than the window; screenshots to look at are kept."""
    with browser(width, 3000, dark=dark) as driver:
        driver.get(page.as_uri())
        driver.save_screenshot(str(tmp_path / "page.png"))
        drawn = driver.execute_script(DRAWN)
        assert len(drawn) > 6
        assert all(drawn)
        found = driver.execute_script(SORTED)
        assert len(set(found["down"])) > 3
        assert found["down"] == sorted(found["down"], reverse=True)
        assert found["up"] == sorted(found["down"])
        assert found["told"] == "ascending"
        assert console_messages(driver) == []
        assert driver.execute_script("return document.documentElement.scrollWidth") <= width
        background = driver.execute_script("return getComputedStyle(document.body).backgroundColor")
        assert (background == "rgb(20, 23, 27)") == dark


@pytest.mark.slow
@pytest.mark.parametrize("dark", [False, True])
def test_the_page_is_accessible(page: Path, dark: bool) -> None:
    assert_accessible(page, dark=dark)
