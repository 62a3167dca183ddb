"""Labels of axes: lengths as 1k … 1M, no two alike, and only as many as there is room for. Pure."""

from __future__ import annotations

from collections.abc import Sequence

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
