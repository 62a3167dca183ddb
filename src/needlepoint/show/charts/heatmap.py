"""The heatmap: context length across, needle depth down, each cell in the colour of its score. Pure.

Invalid cells are hatched and have no colour, cells that nobody asked have nothing at all. A symbol's path is made for
the cell's size in pixels, so a spec has a fixed size; whoever wants it larger scales the picture.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ..colours import ANCHORS, Scale, colour, ink
from ..facts import Square, records, run_name, squares, subset_name
from ..labels import Lang, subset_label, word
from ..sentence import effective_length, result_clauses
from ..words import depth_label, in_order, percent, percent_whole
from . import hatch
from .axes import axis_labels, thinned
from .text import fitted, headline
from .theme import SCHEMA, ChartLook, config, has_chinese

Missing = dict[str, Counter[str]]
"""What a heatmap shows that is no score, by the word for it, with the outcomes that it stands for."""

_WIDE, _HIGH = 620, 330
_CELL_WIDE, _CELL_HIGH = (14, 92), (11, 44)
_TITLE_WIDE = 430
_NUMBERS_FROM = (19, 11)
_ONLY = ("all", "default")
"""Names of a subset that is the only one: they say nothing."""


def heatmap_spec(report: Mapping[str, Any], subset: str, look: ChartLook | None = None) -> dict[str, Any]:
    """The Vega-Lite spec of one subset's heatmap. Cells carry `context_length` and `depth_percent`, for clicks."""
    look = look or ChartLook()
    row = next((one for one in records(report.get("subsets")) if str(one.get("name") or "all") == subset), {})
    name = subset_name(row)
    told = {**row, "search": report.get("search")}
    found = squares(row)
    grid = Grid(found)
    title = heading(report, name, look.lang, look.title)
    view, missing = layers(grid, row, look)
    mark = effective_layers(grid, row, look.lang)
    room = max(grid.width + 90, _TITLE_WIDE)
    head = {**headline(title, room, look.lang, result_clauses(told, look.lang)), "offset": 22 if mark else 12}
    view[0]["encoding"]["color"]["legend"] = legend(word("score", look.lang), grid.height)
    return {
        "$schema": SCHEMA,
        "title": head,
        "width": grid.width,
        "height": grid.height,
        "encoding": grid.encoding(look.lang),
        "layer": [*view, *mark, *note_layers(grid, fitted(remarks(missing, look.lang), room, 10.5, joined="  ·  "))],
        "resolve": {"scale": {"color": "independent", "stroke": "independent"}},
        "config": config(look.theme, chinese=look.lang == "zh" or has_chinese(title + name)),
    }


def heading(report: Mapping[str, Any], subset: str, lang: Lang, title: str | None = None) -> str:
    """`Needle in a Haystack · gpt-4 · english`, with the layout where it isn't the usual one, or `title · english`."""
    parts = [word("haystack", lang), run_name(report)] if title is None else [title]
    return " · ".join(parts if subset in _ONLY else [*parts, subset_label(subset, lang)])


class Grid:
    """The squares of a heatmap with their labels and sizes in pixels."""

    def __init__(
        self,
        found: Sequence[Square],
        *,
        wide: int = _WIDE,
        high: int = _HIGH,
        lengths: Sequence[int] = (),
        depths: Sequence[float] = (),
    ) -> None:
        """`lengths` and `depths` are places that the axes have besides those of the squares."""
        self.squares = found
        self.lengths = sorted({*lengths, *(one.length for one in found)})
        self.depths = sorted({*depths, *(one.depth for one in found)})
        self.x = axis_labels(self.lengths)
        self.y = dict(zip(self.depths, _depth_labels(self.depths), strict=True))
        columns, rows = max(1, len(self.lengths)), max(1, len(self.depths))
        self.cell_wide = min(max(wide / columns, _CELL_WIDE[0]), _CELL_WIDE[1]) // 1
        self.cell_high = min(max(high / rows, _CELL_HIGH[0]), _CELL_HIGH[1], self.cell_wide * 1.2) // 1
        self.width, self.height = self.cell_wide * columns, self.cell_high * rows

    def encoding(self, lang: Lang, *, titles: bool = True) -> dict[str, Any]:
        """Both axes, depth 0 at the top."""
        across, down = [*self.x.values()], [*self.y.values()]
        x = {
            "values": thinned(across, self.cell_wide, 6.6, 7),
            "labelAngle": 0,
            "labelOverlap": False,
            "labelFlush": False,
            "title": word("length", lang) if titles else None,
        }
        y = {
            "values": down if self.cell_high >= 12 else thinned(["88"] * len(down), self.cell_high, 6.5, 0, names=down),
            "labelOverlap": False,
            "title": word("depth", lang) if titles else None,
        }
        return {
            "x": {"field": "x", "type": "ordinal", "scale": {"domain": across, "padding": 0}, "axis": x},
            "y": {"field": "y", "type": "ordinal", "scale": {"domain": down, "padding": 0}, "axis": y},
        }

    def place(self, one: Square) -> dict[str, Any]:
        """What a mark's datum needs to stand in its cell."""
        depth = int(one.depth) if one.depth.is_integer() else one.depth
        return {"x": self.x[one.length], "y": self.y[one.depth], "context_length": one.length, "depth_percent": depth}


