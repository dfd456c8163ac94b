"""Draw the pictures of docs/diagnostics.md and docs/theory.md from committed results.

python tools/draw_dynamics.py
"""

import json
from pathlib import Path

from kuramotognn.diagnostics import Profile
from kuramotognn.diagnostics.pictures import comparison_panels
from kuramotognn.panels import Panel, draw

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "images"


def main() -> None:
    smoothing = json.loads((ROOT / "results" / "oversmoothing-cora.json").read_text(encoding="utf-8"))
    first = {name: Profile.from_dict(runs[0]) for name, runs in smoothing["models"].items()}
    draw(comparison_panels(first), IMAGES / "oversmoothing-cora.svg")
    theory = json.loads((ROOT / "results" / "theory.json").read_text(encoding="utf-8"))
    for statement in theory["statements"]:
        draw([Panel.from_dict(panel) for panel in statement["panels"]], IMAGES / f"theory-{statement['name']}.svg")


if __name__ == "__main__":
    main()
