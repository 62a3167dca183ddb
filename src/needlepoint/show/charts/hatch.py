"""Hatching as a mark: Vega has none, so a cell's stripes are one symbol whose path is cut to the cell's size. Pure."""

from __future__ import annotations

SYMBOL_SIZE = 4
"""The `size` of a mark with such a path: Vega scales a path by √size / 2, so that one unit is one pixel."""


def stripes(width: float, height: float, *, gap: float = 6.0, inset: float = 1.5) -> str:
    """An SVG path, around its middle, of rising lines that fill a rectangle."""
    return _lines(width, height, gap, inset, -(width + height) / 2)


def corner(width: float, height: float, *, inset: float = 1.0) -> str:
    """The same for the lower right corner only: some of the cell's trials are invalid."""
    part = min(width, height) * 0.55
    return _lines(width, height, max(2.6, part / 5), inset, (width + height) / 2 - part)


def _lines(width: float, height: float, gap: float, inset: float, first: float) -> str:
    right, low = width / 2 - inset, height / 2 - inset
    path, place = [], first
    while place < right + low:
        start, end = max(-right, place - low), min(right, place + low)
        if end - start > 0.5:
            path.append(f"M{start:.1f},{place - start:.1f}L{end:.1f},{place - end:.1f}")
        place += gap
    return "".join(path) or "M0,0L0,0"
