"""The documentation site, built in strict mode and opened in Chromium without a network. Run by `make test-slow`."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.browser import accessibility_violations, browser, console_messages

ROOT = Path(__file__).parent.parent
PAGES = ("index", "get-started", "results", "reference/models", "tutorials/depth", "tutorials/own_csv", "pretrained")
SORTED = """
const head = [...document.querySelectorAll(".sortable th")].find((each) => each.textContent.trim() === "ours");
return [1, 2].map(() => {
  head.firstElementChild.click();
  return [...head.closest("table").tBodies[0].rows].map((row) => parseFloat(row.cells[head.cellIndex].textContent));
});
"""
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("mkdocs", reason="mkdocs is not installed (make docs does)")
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return out


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("name", PAGES)
def test_page_opens_without_error_and_is_accessible(site: Path, tmp_path: Path, name: str, dark: bool) -> None:
    with browser(dark=dark) as driver:
        driver.get((site / f"{name}.html").as_uri())
        driver.save_screenshot(str(tmp_path / "page.png"))
        assert console_messages(driver) == []
        assert accessibility_violations(driver) == []


def test_equations_are_drawn(site: Path) -> None:
    with browser() as driver:
        driver.get((site / "index.html").as_uri())
        assert driver.find_elements("css selector", ".katex-html")
        assert not driver.find_elements("css selector", ".katex-error")


def test_search_finds_a_page_offline(site: Path) -> None:
    with browser() as driver:
        driver.implicitly_wait(10)
        driver.get((site / "index.html").as_uri())
        field = driver.find_element("css selector", ".md-search__input")
        driver.execute_script("arguments[0].focus()", field)
        field.send_keys("Sakaguchi")
        assert driver.find_elements("css selector", ".md-search-result__link")


def test_a_table_of_results_is_sorted(site: Path) -> None:
    with browser() as driver:
        driver.get((site / "results.html").as_uri())
        down, up = driver.execute_script(SORTED)
        assert len(set(down)) > 3
        assert down == sorted(down, reverse=True)
        assert up == sorted(up)
