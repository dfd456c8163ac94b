"""The page in Chromium. Run by `make test-slow`; the screenshots are kept in pytest's temporary folder to look at."""

from pathlib import Path
from typing import Any

import pytest

from kuramotognn.cli import main
from tests.browser import assert_accessible, browser, console_messages, frames_per_second

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both models, trained on cora."""
    out = tmp_path_factory.mktemp("explore") / "cora.html"
    assert main(["explore", "--dataset", "cora", "--no-open", "--quiet", "--out", str(out)]) == 0
    return out


def set_time(driver: Any, share: float) -> None:
    script = "const t = document.getElementById('t'); t.value = arguments[0]; t.dispatchEvent(new Event('input'));"
    driver.execute_script(script, round(1000 * share))
    settle(driver)


def settle(driver: Any) -> None:
    """Wait until two frames were drawn."""
    driver.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(() => arguments[0]()));")


def choose(driver: Any, model: int | str) -> None:
    driver.find_element("css selector", f"input[name=model][value='{model}']").click()
    settle(driver)


def order(driver: Any) -> str:
    """What the first chart, that of the order parameter, says about the present time."""
    return str(driver.find_element("css selector", ".chart p").text)


def coloured_pixels(driver: Any) -> list[int]:
    """Pixels that are drawn, of each canvas on the page."""
    script = """return [...document.querySelectorAll("canvas")].filter((each) => each.clientWidth).map((each) =>
      each.getContext("2d").getImageData(0, 0, each.width, each.height).data.filter((_, k) => k % 4 === 3)
        .reduce((sum, alpha) => sum + (alpha > 0), 0));"""
    return list(driver.execute_script(script))


@pytest.mark.parametrize(("width", "dark"), [(1440, False), (1440, True), (390, False), (390, True)])
def test_the_page_is_drawn_without_error_and_fits(page: Path, tmp_path: Path, width: int, dark: bool) -> None:
    with browser(width, 1600, dark=dark) as driver:
        driver.get(page.as_uri())
        settle(driver)
        driver.save_screenshot(str(tmp_path / "start.png"))
        assert min(coloured_pixels(driver)) > 2000
        assert console_messages(driver) == []
        assert driver.execute_script("return document.documentElement.scrollWidth") <= width
        background = driver.execute_script("return getComputedStyle(document.body).backgroundColor")
        assert (background == "rgb(20, 23, 27)") == dark


@pytest.mark.parametrize("dark", [False, True])
def test_the_page_is_accessible(page: Path, dark: bool) -> None:
    assert_accessible(page, dark=dark)


def test_slider_and_model_change_the_order_parameter(page: Path) -> None:
    with browser() as driver:
        driver.get(page.as_uri())
        choose(driver, 0)
        start = order(driver)
        set_time(driver, 1.0)
        end = order(driver)
        choose(driver, 1)
        assert len({start, end, order(driver)}) == 3
        assert console_messages(driver) == []


def test_play_runs_to_the_end_and_words_follow(page: Path) -> None:
    with browser() as driver:
        driver.get(page.as_uri())
        set_time(driver, 0.9)
        driver.find_element("id", "play").click()
        driver.set_script_timeout(10)
        driver.execute_async_script(
            "const ended = () => document.getElementById('play').textContent === 'Play' &&"
            " document.getElementById('summary').textContent.startsWith('At t = 9.16');"
            "const wait = () => ended() ? arguments[0]() : setTimeout(wait, 100); wait();"
        )
        assert "KuramotoGNN: order parameter r" in driver.find_element("id", "summary").text


def test_a_node_is_described_under_the_pointer(page: Path) -> None:
    with browser() as driver:
        from selenium.webdriver import ActionChains

        driver.get(page.as_uri())
        choose(driver, 0)
        circle = driver.find_element("css selector", ".panel .circle canvas")
        # At t = 0 all nodes lie close to angle 0.
        ActionChains(driver).move_to_element_with_offset(circle, int(0.3 * circle.size["width"]), 0).perform()
        settle(driver)
        tip = driver.find_element("id", "tip").text
        assert "class: " in tip
        assert "prediction at t: " in tip
        assert "prediction at T: " in tip


def test_a_node_is_described_by_its_name(page: Path) -> None:
    with browser() as driver:
        driver.get(page.as_uri())
        driver.find_element("id", "find").send_keys("35")
        settle(driver)
        told = driver.find_element("id", "node").text
        assert told.startswith("Node 35 (")
        assert "class: Genetic Algorithms" in told
        driver.find_element("id", "find").send_keys("x")
        assert driver.find_element("id", "node").text == "No node shown here has this name."


def test_a_class_is_left_out(page: Path) -> None:
    with browser() as driver:
        driver.get(page.as_uri())
        choose(driver, 0)
        before = coloured_pixels(driver)
        driver.find_element("id", "none").click()
        settle(driver)
        empty = coloured_pixels(driver)
        driver.find_element("css selector", "input[name=class][value='1']").click()
        settle(driver)
        one = coloured_pixels(driver)
        assert all(low < middle < high for low, middle, high in zip(empty, one, before, strict=True))


def test_controls_are_reached_by_keyboard_and_show_the_focus(page: Path) -> None:
    with browser() as driver:
        from selenium.webdriver import Keys

        driver.get(page.as_uri())
        reached: list[str | None] = []
        while True:
            driver.switch_to.active_element.send_keys(Keys.TAB)
            at = driver.switch_to.active_element
            if at.tag_name == "body":  # Behind the last control.
                break
            reached.append(at.get_attribute("id") or at.get_attribute("name"))
            assert at.value_of_css_property("outline-style") == "solid"
        for control in ("theme", "play", "t", "model", "colour", "channel", "zoom", "class", "find"):
            assert control in reached
        slider = driver.find_element("id", "t")
        slider.send_keys(Keys.ARROW_RIGHT * 3)
        settle(driver)
        assert slider.get_attribute("aria-valuetext") == "t = 0.03 of 9.16"


def test_playing_is_smooth(page: Path, record_property: Any) -> None:
    """Both models at once, drawn by the processor alone. A busy machine draws less often."""
    with browser() as driver:
        driver.get(page.as_uri())
        driver.find_element("id", "play").click()
        rate = frames_per_second(driver)
        record_property("frames_per_second", rate)
        print(f"{rate:.0f} frames per second")
        assert rate > 15
