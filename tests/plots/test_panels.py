import json
from pathlib import Path

import pytest

from kuramotognn.plots.panels import Line, Panel, draw
from kuramotognn.plots.style import LINES

BOUND = Line("bound", (1.0, 2.0), (2.0, 2.0), reference=True)
PANEL = Panel("a", "time t", "U", (Line("x", (1.0, 2.0), (1.0, 3.0)), BOUND), "log")


def test_panels_survive_json() -> None:
    assert Panel.from_dict(json.loads(json.dumps(PANEL.as_dict()))) == PANEL


@pytest.mark.parametrize(("name", "magic"), [("a.svg", b"<?xml"), ("a.png", b"\x89PNG"), ("a.pdf", b"%PDF")])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_drawing(name: str, magic: bytes, count: int, tmp_path: Path) -> None:
    draw([PANEL] * count, tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(magic)


def test_svg_is_reproducible(tmp_path: Path) -> None:
    for name in ("a.svg", "b.svg"):
        draw([PANEL], tmp_path / name)
    assert b"<dc:date>" not in (tmp_path / "a.svg").read_bytes()


def test_curves_differ_without_colour() -> None:
    assert len({str(look["linestyle"]) for look in LINES}) == len(LINES)
    assert len({look["marker"] for look in LINES}) == len(LINES)
