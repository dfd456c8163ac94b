"""Chromium for tests of pages; a test that needs it skips with a reason where it is absent."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

AXE = Path(__file__).parent.parent / "node_modules" / "axe-core" / "axe.min.js"
FRAMES_PER_SECOND = """
const done = arguments[0], start = performance.now();
let frames = 0;
requestAnimationFrame(function count(now) {
  frames += 1;
  if (now - start < 2000) requestAnimationFrame(count); else done((1000 * frames) / (now - start));
});
"""


@contextmanager
def browser(width: int = 1440, height: int = 1000, *, dark: bool = False) -> Iterator[Any]:
    """A selenium driver of a Chromium without a window, and without a network."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed (make test-slow does)")
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("Chromium is not installed (Debian packages chromium and chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in ("--headless=new", "--no-sandbox", "--hide-scrollbars", "--host-resolver-rules=MAP * ~NOTFOUND"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    page = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    try:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        yield page
    finally:
        page.quit()


def console_messages(page: Any) -> list[str]:
    """What the page and the browser wrote to the console."""
    return [entry["message"] for entry in page.get_log("browser")]


def frames_per_second(page: Any) -> float:
    """How often the browser draws, measured over two seconds."""
    return float(page.execute_async_script(FRAMES_PER_SECOND))


def assert_accessible(path: Path, *, dark: bool) -> None:
    """axe-core finds nothing serious or critical on a page with all its parts unfolded."""
    with browser(dark=dark) as page:
        page.get(path.as_uri())
        # Not by clicks: a sticky column covers some of them.
        page.execute_script("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
        assert accessibility_violations(page) == []


def accessibility_violations(page: Any) -> list[str]:
    """Serious and critical findings of axe-core."""
    if not AXE.is_file():
        pytest.skip("axe-core is not installed (npm install --no-save axe-core)")
    page.execute_script(AXE.read_text(encoding="utf-8"))
    found = page.execute_async_script("axe.run().then(arguments[0])")["violations"]
    serious = [each for each in found if each["impact"] in ("serious", "critical")]
    return [f"{each['id']}: {each['help']}: {each['nodes'][0]['html'][:200]}" for each in serious]
