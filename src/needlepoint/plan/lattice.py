"""The layout `lattice`: single-needle prompts whose needles stand at places that many lengths have in common.

A needle may stand a little off its depth. Where the intervals that this leaves to several lengths overlap, one place
serves them all, and their prompts share all text up to the shorter one's end, needle included. Chosen greedily, long
contexts first: what a new place costs is the text from there to the end of the longest prompt that uses it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..text.boundaries import sentence_ends
from ..types import Cell
from .exact import MAX_DEPTH_ERROR, Spot, bytes_of, nearest, tolerance
from .haystack import Haystack

_SPARE_TOKENS = 3
"""Joints make a text a token or two longer or shorter than planned; a needle stays so far inside its tolerance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """Where the needle of one cell may stand: at `low..high` tokens, best at `target`, in a text of `length`."""

    low: float
    high: float
    target: float
    length: int


def reach(length: int, depth_percent: float, room: float, share: float = MAX_DEPTH_ERROR) -> Reach:
    """The reach of a cell with `room` tokens of text, off by at most `share` of the length (24 tokens at least)."""
    target = depth_percent / 100 * room
    allowed = tolerance(length, share) - _SPARE_TOKENS
    low = max(0.0, target - allowed)
    return Reach(low=low, high=max(low, min(target + allowed, room - _SPARE_TOKENS)), target=target, length=length)


def stab(reaches: Sequence[Reach], cuts: Sequence[int]) -> list[int | None]:
    """For each reach one of `cuts` (ascending tokens) inside it, few and cheap in all; None where it holds none."""
    chosen: list[int | None] = [None] * len(reaches)
    places: list[int] = []
    waiting = sorted(range(len(reaches)), key=lambda item: (-reaches[item].length, reaches[item].low))
    open_ = set(waiting)
    for item in waiting:
        mine = reaches[item]
        open_.discard(item)
        used = places[bisect_left(places, mine.low) : bisect_right(places, mine.high)]
        if used:  # by a prompt that is as long at least: this one costs nothing but its own end
            chosen[item] = min(used, key=lambda place: abs(place - mine.target))
            continue
        if (last := _at_most(cuts, mine.high)) is None or last < mine.low:
            continue
        others = [reaches[other] for other in open_]
        others = [other for other in others if other.low <= mine.high and other.high >= mine.low]
        ends = (_at_most(cuts, min(mine.high, other.high)) for other in others)
        best = max(
            {last, *(end for end in ends if end is not None and end >= mine.low)},
            key=lambda place: (_saved(others, place), place),
        )
        chosen[item] = best
        places.insert(bisect_left(places, best), best)
    return chosen


def _saved(others: Sequence[Reach], place: int) -> float:
    """Tokens that other prompts need not have of their own if one at `place` serves them."""
    return place + sum(other.length - place for other in others if other.low <= place <= other.high)


def _at_most(cuts: Sequence[int], highest: float) -> int | None:
    found = bisect_right(cuts, highest)
    return cuts[found - 1] if found else None


def spots(hay: Haystack, rooms: Mapping[Cell, int], share: float = MAX_DEPTH_ERROR) -> dict[Cell, Spot]:
    """Where the needle of each cell stands; `rooms` are the cells with the tokens of text that each has room for."""
    cells = list(rooms)
    reaches = [reach(cell.context_length, cell.depth_percent, rooms[cell], share) for cell in cells]
    ends = sentence_cuts(hay, max((one.high for one in reaches), default=0))
    found: dict[Cell, Spot] = {}
    for cell, mine, place in zip(cells, reaches, stab(reaches, list(ends)), strict=True):
        if place is not None:
            found[cell] = Spot(ends[place], "sentence")
        else:
            found[cell] = nearest(hay, (mine.low + mine.high) / 2, int(mine.high), (mine.high - mine.low) / 2)
    return found


def sentence_cuts(hay: Haystack, highest: float) -> dict[int, int]:
    """The sentence ends of a text up to `highest` tokens: tokens before each → its byte, ascending."""
    text, base = hay.window(0, hay.start_of(min(len(hay), int(highest) + 64)))
    found = {0: 0}
    for byte in bytes_of(text, base, sentence_ends):
        found.setdefault(hay.tokens_before(byte), byte)
    return found
