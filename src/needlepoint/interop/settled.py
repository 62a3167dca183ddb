"""What only all the rows of a run together can tell: the scale of its scores, and whether depths are percent or shares.

Where they can mean more than one thing, nobody guesses: an error says which setting decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..errors import InputError
from ..score.imported import Scale
from . import needlehaystack
from .row import DepthUnit, Row

_USUAL: tuple[Scale, ...] = ((0.0, 1.0), (1.0, 10.0), (0.0, 10.0), (0.0, 100.0))


def settle(rows: Sequence[Row], *, scale: Scale | None, depth_unit: DepthUnit | None) -> list[Row]:
    """The rows with scale and unit. `scale` and `depth_unit` are the user's, and go before what the rows say."""
    if not rows:
        return []
    told = scale if scale is not None else _scale(rows)
    unit = depth_unit or _unit(rows)
    found = []
    for row in rows:
        depth, its_unit = row.depth, (row.depth_unit if depth_unit is None else depth_unit) or unit
        if its_unit == "fraction":
            if depth > 1:
                raise InputError(f"{row.where}: the depth {depth:g} is no share from 0 to 1. Leave out --depth-unit.")
            depth = round(depth * 100, 9)
        its_scale = scale or row.scale or told
        if row.raw is not None and its_scale is not None:
            _check(row, its_scale)
        found.append(replace(row, depth=depth, depth_unit="percent", scale=its_scale))
    return found


def _check(row: Row, scale: Scale) -> None:
    low, high = scale
    if row.raw is not None and row.scale is None and not low <= row.raw <= high:
        raise InputError(
            f"{row.where}: the score {row.raw:g} is outside the scale from {low:g} to {high:g}. Give the ends of its "
            "scale with --scale LOW:HIGH."
        )


def _scale(rows: Sequence[Row]) -> Scale | None:
    """The scale of the rows that don't bring their own."""
    open_rows = [row for row in rows if row.scale is None and row.raw is not None]
    scores = [row.raw for row in open_rows if row.raw is not None]
    if not scores:
        return None
    low, high = min(scores), max(scores)
    judged = open_rows[0].tool == needlehaystack.TOOL
    if judged and low >= 1 and high <= 10:
        return needlehaystack.RUBRIC
    fitting = [usual for usual in _USUAL if usual[0] <= low and high <= usual[1]]
    if not fitting or (low == high == 1):
        what = "all scores are 1" if fitting else f"scores from {low:g} to {high:g} are on no usual scale"
        more = ", which is the best of 0 to 1 and the worst of 1 to 10" if fitting else ""
        raise InputError(f"{_name(rows)}: {what}{more}. Give the ends of their scale with --scale LOW:HIGH.")
    return fitting[0]


def _unit(rows: Sequence[Row]) -> DepthUnit:
    """Percent, unless no depth is above 1 and some are between 0 and 1."""
    depths = {row.depth for row in rows if row.depth_unit is None}
    if not depths or max(depths) > 1 or depths == {0}:
        return "percent"
    if any(0 < depth < 1 for depth in depths):
        return "fraction"
    raise InputError(
        f"{_name(rows)}: the only depths are 0 and 1, which may be percent or shares. Say which with --depth-unit "
        "percent or fraction."
    )


def _name(rows: Sequence[Row]) -> str:
    return rows[0].where.partition(", ")[0]
