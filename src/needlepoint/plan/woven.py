"""The layout `woven`: the needles of a whole grid in one stream of text, whose beginnings are all the contexts.

A context of length L is the stream's first L tokens (less what stands around them), and each cell asks for its own
needle by its key. Cells whose needles may stand at one place share one. No context consists of needles: they are at
most `MAX_NEEDLE_SHARE` of it, and cells that would make it more go into further streams, which short contexts do.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from ..errors import LengthError
from ..types import Cell, Needle, Placement
from .exact import Spot, context_edits, fill, nearest
from .keyed import KeyedFact
from .lattice import Reach, reach
from .prompt import Frame, Prompt
from .splice import Splicer

MAX_NEEDLE_SHARE = 0.15
_PLANNED_PART = 0.8
"""Of the tolerance, what planning uses: questions and needles are of unlike lengths, and cuts are not everywhere."""
_FEW = 5
_END_TOKENS = 12
"""A needle stands whole in a context only so far before its end: the text is cut at a word there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A place in the stream, in tokens of it, and the cells that ask for the needle there."""

    place: float
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """Facts in the order of the text, where each stands, and which of them a cell asks for."""

    facts: tuple[KeyedFact, ...]
    spots: tuple[Spot, ...]
    asked: Mapping[Cell, int]


def size_of(needle: Needle, splicer: Splicer) -> int:
    """Tokens that a needle adds to a text: with a space in front where its script has spaces."""
    return splicer.count(needle.text if needle.text[0] > "\u2e7f" else " " + needle.text)


def bearable(shortest: int) -> int:
    """The longest needle of which a few still fit into the shortest context: longer ones mean more streams."""
    return round(shortest * MAX_NEEDLE_SHARE / _FEW)


def sites(rooms: Mapping[Cell, int], needle_tokens: int) -> list[list[Site]]:
    """The places of each stream, ascending. `rooms` are the cells with the tokens of their contexts, less a needle's.

    Raises LengthError where a context is too short to hold one needle.
    """
    waiting = sorted(rooms, key=lambda cell: (-cell.context_length, cell.depth_percent))
    found: list[list[Site]] = []
    while waiting:
        stream, left = _one_stream(waiting, rooms, needle_tokens)
        if not stream:
            cell = waiting[-1]
            raise LengthError(
                f"A context of {cell.context_length} tokens cannot hold a needle of {needle_tokens} in at most "
                f"{MAX_NEEDLE_SHARE:.0%} of it: woven contexts begin at about "
                f"{round(needle_tokens / MAX_NEEDLE_SHARE + cell.context_length - rooms[cell] + 10, -1):,.0f} tokens."
            )
        found.append(stream)
        waiting = left
    return found


def _one_stream(
    waiting: Sequence[Cell], rooms: Mapping[Cell, int], needle_tokens: int
) -> tuple[list[Site], list[Cell]]:
    """As many cells as one stream can have, the longest first, and those that are left."""
    places: list[float] = []
    users: dict[float, list[Cell]] = {}
    asked: list[int] = []
    reaches = {cell: _reach(cell, rooms[cell], _PLANNED_PART) for cell in waiting}
    left: list[Cell] = []
    for cell in waiting:
        mine = reaches[cell]
        near = [place for place in places if mine.low <= place <= mine.high]
        place = min(near, key=lambda one: abs(one - mine.target), default=None)
        new = place is None
        if place is None:
            place = _place(mine, [reaches[other] for other in waiting if other not in left], places, needle_tokens)
        standing = [*places, place] if new and place is not None else places
        if place is None or any(_dense(standing, room, needle_tokens) for room in (*asked, rooms[cell])):
            left.append(cell)
            continue
        if new:
            insort(places, place)
        users.setdefault(place, []).append(cell)
        if rooms[cell] not in asked:
            asked.append(rooms[cell])
    return [Site(place=place, cells=tuple(users[place])) for place in places], left


def _reach(cell: Cell, room: int, part: float = 1.0) -> Reach:
    """Where a cell's needle may stand: `part` of the tolerance, and whole inside the context."""
    mine = reach(cell.context_length, cell.depth_percent, room)
    low, high = (mine.target + part * (end - mine.target) for end in (mine.low, mine.high))
    high = max(0.0, min(high, room - _END_TOKENS))
    return Reach(low=min(low, high), high=high, target=min(mine.target, high), length=mine.length)


