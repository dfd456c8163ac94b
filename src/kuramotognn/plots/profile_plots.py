"""Profiles as panels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kuramotognn.diagnostics.profile import FREQUENCY_SPREAD, MEASURES, Profile
from kuramotognn.plots.panels import Line, Panel
from kuramotognn.printable import plot_text

SMALLEST = 1e-40
"""Drawn for zero on a logarithmic axis."""

GROUPS: tuple[tuple[str, str, tuple[str, ...], bool], ...] = (
    (
        "Differences between nodes",
        "value / first value",
        ("pairwise-distance", "dirichlet", "dirichlet-normalised", "phase-energy"),
        True,
    ),
    ("Differences whatever the size", "value (dimensionless)", ("rayleigh", "mad", "mad-global"), True),
    ("Rank of the states", "rank", ("effective-rank", "numerical-rank"), False),
    ("Order and classes", "value in [0, 1]", ("class-separation", "order", "local-order"), False),
)
COMPARED = (
    ("pairwise-distance", True),
    ("dirichlet-normalised", True),
    ("mad", True),
    ("effective-rank", False),
)


def profile_panels(profile: Profile) -> tuple[Panel, ...]:
    """Everything that was measured of one model."""
    axis = _axis([profile])
    panels = []
    for title, label, names, logarithmic in GROUPS:
        relative = "first value" in label
        lines = tuple(_line(profile, name, name_of(name), relative) for name in names if name in profile.measures)
        if lines:
            panels.append(Panel(title, axis, label, lines, y_scale="log" if logarithmic else "linear"))
    if FREQUENCY_SPREAD in profile.measures:
        line = _line(profile, FREQUENCY_SPREAD, "since the depth before", relative=False)
        panels.append(Panel("Frequencies", axis, "largest difference (rad / time)", (line,), y_scale="log"))
    return tuple(panels)


def comparison_panels(profiles: Mapping[str, Profile]) -> tuple[Panel, ...]:
    """Several models in one picture, a panel for each measure that they share."""
    axis = _axis(list(profiles.values()))
    panels = []
    for name, logarithmic in COMPARED:
        if all(name in profile.measures for profile in profiles.values()):
            relative = name in ("pairwise-distance", "dirichlet-normalised")
            lines = tuple(_line(profile, name, plot_text(label, 40), relative) for label, profile in profiles.items())
            what = f"{name_of(name)}{' / first value' if relative else ''}"
            panels.append(Panel(name_of(name), axis, what, lines, y_scale="log" if logarithmic else "linear"))
    return tuple(panels)


def name_of(measure: str) -> str:
    """The label of a measure."""
    return MEASURES[measure].label if measure in MEASURES else "frequency spread"


def _line(profile: Profile, name: str, label: str, relative: bool) -> Line:
    # States of another width than most, such as the last one, would put a kink into every curve.
    usual = profile.usual_width
    points = [
        (depth, value)
        for depth, value, width in zip(profile.depth, profile.measures[name], profile.width, strict=True)
        if width == usual
    ]
    first = next((value for _, value in points if value > 0), 1.0) if relative else 1.0
    return Line(label, tuple(d for d, _ in points), tuple(max(v / first, SMALLEST) for _, v in points))


def _axis(profiles: Sequence[Profile]) -> str:
    units = {profile.unit for profile in profiles}
    return "depth (layers)" if units == {"layer"} else "time t" if units == {"time"} else "depth (layers, or time t)"
