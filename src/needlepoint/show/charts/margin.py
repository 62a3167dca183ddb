"""By how much the right value is likelier than the likeliest wrong one, by context length. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..facts import interval, number, record, records, subset_name
from ..labels import subset_label, word
from ..words import in_nats, length_label
from .axes import length_axis
from .curves import WIDTH, heading, lines_spec
from .theme import ChartLook

Spec = dict[str, Any]


def margin_spec(report: Mapping[str, Any], look: ChartLook | None = None) -> Spec | None:
    """Mean margins in nats with their intervals, a line for each subset; None where none were measured."""
    look = look or ChartLook()
    values = [
        _datum(subset_label(subset_name(subset), look.lang), row)
        for subset in records(record(report.get("margin")).get("subsets"))
        for row in records(subset.get("lengths"))
        if number(row.get("mean")) is not None and number(row.get("context_length"))
    ]
    if not values:
        return None
    scale, axis = length_axis(sorted({row["place"] for row in values}), WIDTH, word("length", look.lang))
    x = {"field": "place", "type": "quantitative", "scale": scale, "axis": axis}
    y = {
        "type": "quantitative",
        "scale": {"zero": True},
        "axis": {"tickCount": 6, "title": word("margin", look.lang), "domain": False},
    }
    return lines_spec(
        list(dict.fromkeys(row["series"] for row in values)),
        values,
        x,
        y,
        look,
        heading(report, "margin_by_length", look),
        level=number(report.get("interval_level")),
        said=[word("margin_zero", look.lang)],
    )


def _datum(name: str, row: Mapping[str, Any]) -> Spec:
    length, mean = int(number(row.get("context_length")) or 0), number(row.get("mean")) or 0.0
    ends, n = interval(row.get("interval")), number(row.get("n"))
    low, high = ends or (None, None)
    return {
        "series": name,
        "place": length,
        "at": length_label(length),
        "value": mean,
        "low": low,
        "high": high,
        "shown": in_nats(mean),
        "ends": "–" if ends is None else f"{in_nats(ends[0])} – {in_nats(ends[1])}",
        "trials": "–" if n is None else f"{n:,.0f}",
    }
