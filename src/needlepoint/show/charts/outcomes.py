"""What came of the trials at each length, stacked to the whole. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..facts import outcomes_by_length, subset_name, subsets_of
from ..labels import subset_label, word
from ..words import in_order, percent
from .axes import axis_labels, thinned
from .curves import heading
from .text import headline
from .theme import SCHEMA, ChartLook, config, has_chinese

COLOURS = {
    "correct": "#2c4fa3",
    "partial": "#8b60a8",
    "wrong": "#e07b4f",
    "not_found": "#f6cf3f",
    "refused": "#c4688c",
    "overflow": "#6b6e75",
    "truncated": "#85888f",
    "out_of_room": "#9fa2a8",
    "failed": "#4b4e55",
    "unjudged": "#b8bac0",
    "invalid": "#b9bcc4",
}
"""Valid outcomes in the colours of the scale, invalid ones grey."""
_WIDE, _HIGH = 560, 220


def outcomes_spec(report: Mapping[str, Any], look: ChartLook | None = None) -> dict[str, Any] | None:
    """Shares of outcomes by context length, subsets beside each other; None where no outcome is known."""
    look = look or ChartLook()
    values: list[dict[str, Any]] = []
    names: list[str] = []
    found = [(subset_label(subset_name(one), look.lang), outcomes_by_length(one)) for one in subsets_of(report)]
    labels = axis_labels(sorted({length for _, lengths in found for length in lengths}))
    for subset, lengths in found:
        for length, came in lengths.items():
            n = sum(came.values())
            for rank, (outcome, count) in enumerate(in_order(came)):
                names.append(outcome)
                values.append(
                    {
                        "subset": subset,
                        "x": labels[length],
                        "context_length": length,
                        "outcome": word(outcome, look.lang),
                        "rank": rank,
                        "n": count,
                        "share": count / n,
                        "shown": f"{count:,} / {n:,} ({percent(count / n)})",
                    }
                )
    if not values:
        return None
    present = [name for name, _ in in_order(dict.fromkeys(names, 1))]
    most = _WIDE if len(found) == 1 else max(200, 640 // len(found))
    width = min(most, max(160, 84 * len(labels)))
    step = width / max(1, len(labels))
    title = heading(report, "outcomes_by_length", look)
    chart = {
        "mark": {"type": "bar", "stroke": None},
        "width": width,
        "height": _HIGH,
        "encoding": {
            "x": {
                "field": "x",
                "type": "ordinal",
                "scale": {"domain": list(labels.values()), "paddingInner": 0.12, "paddingOuter": 0.06},
                "axis": {
                    "title": word("length", look.lang),
                    "labelAngle": 0,
                    "labelOverlap": False,
                    "values": thinned(list(labels.values()), step, 6.6, 7),
                },
            },
            "y": {
                "field": "share",
                "type": "quantitative",
                "stack": "zero",
                "scale": {"domain": [0, 1]},
                "axis": {"format": ".0%", "tickCount": 5, "title": word("share", look.lang), "domain": False},
            },
            "color": {
                "field": "outcome",
                "type": "nominal",
                "scale": {
                    "domain": [word(name, look.lang) for name in present],
                    "range": [COLOURS.get(name, "#b9bcc4") for name in present],
                },
                "legend": {"title": None, "symbolType": "square"},
            },
            "order": {"field": "rank", "type": "quantitative"},
            "tooltip": [
                {"field": "x", "type": "nominal", "title": word("length", look.lang)},
                {"field": "outcome", "type": "nominal", "title": word("outcome", look.lang)},
                {"field": "shown", "type": "nominal", "title": word("trials", look.lang)},
            ],
        },
    }
    head: dict[str, Any] = {
        "$schema": SCHEMA,
        "title": headline(title, 620, look.lang),
        "data": {"values": values},
        "config": config(look.theme, chinese=look.lang == "zh" or has_chinese(title + "".join(n for n, _ in found))),
    }
    if len(found) == 1:
        return {**head, **chart}
    facet = {"field": "subset", "type": "nominal", "sort": [name for name, _ in found], "title": None}
    return {**head, "facet": {"column": facet}, "spec": chart}
