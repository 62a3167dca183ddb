"""Several runs side by side: a small heatmap each on the same axes, and one curve with a line for each. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ..facts import by_length, name_for_people, number, records, run_name, squares, subset_name, subsets_of
from ..labels import subset_label, word
from ..sentence import result_clauses
from ..words import cut, length_label, percent
from .axes import length_axis
from .curves import WIDTH, curve_spec
from .heatmap import Grid, Missing, layers, legend, remarks
from .text import headline
from .theme import SCHEMA, ChartLook, config, has_chinese

Spec = dict[str, Any]
Runs = Mapping[str, Mapping[str, Any]]
"""Reports by the names that they are shown under."""
_EACH, _HIGH, _GAP = 640, 190, 34


def multiples_spec(runs: Runs, subset: str, look: ChartLook | None = None) -> Spec | None:
    """A small heatmap of one subset for each run; None where not one has a cell."""
    look = look or ChartLook()
    title = f"{look.title or word('haystack', look.lang)} · {subset_label(name_for_people(subset), look.lang)}"
    return panels_spec({name: _subset(report, subset) for name, report in runs.items()}, title, look)


def overview_spec(report: Mapping[str, Any], look: ChartLook | None = None) -> Spec | None:
    """All subsets of one run side by side; None where not one has a cell."""
    look = look or ChartLook()
    rows = {subset_label(subset_name(row), look.lang): row for row in subsets_of(report)}
    title = look.title or f"{word('haystack', look.lang)} · {run_name(report)}"
    return panels_spec(rows, title, look, said=result_clauses(report, look.lang))


def panels_spec(
    rows: Mapping[str, Mapping[str, Any]], title: str, look: ChartLook, *, said: Sequence[str] = ()
) -> Spec | None:
    """Small heatmaps of subsets' rows on the same axes, by the name above each; `said` goes below the title."""
    rows = {name: row for name, row in rows.items() if squares(row)}
    if not rows:
        return None
    lengths = sorted({one.length for row in rows.values() for one in squares(row)})
    depths = sorted({one.depth for row in rows.values() for one in squares(row)})
    columns = min(len(rows), 2 if len(rows) in (2, 4) else 3)
    views: list[Spec] = []
    missing: Missing = {}
    for i, (name, row) in enumerate(rows.items()):
        grid = Grid(squares(row), wide=_EACH // columns, high=_HIGH, lengths=lengths, depths=depths)
        view, lacking = layers(grid, row, look)
        for key, lost in lacking.items():
            missing.setdefault(key, Counter()).update(lost)
        last = i == min(columns, len(rows)) - 1
        view[0]["encoding"]["color"]["legend"] = legend(word("score", look.lang), grid.height) if last else None
        encoding = grid.encoding(look.lang)
        encoding["x"]["axis"]["title"] = word("length", look.lang) if i + columns >= len(rows) else None
        encoding["y"]["axis"]["title"] = word("depth", look.lang) if i % columns == 0 else None
        encoding["y"]["axis"]["labels"] = i % columns == 0
        views.append(
            {
                "title": {
                    "text": cut(name, max(12, int(grid.width / 8))),
                    "subtitle": word("mean_score", look.lang, score=percent(number(row.get("score")))),
                    "fontSize": 12.5,
                    "offset": 6,
                },
                "width": grid.width,
                "height": grid.height,
                "encoding": encoding,
                "layer": view,
                "resolve": {"scale": {"color": "independent", "stroke": "independent"}},
            }
        )
    return {
        "$schema": SCHEMA,
        "title": {**headline(title, _EACH, look.lang, [*said, *remarks(missing, look.lang)]), "offset": 18},
        "concat": views,
        "columns": columns,
        "spacing": {"row": _GAP, "column": 22},
        "config": config(look.theme, chinese=look.lang == "zh" or has_chinese(title + "".join(rows))),
    }


def accuracy_of_runs_spec(runs: Runs, subset: str, look: ChartLook | None = None) -> Spec | None:
    """Accuracy by context length on one subset, a line for each run; None where no length has a score."""
    look = look or ChartLook()
    found = {name: by_length(_subset(report, subset)) for name, report in runs.items()}
    lengths = sorted({one.length for line in found.values() for one in line if one.score is not None})
    if not lengths:
        return None
    scale, axis = length_axis(lengths, WIDTH, word("length", look.lang))
    x = {"field": "place", "type": "quantitative", "scale": scale, "axis": axis}
    rows = {name: [(float(one.length), length_label(one.length), one) for one in line] for name, line in found.items()}
    parts = [word("accuracy_by_length", look.lang), *([look.title] if look.title is not None else [])]
    title = " · ".join([*parts, subset_label(name_for_people(subset), look.lang)])
    return curve_spec({name: line for name, line in rows.items() if line}, x, look, title)


def _subset(report: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    return next((row for row in records(report.get("subsets")) if str(row.get("name") or "all") == name), {})
