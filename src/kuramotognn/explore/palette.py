"""Colours of phases and classes, the same on the page and in the moving picture."""

from __future__ import annotations

import numpy as np
from matplotlib.colors import to_hex

from kuramotognn.plots.style import LINES

NO_CLASS = "#8a8f96"
CYCLE = 64
"""Colours of a full turn."""


def phase_colours() -> list[str]:
    """Colours for a turn of the circle: equally light, so that no phase stands out, and legible on white and black.

    Hues of OKLCH (Ottosson, "A perceptual color space for image processing", 2020) at lightness 0.68, chroma 0.13.
    """
    hue = np.linspace(0, 2 * np.pi, CYCLE, endpoint=False) + 4.4  # Phase 0 is blue.
    a, b = 0.13 * np.cos(hue), 0.13 * np.sin(hue)
    to_lms = np.array([[0.3963377774, 0.2158037573], [-0.1055613458, -0.0638541728], [-0.0894841775, -1.2914855480]])
    lms = (0.68 + to_lms @ [a, b]) ** 3
    to_rgb = np.array(
        [
            [4.0767416621, -3.3077115913, 0.2309699292],
            [-1.2684380046, 2.6097574011, -0.3413193965],
            [-0.0041960863, -0.7034186147, 1.7076147010],
        ]
    )
    linear = np.clip(to_rgb @ lms, 0, 1)
    encoded = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    return [to_hex(colour) for colour in encoded.T]


def class_colours(count: int) -> list[str]:
    """Colours for classes: those of the library's lines; hues around the circle where these do not suffice."""
    if count <= len(LINES):
        return [line["color"] for line in LINES[:count]]
    cycle = phase_colours()
    return [cycle[k * CYCLE // count % CYCLE] for k in range(count)]