def colour_scale(scale: Scale) -> dict[str, Any]:
    """The scale of `colours`, as Vega mixes it: the same anchors, linearly."""
    anchors = ANCHORS[scale]
    return {
        "domain": [i / (len(anchors) - 1) for i in range(len(anchors))],
        "range": list(anchors),
        "clamp": True,
        "interpolate": "rgb",
    }


def legend(title: str, height: float) -> dict[str, Any]:
    """The bar of colours from 0 to 1."""
    return {
        "title": title,
        "values": [0, 0.25, 0.5, 0.75, 1],
        "format": ".2~f",
        "gradientLength": max(80, min(200, height)),
        "gradientThickness": 13,
    }


def layers(grid: Grid, row: Mapping[str, Any], look: ChartLook) -> tuple[list[dict[str, Any]], Missing]:
    """The squares, their hatches and numbers; and what has to be said of them below."""
    scored = [one for one in grid.squares if one.score is not None]
    broken = [one for one in grid.squares if one.is_invalid]
    partly = [one for one in scored if one.lost]
    style = "square" if min(grid.cell_wide, grid.cell_high) >= 9 else "cell"
    tips = tooltip(look.lang, any(one.ends for one in scored))
    size = {"width": grid.cell_wide, "height": grid.cell_high}
    found: list[dict[str, Any]] = [
        {
            "data": {"values": [{**grid.place(one), **_facts(one, look.lang), "score": one.score} for one in scored]},
            "mark": {"type": "rect", "style": style},
            "encoding": {
                "color": {"field": "score", "type": "quantitative", "scale": colour_scale(look.scale)},
                "tooltip": tips,
                "description": {"field": "says"},
            },
        }
    ]
    if broken:
        values = {"values": [{**grid.place(one), **_facts(one, look.lang)} for one in broken]}
        found.append(
            {
                "data": values,
                "mark": {"type": "rect", "style": "broken"},
                "encoding": {"tooltip": tooltip(look.lang, False), "description": {"field": "says"}},
            }
        )
        found.append(_symbols(values, hatch.stripes(**size), {"style": "hatch"}))
    if partly:
        values = {"values": [{**grid.place(one), "ink": _ink(one, look.scale)} for one in partly]}
        layer = _symbols(values, hatch.corner(**size), {"style": "corner"})
        layer["encoding"] = {"stroke": {"field": "ink", "type": "nominal", "scale": None}}
        found.append(layer)
    if look.numbers and grid.cell_wide >= _NUMBERS_FROM[0] and grid.cell_high >= _NUMBERS_FROM[1]:
        found.append(_numbers(grid, scored, look.scale))
    missing: Missing = {}
    if broken:
        missing["hatched"] = sum((Counter(one.lost) for one in broken), Counter())
    if partly:
        missing["hatched_corner"] = Counter()
    asked = {(one.length, one.depth) for one in grid.squares if one.score is not None or one.is_invalid}
    if len(asked) < len(grid.lengths) * len(grid.depths):
        missing["blank"] = Counter()
    return found, missing


def remarks(missing: Missing, lang: Lang) -> list[str]:
    """What hatches and blanks on a heatmap mean, as far as it has them."""
    said = []
    for key, lost in missing.items():
        which = ", ".join(f"{n:,} {word(name, lang)}" for name, n in in_order(lost))
        said.append(word(key, lang) + (f" ({which})" if which else ""))
    return said


