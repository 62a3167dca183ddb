"""A result in a notebook: the sentence, the heatmaps, a small table. Nothing in it runs. Pure but for the drawing."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from html import escape
from typing import Any

from . import charts
from .facts import coverage, interval, number, record, run_name, subset_name, subsets_of
from .sentence import result_sentence
from .visible import visible_line
from .words import percent

_CELL = "text-align:right;padding:2px 12px"


def notebook_html(report: Mapping[str, Any], folder: str, look: charts.ChartLook | None = None) -> str:
    """A fragment of HTML. Pictures are images, not inline SVG: nothing in them reaches the notebook."""
    parts = [
        f"<p><b>{escape(run_name(report))}</b>: {escape(result_sentence(report))}.</p>",
        *(_picture(name, spec) for name, spec in charts.heatmap_specs(report, look).items()),
        _table(report),
        f"<p><code>{escape(visible_line(folder))}</code></p>",
    ]
    return f"<div>{''.join(parts)}</div>"


def _picture(name: str, spec: charts.Spec) -> str:
    data = base64.b64encode(charts.svg(spec).encode(errors="replace")).decode()
    return f'<img alt="{escape(name, quote=True)}" src="data:image/svg+xml;base64,{data}" style="max-width:100%">'


def _table(report: Mapping[str, Any]) -> str:
    rows = [(subset_name(row), row) for row in subsets_of(report)]
    rows += [("overall", record(report.get("overall")))] if len(rows) != 1 else []
    heads = "".join(f"<th style='{_CELL}'>{head}</th>" for head in ("", "Score", "Interval", "Trials", "Coverage"))
    body = "".join(f"<tr>{''.join(f'<td style={_CELL!r}>{cell}</td>' for cell in _cells(*row))}</tr>" for row in rows)
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"


def _cells(name: str, row: Mapping[str, Any]) -> list[str]:
    ends, n = interval(row.get("interval")), number(row.get("n"))
    return [
        escape(name),
        percent(number(row.get("score"))),
        "–" if ends is None else f"{percent(ends[0])} – {percent(ends[1])}",
        "–" if n is None else f"{n:,.0f}",
        percent(coverage(row)),
    ]
