"""Labels of axes: lengths as 1k … 1M, no two alike, and only as many as there is room for. Pure."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from ..words import length_label, width_of


def axis_labels(lengths: Sequence[int]) -> dict[int, str]:
    """`1k`, `4.4k`, `131k`, `1M`; where two would read the same, those are written out."""
    labels = {length: length_label(length) for length in lengths}
    seen = list(labels.values())
    return {length: f"{length:,}" if seen.count(label) > 1 else label for length, label in labels.items()}


def thinned(
    labels: Sequence[str], step: float, per_letter: float, apart: float, *, names: Sequence[str] = ()
) -> list[str]:
    """Those labels that fit side by side at `step` pixels each: every so many, and always the last one.

    `names` are returned in the labels' stead where they differ from what was measured.
    """
    if not labels:
        return []
    names = names or labels
    need = max(width_of(label) for label in labels) * per_letter + apart
    every = max(1, -int(-need // step))
    last = len(labels) - 1
    kept = [i for i in range(0, len(labels), every) if i == last or last - i >= every]
    return [names[i] for i in sorted({*kept, last})]


def length_axis(lengths: Sequence[int], width: float, title: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Scale and axis of a curve over lengths: logarithmic where they grow that way, labels as on the heatmap."""
    low, high = min(lengths), max(lengths)
    labels = axis_labels(lengths)
    logarithmic = len(lengths) > 2 and low > 0 and _evenness(lengths, log=True) < _evenness(lengths, log=False)
    scale: dict[str, Any] = {"zero": False, "nice": False, "padding": 14}
    if logarithmic:
        scale |= {"type": "log", "base": 2}
    if low == high:
        scale["domain"] = [low * 0.5, high * 1.5]
    shown = _apart(lengths, labels, width, math.log if logarithmic else float)
    words = json.dumps({str(length): labels[length] for length in shown})
    axis = {
        "values": shown,
        "labelExpr": f"({words})[datum.value]",
        "labelOverlap": False,
        "grid": False,
        "title": title,
    }
    return scale, axis


def _evenness(lengths: Sequence[int], *, log: bool) -> float:
    """How unlike the steps are: the largest over the mean."""
    places = [math.log(length) if log else float(length) for length in sorted(lengths)]
    steps = [b - a for a, b in pairwise(places)]
    return max(steps) / (sum(steps) / len(steps))


def _apart(lengths: Sequence[int], labels: Mapping[int, str], width: float, place: Callable[[int], float]) -> list[int]:
    """The lengths whose labels don't touch; the last one always, then as many of the others as there is room for."""
    ordered = sorted(lengths)
    low, high = place(ordered[0]), place(ordered[-1])
    per_unit = width / (high - low) if high > low else 1.0
    kept = [ordered[-1]]
    for length in [ordered[0], *ordered[1:-1]]:
        need = [(width_of(labels[length]) + width_of(labels[other])) * 3.3 + 8 for other in kept]
        if all(abs(place(length) - place(o)) * per_unit >= n for o, n in zip(kept, need, strict=True)):
            kept.append(length)
    return sorted(kept)
