"""What a run's numbers mean, in sentences: how far the context holds, whether the middle is worse, what to beware of.

Input is a report as `report.json` has it, with any part absent; what is absent is not spoken of.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..learn.effective import EffectiveLength, Reach
from ..learn.limit import read_limit
from ..learn.results import effective_result, position_result
from ..plan.grid import format_length
from .limit import search_words
from .words import cut, depth_label, one_line, percent

_LONGEST_NAME = 24


def findings(report: Mapping[str, Any]) -> Iterator[str]:
    """Effective length and position bias, by subset where there are several, and notes on the intervals."""
    if (limit := read_limit(report.get("search"))) is not None:
        yield from search_words(limit)
    found = report.get("effective_length")
    if isinstance(found, int) and not isinstance(found, bool):
        yield f"Effective length: {format_length(found)}"
    subsets = [subset for subset in report.get("subsets") or () if isinstance(subset, Mapping)]
    parts = [(_name(subset), subset) for subset in subsets] if len(subsets) > 1 else [("", report)]
    lines = [(name, effective) for name, part in parts if (effective := effective_result(part.get("effective_length")))]
    if lines:
        bar = _bar(lines[0][1]) if len({effective.threshold for _, effective in lines}) == 1 else ""
        yield f"Effective length{bar}:" + (f" {effective_words(lines[0][1])}" if len(lines) == 1 else "")
        if len(lines) > 1:
            for name, effective in lines:
                yield f"  {name}{'' if bar else _bar(effective)}: {effective_words(effective)}"
        for name, effective in lines:
            if effective.mean.stopped_by is not None:
                yield f"  {f'{name} ends there' if name else 'It ends there'}: {one_line(effective.mean.reason)}"
    if len(subsets) > 1:
        parts.append(("overall", report))
    verdicts = [(name, test.verdict) for name, part in parts if (test := position_result(part.get("position")))]
    if len(verdicts) == 1:
        yield f"Position: {one_line(verdicts[0][1])}"
    elif verdicts:
        yield "Position:"
        yield from (f"  {name}: {one_line(verdict)}" for name, verdict in verdicts)
    if (weakest := _weakest_depth(report)) is not None:
        yield f"Weakest depth: {weakest}"
    for note in report.get("notes") or ():
        yield f"Note: {one_line(str(note))}"


def _weakest_depth(report: Mapping[str, Any]) -> str | None:
    """`65.0% at 55.6% of the text (95%: 45.7–80.4%)`; None where all depths are alike."""
    position = position_result(report.get("position"))
    known = [row for row in position.curve if row.score is not None] if position is not None else []
    if len({row.score for row in known}) < 2:
        return None
    row = min(known, key=lambda row: row.score or 0.0)
    ends = (
        "" if row.interval is None else f" (95%: {percent(row.interval.low).rstrip('%')}–{percent(row.interval.high)})"
    )
    return f"{percent(row.score)} at {depth_label(row.depth_percent or 0.0)} of the text{ends}"


def effective_words(effective: EffectiveLength) -> str:
    """`≥ 32k (95%: 16k–32k, certified 8k); at the worst depth 8k`."""
    mean = effective.mean
    says = []
    if mean.interval is not None:
        low, high = (format_length(end) if end else "0" for end in mean.interval)
        says.append(f"95%: {low}" if low == high else f"95%: {low}–{high}")
    says.append(f"certified {format_length(mean.certified)}" if mean.certified else "nothing certified")
    return f"{reach_words(mean)} ({', '.join(says)}); at the worst depth {reach_words(effective.worst_depth)}"


def reach_words(reach: Reach) -> str:
    """`≥ 32k`, `8k`, or `none` where not even the shortest length holds."""
    if reach.length is None:
        return "none"
    return f"{'≥ ' if reach.at_least else ''}{format_length(reach.length)}"


def _bar(effective: EffectiveLength) -> str:
    preset = f" ({effective.preset})" if effective.preset else ""
    return f" at {effective.threshold * 100:.4g}%{preset}"


def _name(subset: Mapping[str, Any]) -> str:
    return cut(one_line(str(subset.get("name") or "all")), _LONGEST_NAME)
