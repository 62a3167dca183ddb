"""The colours of a score, one scale for terminal, charts and page. Pure; knows nothing of grids.

The default runs yellow → orange → rose → violet → blue, from missed to found: most cells of most runs are found, so
they are a calm dark ground on which a miss lights up, warm as in the published heatmap. Red and green, which one man in
twelve mixes up, never have to be told apart. OKLab lightness falls at every step, for normal sight and for the three
simulated colour blindnesses (a test computes it), so the order survives a grey print too. The dark end is far enough
from black that found is not taken for empty on a dark terminal. Invalid is no colour: it is a hatch.
"""

from __future__ import annotations

from functools import cache
from typing import Literal

Scale = Literal["default", "classic"]

ANCHORS: dict[Scale, tuple[str, ...]] = {
    "default": (
        "#f6cf3f", "#f4b649", "#f09c4f", "#e58861", "#d47879", "#c4688c",
        "#a7659b", "#8b60a8", "#6f5aac", "#5055a8", "#2c4fa3",
    ),
    "classic": ("#d64545", "#e07f3f", "#e8c547", "#93b84f", "#2e9e5b"),
}  # fmt: skip
"""Even steps from score 0 to score 1; between them colours are mixed linearly."""

INDEXED: dict[Scale, tuple[int, ...]] = {
    "default": (221, 214, 208, 173, 168, 132, 97, 61, 25),
    "classic": (160, 202, 208, 220, 184, 148, 112, 71, 35),
}
"""The same for terminals of 256 colours, picked by hand from the fixed cube: nearest colours that stay in order."""

_INK, _PAPER = "#000000", "#ffffff"


def colour(score: float, scale: Scale = "default") -> str:
    """`#rrggbb` for a score from 0 to 1; outside it, the nearer end."""
    anchors = ANCHORS[scale]
    place = min(max(score, 0.0), 1.0) * (len(anchors) - 1)
    below = min(int(place), len(anchors) - 2)
    share = place - below
    pairs = zip(_rgb(anchors[below]), _rgb(anchors[below + 1]), strict=True)
    return "#" + "".join(f"{round(low + (high - low) * share):02x}" for low, high in pairs)


def indexed(score: float, scale: Scale = "default") -> int:
    """The number among 256 terminal colours. The two ends are kept for exactly 0 and exactly 1."""
    colours = INDEXED[scale]
    inner = len(colours) - 2
    if score <= 0 or score >= 1:
        return colours[0 if score <= 0 else -1]
    return colours[1 + min(int(score * inner), inner - 1)]


def ink(background: str) -> str:
    """Black or white: what is read better on `#rrggbb` (relative luminance by WCAG 2.2, crossing point 0.179)."""
    red, green, blue = (_linear(part / 255) for part in _rgb(background))
    return _INK if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 else _PAPER


@cache
def block_style(score: float, depth: Literal["truecolor", "256"], scale: Scale = "default") -> str:
    """A rich style for a block of this score: its colour behind, readable ink in front."""
    exact = colour(score, scale)
    behind = exact if depth == "truecolor" else f"color({indexed(score, scale)})"
    return f"{ink(exact)} on {behind}"


def swatch_style(score: float, depth: Literal["truecolor", "256"], scale: Scale = "default") -> str:
    """A rich style for text in the colour of this score."""
    return colour(score, scale) if depth == "truecolor" else f"color({indexed(score, scale)})"


def _rgb(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def _linear(part: float) -> float:
    return part / 12.92 if part <= 0.04045 else float(((part + 0.055) / 1.055) ** 2.4)
