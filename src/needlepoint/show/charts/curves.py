"""Curves: accuracy by length and by depth, with bands where intervals are known. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ..facts import Square, by_depth, by_length, number, record, run_name, subset_name, subsets_of
from ..labels import Lang, subset_label, word
from ..sentence import effective_length
from ..words import depth_label, length_label, percent
from .axes import length_axis
from .text import headline
from .theme import SCHEMA, ChartLook, config, has_chinese, series_colours

Spec = dict[str, Any]
WIDTH, HEIGHT = 560, 260
_SHAPES = ("circle", "square", "diamond", "triangle-up", "cross", "triangle-down")
_QUIET = {"tooltip": None, "aria": False}


def accuracy_spec(report: Mapping[str, Any], look: ChartLook | None = None) -> Spec | None:
    """Accuracy by context length, a line for each subset; None where no length has a score."""
    look = look or ChartLook()
    found = {_name(subset, look.lang): by_length(subset) for subset in subsets_of(report)}
    lengths = sorted({one.length for rows in found.values() for one in rows if one.score is not None})
    if not lengths:
        return None
    scale, axis = length_axis(lengths, WIDTH, word("length", look.lang))
    x = {"field": "place", "type": "quantitative", "scale": scale, "axis": axis}
    rows = {name: [(float(one.length), length_label(one.length), one) for one in line] for name, line in found.items()}
    marks = _effective_marks(report, look.lang, lengths, logarithmic=scale.get("type") == "log")
    return curve_spec(
        rows,
        x,
        look,
        heading(report, "accuracy_by_length", look),
        level=number(report.get("interval_level")),
        marks=marks,
    )


def position_spec(report: Mapping[str, Any], look: ChartLook | None = None) -> Spec | None:
    """Accuracy by needle depth, a line for each subset; None where fewer than two depths have a score."""
    look = look or ChartLook()
    found = {_name(subset, look.lang): by_depth(subset) for subset in subsets_of(report)}
    depths = sorted({one.depth for rows in found.values() for one in rows if one.score is not None})
    if len(depths) < 2:
        return None
    axis = {"labelExpr": "datum.label + '%'", "grid": False, "title": word("depth", look.lang), "tickCount": 10}
    scale = {"domain": [min(depths), max(depths)], "nice": False, "padding": 14}
    x = {"field": "place", "type": "quantitative", "scale": scale, "axis": axis}
    rows = {name: [(one.depth, depth_label(one.depth), one) for one in line] for name, line in found.items()}
    title, level = heading(report, "accuracy_by_depth", look), number(report.get("interval_level"))
    return curve_spec(rows, x, look, title, level=level)


def curve_spec(
    rows: Mapping[str, Sequence[tuple[float, str, Square]]],
    x: Mapping[str, Any],
    look: ChartLook,
    title: str,
    *,
    level: float | None = None,
    marks: Sequence[Spec] = (),
) -> Spec:
    """Lines of scores from 0 to 1 over `x`, by name; squares come with their place and its label."""
    values = [_datum(name, *item, look.lang) for name, line in rows.items() for item in line]
    unmeasured = list(dict.fromkeys(at for line in rows.values() for _, at, one in line if one.is_invalid))
    said = [word("none_at", look.lang, places=", ".join(unmeasured))] if unmeasured else []
    y = {
        "type": "quantitative",
        "scale": {"domain": [0, 1]},
        "axis": {"format": ".0%", "tickCount": 5, "title": word("accuracy", look.lang), "domain": False},
    }
    return lines_spec(list(rows), values, x, y, look, title, level=level, marks=marks, said=said)


def lines_spec(
    names: Sequence[str],
    values: Sequence[Spec],
    x: Mapping[str, Any],
    y: Mapping[str, Any],
    look: ChartLook,
    title: str,
    *,
    level: float | None = None,
    marks: Sequence[Spec] = (),
    said: Sequence[str] = (),
) -> Spec:
    """Lines of `value`, by `series`, with bands from `low` to `high` where there are some."""
    banded = [row for row in values if row["low"] is not None]
    legend = {"title": None, "orient": "top", "symbolOpacity": 1, "offset": 6} if len(names) > 1 else None
    colour, shape = (
        {
            "field": "series",
            "type": "nominal",
            "scale": {"domain": names, "range": (list(some) * len(names))[: len(names)]},
            "legend": legend,
        }
        for some in (series_colours(look.theme), _SHAPES)
    )
    ends = {"field": "ends", "type": "nominal", "title": word("interval", look.lang, level=level or 0.95)}
    tips = [
        *([{"field": "series", "type": "nominal", "title": word("subset", look.lang)}] if len(names) > 1 else []),
        {"field": "at", "type": "nominal", "title": x["axis"]["title"]},
        {"field": "shown", "type": "nominal", "title": y["axis"]["title"]},
        *([ends] if banded else []),
        {"field": "trials", "type": "nominal", "title": word("trials", look.lang)},
    ]
    layers: list[Spec] = []
    if banded:
        said = [word("band", look.lang, level=level or 0.95), *said]
        limits = {"y": {**y, "field": "low"}, "y2": {"field": "high"}, "color": colour}
        layers.append({"mark": {"type": "area", "opacity": 0.16, **_QUIET}, "encoding": limits})
        if len(names) == 1 or len(values) <= 2 * len(names):
            layers.append({"mark": {"type": "rule", "opacity": 0.55, **_QUIET}, "encoding": limits})
    middle = {"y": {**y, "field": "value"}, "color": colour}
    layers.append({"mark": {"type": "line", "strokeWidth": 2, **_QUIET}, "encoding": middle})
    points = {"type": "point", "filled": True, "size": 42, "opacity": 1}
    layers.append({"mark": points, "encoding": {**middle, "shape": shape, "tooltip": tips}})
    return {
        "$schema": SCHEMA,
        "title": headline(title, WIDTH + 40, look.lang, said),
        "width": WIDTH,
        "height": HEIGHT,
        "data": {"values": list(values)},
        "encoding": {"x": dict(x)},
        "layer": [*marks, *layers],
        "config": config(look.theme, chinese=look.lang == "zh" or has_chinese(title + "".join(names))),
    }


def heading(report: Mapping[str, Any], key: str, look: ChartLook) -> str:
    """`Accuracy by context length · gpt-4`, or with the user's own title behind it."""
    return f"{word(key, look.lang)} · {look.title if look.title is not None else run_name(report)}"


