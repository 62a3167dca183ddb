"""Recall of several needles in one prompt: which one is found, by length. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..colours import colour, ink
from ..facts import number, records, subset_name
from ..labels import subset_label, word
from ..words import percent
from .axes import axis_labels
from .curves import heading
from .heatmap import colour_scale, short_share
from .text import headline
from .theme import SCHEMA, ChartLook, config, has_chinese

_QUIET = {"tooltip": None, "aria": False}


def recall_spec(report: Mapping[str, Any], look: ChartLook | None = None) -> dict[str, Any] | None:
    """A row for each needle, in the text's order, one for the mean and one for all; None without such trials."""
    look = look or ChartLook()
    rows = [row for row in records(report.get("recall")) if number(row.get("context_length"))]
    mean, whole = word("mean_recall", look.lang), word("all_found", look.lang)
    labels = axis_labels(sorted({int(row["context_length"]) for row in rows}))
    values: list[dict[str, Any]] = []
    names: list[str] = []
    most = 0
    for row in rows:
        name = subset_label(subset_name({"name": row.get("subset")}), look.lang)
        count = number(row.get("needle_count"))
        if count is not None and len({one.get("needle_count") for one in rows}) > 1:
            name = f"{name}, {count:.0f}"
        names.append(name)
        shares = [(str(i + 1), number(one)) for i, one in enumerate(row.get("needles") or ())]
        most = max(most, len(shares))
        for needle, share in [*shares, (mean, number(row.get("score"))), (whole, number(row.get("all_found")))]:
            if share is not None:
                values.append(
                    {
                        "subset": name,
                        "x": labels[int(row["context_length"])],
                        "y": needle,
                        "score": share,
                        "shown": percent(share),
                        "says": short_share(share),
                        "ink": ink(colour(share, look.scale)),
                        "trials": str(row.get("n") or "–"),
                    }
                )
    if not values:
        return None
    subsets = list(dict.fromkeys(names))
    down = [*(str(i + 1) for i in range(most)), mean, whole]
    wide = max(26, min(64, (560 if len(subsets) == 1 else 300) // len(labels)))
    x = {
        "field": "x",
        "type": "ordinal",
        "scale": {"domain": list(labels.values())},
        "axis": {"title": word("length", look.lang), "labelAngle": 0, "labelOverlap": True, "domain": False},
    }
    y = {
        "field": "y",
        "type": "ordinal",
        "scale": {"domain": down},
        "axis": {"title": word("needle_order", look.lang), "domain": False},
    }
    shade = {"title": word("recall", look.lang), "values": [0, 0.5, 1], "format": ".2~f", "gradientLength": 100}
    tips = [("x", "length"), ("y", "needle"), ("shown", "recall"), ("trials", "trials")]
    squares = {
        "mark": {"type": "rect", "style": "square"},
        "encoding": {
            "color": {"field": "score", "type": "quantitative", "scale": colour_scale(look.scale), "legend": shade},
            "tooltip": [{"field": field, "type": "nominal", "title": word(key, look.lang)} for field, key in tips],
        },
    }
    numbers = {
        "mark": {"type": "text", "fontSize": 10.5, **_QUIET},
        "encoding": {"text": {"field": "says"}, "color": {"field": "ink", "type": "nominal", "scale": None}},
    }
    title = heading(report, "recall_by_length", look)
    chart: dict[str, Any] = {
        "width": wide * len(labels),
        "height": 24 * len(down),
        "encoding": {"x": x, "y": y},
        "layer": [squares, numbers],
        "resolve": {"scale": {"color": "independent"}},
    }
    head: dict[str, Any] = {
        "$schema": SCHEMA,
        "title": headline(title, 560, look.lang),
        "data": {"values": values},
        "config": config(look.theme, chinese=look.lang == "zh" or has_chinese(title + "".join(subsets))),
    }
    if len(subsets) == 1:
        return {**head, **chart}
    facet = {"field": "subset", "type": "nominal", "sort": subsets, "title": None}
    return {**head, "facet": {"column": facet}, "spec": chart}