def _place(mine: Reach, others: Sequence[Reach], places: Sequence[float], needle_tokens: int) -> float | None:
    """The place in `mine` that serves most of the others, two needles apart from the next; None where there is none."""
    ends = {mine.target, *(one.high for one in others if mine.low <= one.high <= mine.high)}
    ends |= {one.low for one in others if mine.low <= one.low <= mine.high}
    free = [end for end in ends if all(abs(end - place) >= 2 * needle_tokens for place in places)]
    return max(
        free,
        key=lambda end: (sum(one.low <= end <= one.high for one in others), -abs(end - mine.target)),
        default=None,
    )


def _dense(places: Sequence[float], room: int, needle_tokens: int) -> bool:
    """Whether needles are more than their share of a context with `room` tokens beside the one asked for."""
    return sum(place < room for place in places) * needle_tokens > MAX_NEEDLE_SHARE * (room + needle_tokens)


def weave(
    splicer: Splicer,
    found: Sequence[Site],
    facts: Sequence[KeyedFact],
    room_of: Callable[[Cell, KeyedFact], int],
    rng: Random,
) -> Stream:
    """A stream with these facts at these sites, paired anew by each `rng`.

    `room_of` counts a cell's context, less its own needle, now that its question is known.
    """
    facts = list(facts)
    rng.shuffle(facts)
    spots: list[Spot] = []
    before = 0
    for site, fact in zip(found, facts, strict=True):
        reaches = [_reach(cell, room_of(cell, fact)) for cell in site.cells]
        low, high = max(one.low for one in reaches), min(one.high for one in reaches)
        low, high = min(low, high), max(low, high)
        middle = max(0.0, (low + high) / 2 - before)
        spot = nearest(splicer.haystack, middle, max(0, int(high) - before), max(1.0, (high - low) / 2))
        if spots and spot.byte < spots[-1].byte:
            spot = spots[-1]
        spots.append(spot)
        before += size_of(fact.needle, splicer)
    asked = {cell: number for number, site in enumerate(found) for cell in site.cells}
    return Stream(facts=tuple(facts), spots=tuple(spots), asked=asked)


def draw(cell: Cell, stream: Stream, splicer: Splicer, frame: Frame, *, replicate: int) -> Prompt:
    """The prompt of one cell: the stream's beginning, and the question for the cell's own needle."""
    hay = splicer.haystack
    own = stream.asked[cell]
    length = cell.context_length
    room = length - splicer.count(frame.before) - splicer.count(frame.after)
    needles: list[Needle] = []
    spots: list[Spot] = []
    taken = 0
    for fact, spot in zip(stream.facts, stream.spots, strict=True):
        tokens = size_of(fact.needle, splicer)
        if len(needles) > own and hay.tokens_before(spot.byte) + taken + tokens > room - _END_TOKENS:
            break
        needles.append(fact.needle)
        spots.append(spot)
        taken += tokens
    found = fill(splicer, frame, needles, spots, length, room - taken)
    if found is None:
        raise LengthError(
            f"No woven text of exactly {length} tokens could be put together at depth {cell.depth_percent:g} % with "
            f"the tokenizer {hay.tokenizer.name!r}. Use another length."
        )
    before = hay.tokens_before(spots[own].byte)
    ahead = before + sum(size_of(needle, splicer) for needle in needles[:own])
    whole = found.hay_tokens + taken - size_of(needles[own], splicer)
    return Prompt(
        cell=cell,
        replicate=replicate,
        layout="woven",
        length_mode="exact",
        needles=(needles[own],),
        placements=(
            Placement(
                needle=0,
                depth_percent=round(cell.depth_percent, 3),
                achieved_depth_percent=round(100 * ahead / whole, 3),
                tokens_before=ahead,
                boundary=spots[own].boundary,
            ),
        ),
        question=stream.facts[own].question,
        frame=frame,
        haystack=hay,
        edits=tuple(context_edits(hay, needles, spots, found.end, found.filler)),
        runs=tuple(found.runs),
        n_tokens=sum(map(len, found.runs)),
        hay_tokens=found.hay_tokens,
        filler_tokens=found.filler_tokens,
    )
