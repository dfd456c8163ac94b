"""Draw the pictures of docs/diagnostics.md and docs/theory.md, and write their tables, from committed results.

python tools/draw_dynamics.py
"""

import json
import re
import statistics
from pathlib import Path
from typing import Any

from kuramotognn.diagnostics import Profile, is_oversmoothing
from kuramotognn.plots.panels import Panel, draw
from kuramotognn.plots.profile_plots import comparison_panels

ROOT = Path(__file__).parent.parent
DOCS, IMAGES = ROOT / "docs", ROOT / "docs" / "images"


def main() -> None:
    smoothing = read("oversmoothing-cora.json")["models"]
    first = {name: Profile.from_dict(runs[0]) for name, runs in smoothing.items()}
    draw(comparison_panels(first), IMAGES / "untrained-cora.svg")
    fill(DOCS / "diagnostics.md", "table", smoothing_table(smoothing))
    statements = read("theory.json")["statements"]
    for statement in statements:
        draw([Panel.from_dict(panel) for panel in statement["panels"]], IMAGES / f"theory-{statement['name']}.svg")
    fill(DOCS / "theory.md", "statements", "\n\n".join(section(statement) for statement in statements))


def read(name: str) -> Any:
    return json.loads((ROOT / "results" / name).read_text(encoding="utf-8"))


def fill(page: Path, part: str, text: str) -> None:
    """Replace what stands between a part's two comments."""
    start, end = rf"<!-- {part}: [^>]*-->", f"<!-- end of {part} -->"
    old = page.read_text(encoding="utf-8")
    new = re.sub(f"({start}).*?({end})", lambda m: f"{m[1]}\n\n{text}\n\n{m[2]}", old, flags=re.DOTALL)
    page.write_text(new, encoding="utf-8")


def smoothing_table(models: dict[str, Any]) -> str:
    measures = {
        "pairwise-distance": "mean pairwise distance",
        "dirichlet-normalised": "normalised Dirichlet",
        "mad": "MAD",
    }
    rows = [f"| model | {' | '.join(measures.values())} |", "|---|---|---|---|"]
    for name, runs in models.items():
        rows.append(f"| {name} | {' | '.join(laws(runs, measure) for measure in measures)} |")
    return "\n".join(
        [*rows, "", "Law of decay found for the five seeds; rate a layer or a unit of time, mean ± standard deviation."]
    )


def laws(runs: list[dict[str, Any]], measure: str) -> str:
    found = [is_oversmoothing(Profile.from_dict(run), measure) for run in runs]
    names = [decay.law for decay in found]
    counted = ", ".join(f"{law} ({names.count(law)})" if len(set(names)) > 1 else law for law in dict.fromkeys(names))
    rates = [decay.rate for decay in found if decay.exponential]
    rate = f", {statistics.fmean(rates):.2f} ± {statistics.stdev(rates):.2f}" if len(rates) > 1 else ""
    return counted + rate


def section(statement: dict[str, Any]) -> str:
    rows = [
        f"| {escape(check['claim'])} | {check['measured']:.3g} | {check['relation']} {check['tolerance']:.3g} "
        f"| {check['verdict']} |"
        for check in statement["checks"]
    ]
    return "\n\n".join(
        (
            f"## {statement['place']}: {statement['name']}",
            f"> {unlinked(statement['says'])}",
            statement["verdict"],
            "\n".join(["| check | measured | tolerance | |", "|---|---:|---:|---|", *rows]),
            f"![{statement['panels'][0]['title']}](images/theory-{statement['name']}.svg)",
        )
    )


def escape(text: str) -> str:
    return unlinked(text).replace("|", "\\|")


def unlinked(text: str) -> str:
    """Brackets followed by parentheses are a product here, not a link."""
    return text.replace("](", "]\\(")


if __name__ == "__main__":
    main()
