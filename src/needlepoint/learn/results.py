"""What a report says, as values: for people who look at a run from Python.

Parsed from `report.json`, of this program or imported, with any part absent: what is not known is None.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from .effective import PRESETS, EffectiveLength, Preset, Reach
from .intervals import Interval, Over


@dataclass(frozen=True, slots=True, kw_only=True)
class RowResult:
    """The score of some trials, with its interval and how much of what was asked it rests on.

    `interval_over` is `texts` where the interval speaks of other texts, too, `trials` where only of more trials on the
    same ones. `context_length` and `depth_percent` say which row, column or cell it is.
    """

    context_length: int | None = None
    depth_percent: float | None = None
    score: float | None
    interval: Interval | None
    interval_over: Over | None
    n: int | None
    valid: int | None
    coverage: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionResult:
    """Whether the middle is worse than the edges; `p_value` is one-sided. `curve` is accuracy by depth."""

    middle: float
    edges: float
    difference: float
    interval: Interval | None
    p_value: float
    verdict: str
    over: Over | None = None
    texts: int | None = None
    curve: tuple[RowResult, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SubsetResult:
    """One text's numbers: as a whole, by length, by depth, by cell."""

    name: str
    overall: RowResult
    lengths: tuple[RowResult, ...]
    depths: tuple[RowResult, ...]
    cells: tuple[RowResult, ...]
    effective_length: EffectiveLength | None
    position: PositionResult | None


def row_result(row: Mapping[str, Any]) -> RowResult:
    return RowResult(
        context_length=row.get("context_length"),
        depth_percent=row.get("depth_percent"),
        score=row.get("score"),
        interval=_interval(row.get("interval")),
        interval_over=_over(row.get("interval_over")),
        n=row.get("n"),
        valid=row.get("valid"),
        coverage=row.get("coverage"),
    )


def subset_result(subset: Mapping[str, Any]) -> SubsetResult:
    def rows(name: str) -> tuple[RowResult, ...]:
        return tuple(row_result(row) for row in subset.get(name) or ())

    return SubsetResult(
        name=str(subset.get("name") or "all"),
        overall=row_result(subset),
        lengths=rows("lengths"),
        depths=rows("depths"),
        cells=rows("cells"),
        effective_length=effective_result(subset.get("effective_length")),
        position=position_result(subset.get("position")),
    )


def effective_result(found: object) -> EffectiveLength | None:
    """The effective length that a report (or one subset of it) has."""
    if not isinstance(found, Mapping) or not isinstance(found.get("threshold"), int | float):
        return None
    preset = found.get("preset")
    return EffectiveLength(
        threshold=float(found["threshold"]),
        preset=cast(Preset, preset) if preset in PRESETS else None,
        mean=_reach(found.get("mean")),
        worst_depth=_reach(found.get("worst_depth")),
    )


def position_result(found: object) -> PositionResult | None:
    """The test of position bias that a report (or one subset of it) has."""
    test = found.get("test") if isinstance(found, Mapping) else None
    if not isinstance(found, Mapping) or not isinstance(test, Mapping):
        return None
    return PositionResult(
        middle=test["middle"],
        edges=test["edges"],
        difference=test["difference"],
        interval=_interval(test.get("interval")),
        p_value=test["p_value"],
        verdict=str(test.get("verdict") or ""),
        over=_over(test.get("over")),
        texts=test.get("texts"),
        curve=tuple(row_result(row) for row in found.get("curve") or ()),
    )


def _reach(found: object) -> Reach:
    reach: Mapping[str, Any] = found if isinstance(found, Mapping) else {}
    ends, stopped = reach.get("interval"), reach.get("stopped_by")
    return Reach(
        length=reach.get("length"),
        at_least=bool(reach.get("at_least")),
        interval=(ends[0], ends[1]) if isinstance(ends, list | tuple) and len(ends) == 2 else None,
        certified=reach.get("certified"),
        stopped_by=cast(Literal["score", "coverage"], stopped) if stopped in ("score", "coverage") else None,
        reason=str(reach.get("reason") or ""),
    )


def _over(found: Any) -> Over | None:
    return found if found in ("texts", "trials") else None


def _interval(found: object) -> Interval | None:
    if not isinstance(found, list | tuple) or len(found) != 2 or None in found:
        return None
    return Interval(float(found[0]), float(found[1]))