def _datum(name: str, place: float, at: str, one: Square, lang: Lang) -> Spec:
    trials = "–" if one.n is None else f"{one.n:,}"
    if one.n is not None and one.valid is not None and one.valid != one.n:
        trials = f"{one.n:,} ({word('valid', lang).lower()}: {one.valid:,})"
    return {
        "series": name,
        "place": place,
        "at": at,
        "value": one.score,
        "low": None if one.ends is None or one.score is None else max(0.0, one.ends[0]),
        "high": None if one.ends is None or one.score is None else min(1.0, one.ends[1]),
        "shown": percent(one.score),
        "ends": "–" if one.ends is None else f"{percent(one.ends[0])} – {percent(one.ends[1])}",
        "trials": trials,
    }


def _effective_marks(report: Mapping[str, Any], lang: Lang, lengths: Sequence[int], *, logarithmic: bool) -> list[Spec]:
    """The threshold as a level line, and the effective length as an upright one."""
    subsets = subsets_of(report)
    row = report if record(report.get("effective_length")) else subsets[0] if len(subsets) == 1 else {}
    found = effective_length(row)
    if found is None:
        return []
    threshold, length, at_least = found
    level = {"data": {"values": [{"level": threshold, "says": f"{percent(threshold).replace('.0%', '%')}"}]}}
    y = {"field": "level", "type": "quantitative", "scale": {"domain": [0, 1]}}
    across = {"x": {"value": 0}, "x2": {"value": WIDTH}, "y": y}
    marks: list[Spec] = [
        {
            **level,
            "mark": {"type": "rule", "style": "level", **_QUIET},
            "encoding": across,
        },
        {
            **level,
            "mark": {"type": "text", "style": "level-label", "align": "left", "dx": 5, **_QUIET},
            "encoding": {"x": {"value": WIDTH}, "y": y, "text": {"field": "says"}},
        },
    ]
    if length is not None:
        says = f"{word('effective', lang)} {'≥ ' if at_least else ''}{length_label(length)}"
        upright = {"data": {"values": [{"place": length, "says": says}]}}
        x = {"field": "place", "type": "quantitative"}
        place = math.log if logarithmic else float
        low, high = place(min(lengths)), place(max(lengths))
        on_the_left = high > low and (place(max(length, min(lengths))) - low) / (high - low) < 0.4
        side = {"align": "left", "dx": 6} if on_the_left else {"align": "right", "dx": -6}
        label = {"type": "text", "style": "effective-label", **side, **_QUIET}
        marks += [
            {**upright, "mark": {"type": "rule", "style": "effective", **_QUIET}, "encoding": {"x": x}},
            {**upright, "mark": label, "encoding": {"x": x, "y": {"value": HEIGHT - 12}, "text": {"field": "says"}}},
        ]
    return marks


def _name(subset: Mapping[str, Any], lang: Lang) -> str:
    return subset_label(subset_name(subset), lang)
