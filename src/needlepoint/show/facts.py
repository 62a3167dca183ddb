"""What a `report.json` says, read with care: imported ones lack parts, and what is not known is None, never 0. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..types import VALID_OUTCOMES
from .words import cut, one_line

LONGEST_NAME = 48


def number(value: object) -> float | None:
    """A finite number, or None."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) else None


def records(value: object) -> list[Mapping[str, Any]]:
    """The objects of a list; none where it is no list."""
    return [row for row in value if isinstance(row, Mapping)] if isinstance(value, list | tuple) else []


def record(value: object) -> Mapping[str, Any]:
    """An object; an empty one where it is none."""
    return value if isinstance(value, Mapping) else {}


def interval(value: object) -> tuple[float, float] | None:
    """The ends of an interval, written as a pair or as {low, high}."""
    ends = [value.get("low"), value.get("high")] if isinstance(value, Mapping) else value
    if not isinstance(ends, Sequence) or isinstance(ends, str) or len(ends) != 2:
        return None
    low, high = number(ends[0]), number(ends[1])
    return None if low is None or high is None else (low, high)


def outcomes(value: object) -> dict[str, int]:
    """Outcomes that came at least once."""
    if not isinstance(value, Mapping):
        return {}
    return {str(name): n for name, n in value.items() if isinstance(n, int) and not isinstance(n, bool) and n > 0}


def subset_name(subset: Mapping[str, Any]) -> str:
    """For people: on one line, printable, not too long."""
    return name_for_people(subset.get("name") or "all")


def name_for_people(name: object) -> str:
    """Any name that came from outside, harmless and short enough for a title."""
    return cut(one_line(str(name)[:4_000]), LONGEST_NAME)


def model_name(report: Mapping[str, Any]) -> str:
    return name_for_people(report.get("model") or "model")


def layout_of(report: Mapping[str, Any]) -> str | None:
    """The layout where it isn't the usual one: such numbers mean something else."""
    layout = name_for_people(report.get("layout") or "classic")
    return None if layout == "classic" else layout


def run_name(report: Mapping[str, Any]) -> str:
    """`gpt-4`, or `gpt-4 · woven`."""
    layout = layout_of(report)
    return model_name(report) if layout is None else f"{model_name(report)} · {layout}"


def subsets_of(report: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Subsets that have at least one cell to draw."""
    return [subset for subset in records(report.get("subsets")) if squares(subset)]


def coverage(row: Mapping[str, Any]) -> float | None:
    """The share of valid trials, as the row says it or from its counts."""
    told = number(row.get("coverage"))
    n, valid = number(row.get("n")), number(row.get("valid"))
    return told if told is not None else valid / n if n and valid is not None else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Square:
    """A row of a report with all that can be drawn of it. `lost` counts invalid outcomes."""

    length: int
    depth: float
    score: float | None
    ends: tuple[float, float] | None
    n: int | None
    valid: int | None
    lost: Mapping[str, int]
    outcomes: Mapping[str, int]

    @property
    def is_invalid(self) -> bool:
        """Asked, and not one answer is a measurement."""
        return self.score is None and (bool(self.lost) or bool(self.n))


def squares(subset: Mapping[str, Any]) -> list[Square]:
    """The cells of a subset that have a place; in no special order."""
    found = []
    for row in records(subset.get("cells")):
        length, depth = number(row.get("context_length")), number(row.get("depth_percent"))
        if length is not None and depth is not None:
            found.append(square(row, int(length), float(depth)))
    return found


def square(row: Mapping[str, Any], length: int = 0, depth: float = 0.0) -> Square:
    """One row, at a place."""
    n, valid = number(row.get("n")), number(row.get("valid"))
    told = outcomes(row.get("outcomes"))
    lost = {name: count for name, count in told.items() if name not in VALID_OUTCOMES}
    if not lost and n is not None and valid is not None and n > valid:
        lost = {"invalid": int(n - valid)}
    score = number(row.get("score"))
    return Square(
        length=length,
        depth=depth,
        score=None if score is None else min(max(score, 0.0), 1.0),
        ends=interval(row.get("interval")),
        n=None if n is None else int(n),
        valid=None if valid is None else int(valid),
        lost=lost,
        outcomes=told,
    )


def by_length(subset: Mapping[str, Any]) -> list[Square]:
    """A subset's lengths, shortest first: its own rows, else its cells added up (then without intervals)."""
    rows = [(number(row.get("context_length")), row) for row in records(subset.get("lengths"))]
    if told := sorted((int(length), i) for i, (length, _) in enumerate(rows) if length is not None):
        return [square(rows[i][1], length) for length, i in told]
    cells = squares(subset)
    return [_added([one for one in cells if one.length == length]) for length in sorted({one.length for one in cells})]


def by_depth(subset: Mapping[str, Any]) -> list[Square]:
    """A subset's depths, from the text's beginning; the position curve where there is one."""
    curve = records(record(subset.get("position")).get("curve")) or records(subset.get("depths"))
    rows = [(number(row.get("depth_percent")), row) for row in curve]
    if told := sorted((float(depth), i) for i, (depth, _) in enumerate(rows) if depth is not None):
        return [square(rows[i][1], 0, depth) for depth, i in told]
    cells = squares(subset)
    return [_added([one for one in cells if one.depth == depth]) for depth in sorted({one.depth for one in cells})]


def _added(cells: Sequence[Square]) -> Square:
    scored = [(one.score, one.valid or 1) for one in cells if one.score is not None]
    valid = sum(weight for _, weight in scored)
    counts = [one.n for one in cells]
    lost: Counter[str] = Counter()
    came: Counter[str] = Counter()
    for one in cells:
        lost.update(one.lost)
        came.update(one.outcomes)
    return Square(
        length=cells[0].length,
        depth=cells[0].depth,
        score=sum(score * weight for score, weight in scored) / valid if valid else None,
        ends=None,
        n=None if None in counts else sum(n for n in counts if n is not None),
        valid=None if any(one.valid is None for one in cells) else valid,
        lost=lost,
        outcomes=came,
    )


def outcomes_by_length(subset: Mapping[str, Any]) -> dict[int, Counter[str]]:
    """What came at each length, from the length's own row or from its cells."""
    found: dict[int, Counter[str]] = {}
    for cell in squares(subset):
        found.setdefault(cell.length, Counter()).update(cell.outcomes)
    for row in records(subset.get("lengths")):
        length, told = number(row.get("context_length")), outcomes(row.get("outcomes"))
        if length is not None and told:
            found[int(length)] = Counter(told)
    return dict(sorted(found.items()))