def tooltip(lang: Lang, ends: bool) -> list[dict[str, Any]]:
    """What is told of a cell: where it is, its score, its interval, how many trials, what came of them."""
    rows = [("x", "length"), ("y", "depth"), ("shown", "score"), ("trials", "trials"), ("came", "outcomes")]
    told = [{"field": field, "type": "nominal", "title": word(key, lang)} for field, key in rows]
    if ends:
        told.insert(3, {"field": "ends", "type": "nominal", "title": word("interval", lang, level=0.95)})
    return told


def _facts(one: Square, lang: Lang) -> dict[str, Any]:
    came = ", ".join(f"{n:,} {word(name, lang)}" for name, n in in_order(one.outcomes or one.lost)) or "–"
    trials = "–" if one.n is None else f"{one.n:,}"
    if one.n is not None and one.valid is not None and one.valid != one.n:
        trials = f"{one.n:,} ({word('valid', lang).lower()}: {one.valid:,})"
    ends = "–" if one.ends is None else f"{percent(one.ends[0])} – {percent(one.ends[1])}"
    shown = percent(one.score)
    return {
        "shown": shown,
        "ends": ends,
        "trials": trials,
        "came": came,
        "says": f"{one.length:,}, {depth_label(one.depth)}: {shown} ({came})",
    }


def _symbols(values: Mapping[str, Any], path: str, style: Mapping[str, Any]) -> dict[str, Any]:
    mark = {"type": "point", "shape": path, "size": hatch.SYMBOL_SIZE, "tooltip": None, "aria": False, **style}
    return {"data": values, "mark": mark}


def _numbers(grid: Grid, scored: Sequence[Square], scale: Scale) -> dict[str, Any]:
    values = [{**grid.place(one), "says": short_share(one.score or 0.0), "ink": _ink(one, scale)} for one in scored]
    size = min(13.0, grid.cell_wide / 2.9, grid.cell_high * 0.62)
    return {
        "data": {"values": values},
        "mark": {"type": "text", "fontSize": round(size, 1), "tooltip": None, "aria": False},
        "encoding": {
            "text": {"field": "says"},
            "color": {"field": "ink", "type": "nominal", "scale": None},
        },
    }


def short_share(score: float) -> str:
    """`1`, `0`, `.97`: whole hundredths; the ends only where it is so."""
    return f"{score:.0f}" if score <= 0 or score >= 1 else f".{percent_whole(score):02d}"


def _ink(one: Square, scale: Scale) -> str:
    return ink(colour(one.score or 0.0, scale))


def effective_layers(grid: Grid, row: Mapping[str, Any], lang: Lang) -> list[dict[str, Any]]:
    """A line behind the last length that still holds, with its name above the grid."""
    found = effective_length(row)
    if found is None:
        return []
    _, length, at_least = found
    within = [one for one in grid.lengths if length is not None and one <= length]
    if not within:
        return []
    text = (
        f"{word('effective', lang)} {'≥ ' if at_least else ''}{grid.x[within[-1]] if within[-1] == length else length}"
    )
    before = len(within) * grid.cell_wide
    align = "right" if before > grid.width / 2 else "left"
    datum = {"values": [{"x": grid.x[within[-1]], "says": text}]}
    across = {"field": "x", "type": "ordinal", "bandPosition": 1}
    rule = {"x": across, "y": {"value": -5}, "y2": {"value": grid.height}}
    label = {"x": across, "y": {"value": -12}, "text": {"field": "says"}}
    quiet = {"tooltip": None, "aria": False}
    return [
        {"data": datum, "mark": {"type": "rule", "style": "effective", **quiet}, "encoding": rule},
        {
            "data": datum,
            "mark": {"type": "text", "style": "effective-label", "align": align, **quiet},
            "encoding": label,
        },
    ]


def note_layers(grid: Grid, notes: Sequence[str], *, below: float = 56) -> list[dict[str, Any]]:
    """Small lines below the axis."""
    values = [{"says": text, "at": grid.height + below + 15 * i} for i, text in enumerate(notes)]
    quiet = {"tooltip": None, "aria": False}
    return [
        {
            "data": {"values": [one]},
            "mark": {"type": "text", "style": "note", **quiet},
            "encoding": {"x": {"value": 0}, "y": {"value": one["at"]}, "text": {"field": "says"}},
        }
        for one in values
    ]


def _depth_labels(depths: Sequence[float]) -> list[str]:
    """Short, and no two alike."""
    short = [depth_label(depth) for depth in depths]
    return short if len(set(short)) == len(short) else [f"{depth:g}%" for depth in depths]
