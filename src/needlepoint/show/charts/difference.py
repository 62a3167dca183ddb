"""Two runs against each other, cell by cell: where one finds what the other misses. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ..colours import Scale, ink
from ..facts import Square, model_name, record, records, squares, subset_name
from ..labels import subset_label, word
from ..words import percent
from . import hatch
from .heatmap import Grid, note_layers
from .text import fitted, headline
from .theme import SCHEMA, ChartLook, config, has_chinese

_ENDS: Mapping[Scale, tuple[str, str, str]] = {
    "default": ("#d9822b", "#f3f2ee", "#2c4fa3"),
    "classic": ("#d64545", "#f3f2ee", "#2e9e5b"),
}
_QUIET = {"tooltip": None, "aria": False}


def difference_spec(
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    subset: str,
    look: ChartLook | None = None,
    *,
    names: tuple[str, str] | None = None,
    notable: Collection[tuple[int, float]] = (),
) -> dict[str, Any] | None:
    """`after` minus `before` in each cell of one subset that both measured; None where there is no such cell.

    Cells that only one of them measured are hatched. `notable` cells, by length and depth, are outlined: for whoever
    tested which differences are more than chance.
    """
    look = look or ChartLook()
    old, new = ({(one.length, one.depth): one for one in squares(_subset(run, subset))} for run in (before, after))
    both = {place for place in old.keys() & new.keys() if old[place].score is not None and new[place].score is not None}
    if not both:
        return None
    a, b = names or (model_name(before), model_name(after))
    grid = Grid([new.get(place) or old[place] for place in sorted(old.keys() | new.keys())])
    values = [_datum(grid, old[place], new[place], look) for place in sorted(both)]
    single = [one for one in grid.squares if (one.length, one.depth) not in both]
    layers: list[dict[str, Any]] = [_squares(values, (a, b), grid, look)]
    notes = []
    if single:
        path = hatch.stripes(grid.cell_wide, grid.cell_high)
        mark = {"type": "point", "shape": path, "size": hatch.SYMBOL_SIZE, "style": "hatch", **_QUIET}
        places = {"values": [grid.place(one) for one in single]}
        layers += [
            {"data": places, "mark": {"type": "rect", "style": "broken", **_QUIET}},
            {"data": places, "mark": mark},
        ]
        notes.append(word("only_one", look.lang))
    outlined = [grid.place(new[place]) for place in sorted(both & set(notable))]
    if outlined:
        layers.append({"data": {"values": outlined}, "mark": {"type": "rect", "style": "outline", **_QUIET}})
        notes.append(word("outlined", look.lang))
    if look.numbers and grid.cell_wide >= 26:
        layers.append(_numbers(values, grid))
    name = subset_name(_subset(after, subset))
    versus = look.title if look.title is not None else word("difference_title", look.lang, a=a, b=b)
    title = f"{versus} · {subset_label(name, look.lang)}"
    changes = [row["difference"] for row in values]
    said = [
        word("mean_difference", look.lang, points=_signed(sum(changes) / len(changes))),
        f"{word('better', look.lang, name=b)}: {sum(change > 0 for change in changes):,}",
        f"{word('better', look.lang, name=a)}: {sum(change < 0 for change in changes):,}",
        word("same_cells", look.lang, n=f"{sum(change == 0 for change in changes):,}"),
    ]
    room = max(grid.width + 90, 430)
    return {
        "$schema": SCHEMA,
        "title": headline(title, room, look.lang, said),
        "width": grid.width,
        "height": grid.height,
        "encoding": grid.encoding(look.lang),
        "layer": [*layers, *note_layers(grid, fitted(notes, room, 10.5, joined="  ·  "))],
        "resolve": {"scale": {"color": "independent"}},
        "config": config(look.theme, chinese=look.lang == "zh" or has_chinese(title + name)),
    }


def _subset(run: Mapping[str, Any], subset: str) -> Mapping[str, Any]:
    return next((one for one in records(run.get("subsets")) if str(one.get("name") or "all") == subset), record(None))


def _datum(grid: Grid, old: Square, new: Square, look: ChartLook) -> dict[str, Any]:
    difference = round((new.score or 0.0) - (old.score or 0.0), 6)
    worse, even, better = _ENDS[look.scale]
    shown = mixed(even, better if difference > 0 else worse, abs(difference))
    return {
        **grid.place(new),
        "difference": difference,
        "shown": _signed(difference),
        "before": percent(old.score),
        "after": percent(new.score),
        "says": "" if difference == 0 else f"{difference:+.2f}".replace("0.", ".").replace("-", "−"),
        "ink": ink(shown),
    }


def _squares(values: list[dict[str, Any]], names: tuple[str, str], grid: Grid, look: ChartLook) -> dict[str, Any]:
    told = [
        ("x", word("length", look.lang)),
        ("y", word("depth", look.lang)),
        ("before", names[0]),
        ("after", names[1]),
    ]
    told.append(("shown", word("difference", look.lang)))
    shade = {
        "title": word("difference", look.lang),
        "values": [-1, -0.5, 0, 0.5, 1],
        "labelExpr": "datum.value ? format(datum.value, '+.1~f') : '0'",
        "gradientLength": max(80, min(200, grid.height)),
        "gradientThickness": 13,
    }
    scale = {"domain": [-1, 0, 1], "range": list(_ENDS[look.scale]), "clamp": True, "interpolate": "rgb"}
    return {
        "data": {"values": values},
        "mark": {"type": "rect", "style": "square"},
        "encoding": {
            "color": {"field": "difference", "type": "quantitative", "scale": scale, "legend": shade},
            "tooltip": [{"field": field, "type": "nominal", "title": title} for field, title in told],
        },
    }


def _numbers(values: list[dict[str, Any]], grid: Grid) -> dict[str, Any]:
    size = round(min(12.0, grid.cell_wide / 3.2, grid.cell_high * 0.62), 1)
    return {
        "data": {"values": values},
        "mark": {"type": "text", "fontSize": size, **_QUIET},
        "encoding": {"text": {"field": "says"}, "color": {"field": "ink", "type": "nominal", "scale": None}},
    }


def mixed(start: str, end: str, share: float) -> str:
    """A colour between two."""
    pairs = ((int(start[i : i + 2], 16), int(end[i : i + 2], 16)) for i in (1, 3, 5))
    return "#" + "".join(f"{round(low + (high - low) * share):02x}" for low, high in pairs)


def _signed(share: float) -> str:
    """In points of a hundred: `+3.1`, `−12`, `0`."""
    points = round(share * 100, 1)
    return "0" if points == 0 else f"{points:+.1f}".removesuffix(".0").replace("-", "−")
