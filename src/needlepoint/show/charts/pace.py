"""Seconds and tokens by context length, where they were measured. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ..facts import number, record, records, subset_name
from ..labels import subset_label, word
from ..words import length_label, short_number
from .axes import length_axis
from .curves import HEIGHT, WIDTH, heading
from .text import headline
from .theme import SCHEMA, ChartLook, config, has_chinese, series_colours

Spec = dict[str, Any]
_KINDS = ("prompt", "cached", "prefilled", "completion")
_QUIET = {"tooltip": None, "aria": False}


def latency_spec(report: Mapping[str, Any], look: ChartLook | None = None) -> Spec | None:
    """Seconds to the first token and to the whole answer: medians with their spread; None where nothing was timed."""
    look = look or ChartLook()
    values = []
    for name, row in _rows(report, look):
        for key, what in (("first_token_seconds", "first_token"), ("seconds", "total_time")):
            told = record(row.get(key))
            middle, low, high = (number(told.get(end)) for end in ("median", "p10", "p90"))
            if middle is not None:
                shown = f"{middle:.3g} s" + ("" if low is None or high is None else f" ({low:.3g} – {high:.3g})")
                values.append(
                    {
                        **_place(row, name),
                        "kind": word(what, look.lang),
                        "value": middle,
                        "low": low,
                        "high": high,
                        "shown": shown,
                    }
                )
    title = heading(report, "latency_by_length", look)
    y = {"type": "quantitative", "axis": {"title": word("seconds", look.lang), "domain": False, "tickCount": 6}}
    return _chart(values, y, word("median_spread", look.lang), title, look)


def tokens_spec(report: Mapping[str, Any], look: ChartLook | None = None) -> Spec | None:
    """Tokens a trial by what they were: read, from the cache, prefilled, written; None where nothing was counted."""
    look = look or ChartLook()
    values = []
    for name, row in _rows(report, look):
        told = record(row.get("tokens"))
        for kind in _KINDS:
            mean = number(told.get(kind))
            if mean is not None:
                shown = short_number(mean)
                values.append(
                    {**_place(row, name), "kind": word(f"tokens_{kind}", look.lang), "value": mean, "shown": shown}
                )
    title = heading(report, "tokens_by_length", look)
    ticks = [0, 1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000]
    most = max((row["value"] for row in values), default=0)
    top = next((tick for tick in ticks if tick >= most), most)
    y = {
        "type": "quantitative",
        "scale": {"type": "symlog", "constant": 1, "domain": [0, top], "nice": False},
        "axis": {
            "title": word("tokens", look.lang),
            "values": [tick for tick in ticks if tick <= top],
            "labelExpr": f"({json.dumps({str(tick): short_number(tick) for tick in ticks})})[datum.value]",
            "domain": False,
        },
    }
    return _chart(values, y, None, title, look)


def _rows(report: Mapping[str, Any], look: ChartLook) -> list[tuple[str, Mapping[str, Any]]]:
    found = [row for row in records(report.get("pace")) if number(row.get("context_length"))]
    return [(subset_label(subset_name({"name": row.get("subset")}), look.lang), row) for row in found]


def _place(row: Mapping[str, Any], name: str) -> Spec:
    length = int(number(row.get("context_length")) or 0)
    return {"subset": name, "place": length, "at": length_label(length)}


def _chart(values: Sequence[Spec], y: Mapping[str, Any], note: str | None, title: str, look: ChartLook) -> Spec | None:
    """Lines by kind, subsets beside each other."""
    if not values:
        return None
    subsets = list(dict.fromkeys(row["subset"] for row in values))
    kinds = list(dict.fromkeys(row["kind"] for row in values))
    width = WIDTH if len(subsets) == 1 else max(220, 640 // len(subsets))
    lengths = sorted({row["place"] for row in values})
    scale, axis = length_axis(lengths, width, word("length", look.lang))
    colour = {
        "field": "kind",
        "type": "nominal",
        "scale": {"domain": kinds, "range": list(series_colours(look.theme))[: len(kinds)]},
        "legend": {"title": None, "symbolOpacity": 1},
    }
    if len(kinds) > 1:
        colour["legend"] = {"title": None, "symbolOpacity": 1, "orient": "top", "offset": 6}
    tips = [
        {"field": "at", "type": "nominal", "title": word("length", look.lang)},
        {"field": "kind", "type": "nominal", "title": " "},
        {"field": "shown", "type": "nominal", "title": y["axis"]["title"]},
    ]
    layers: list[Spec] = []
    if any(row.get("low") is not None for row in values):
        band = {"y": {**y, "field": "low"}, "y2": {"field": "high"}, "color": colour}
        layers.append({"mark": {"type": "area", "opacity": 0.16, **_QUIET}, "encoding": band})
    middle = {"y": {**y, "field": "value"}, "color": colour}
    layers.append({"mark": {"type": "line", "strokeWidth": 2, **_QUIET}, "encoding": middle})
    points = {"type": "point", "filled": True, "size": 42, "opacity": 1}
    layers.append({"mark": points, "encoding": {**middle, "tooltip": tips}})
    x = {"field": "place", "type": "quantitative", "scale": scale, "axis": axis}
    chart: Spec = {"width": width, "height": HEIGHT, "encoding": {"x": x}, "layer": layers}
    said = [note] if note else []
    head: Spec = {
        "$schema": SCHEMA,
        "title": headline(title, WIDTH + 40, look.lang, said),
        "data": {"values": list(values)},
        "config": config(look.theme, chinese=look.lang == "zh" or has_chinese(title + "".join(subsets))),
    }
    if len(subsets) == 1:
        return {**head, **chart}
    facet = {"field": "subset", "type": "nominal", "sort": subsets, "title": None}
    return {**head, "facet": {"column": facet}, "spec": chart}
