"""Prompts of exactly the asked number of tokens, whole chat included.

The needle stands at the sentence end nearest to its depth; the text is cut at the word where the count comes out, and
a missing token or two are made up by plain one-token words. Every count is one of the final text's own tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from ..errors import LengthError
from ..text.boundaries import character_ends, clause_ends, sentence_ends, word_ends
from ..types import Boundary, Cell, Needle, Placement
from .haystack import Haystack
from .prompt import Frame, Prompt
from .splice import Edit, Run, Splicer

MAX_DEPTH_ERROR = 0.015
MIN_DEPTH_ERROR_TOKENS = 24
_REACH_TOKENS = 48
_TRIED_CUTS = 12
_FILLER_WORDS = (" and", " so", " on", " again", " and", " then", " more")
_FILLER_CHARACTERS = ("等", "如", "此", "者", "的", "也", "了")
_FILLER_ANY = (" a", " the", ".", "a", "-", "1", " .", "!")
_MUCH_FILLER = 3
_HELD_BACK = (0, 0, 3, 8, 16, 24, 48)

_Finder = Callable[[str], Iterator[int]]
_BOUNDARIES: tuple[tuple[Boundary, _Finder], ...] = (("sentence", sentence_ends), ("clause", clause_ends))


@dataclass(frozen=True, slots=True)
class Spot:
    """A place for a needle: in front of this byte of the haystack."""

    byte: int
    boundary: Boundary


@dataclass(frozen=True, slots=True)
class Fitted:
    """Where the text of a prompt ends, what fills it up, and the prompt's tokens."""

    end: int
    filler: str
    runs: list[Run]
    text_tokens: int
    filler_tokens: int

    @property
    def hay_tokens(self) -> int:
        return max(1, self.text_tokens + self.filler_tokens)


def tolerance(length: int, share: float = MAX_DEPTH_ERROR) -> float:
    """How many tokens a needle may stand away from its depth before a looser boundary is taken."""
    return max(share * length, MIN_DEPTH_ERROR_TOKENS)


def fit(
    splicer: Splicer,
    frame: Frame,
    *,
    cell: Cell,
    replicate: int,
    needles: Sequence[Needle],
    question: str,
    at: Spot | None = None,
) -> Prompt:
    """The prompt of `cell.context_length` tokens. Raises LengthError where it cannot be built.

    A single needle stands `at` a spot that was chosen for it, where there is room for it; else by its depth.
    """
    hay = splicer.haystack
    length = cell.context_length
    overhead = splicer.count(frame.before) + splicer.count(frame.after)
    needle_tokens = sum(splicer.count(" " + needle.text) for needle in needles)
    room = length - overhead - needle_tokens
    if room < 1:
        raise LengthError(
            f"A prompt of {length} tokens has no room for the text: the chat and question take {overhead} tokens and "
            f"the needles {needle_tokens}. About {overhead + needle_tokens + 32} tokens is the shortest that works."
        )
    depths = spread(cell.depth_percent, len(needles))
    found: Fitted | None = None
    if at is not None:
        spots = [at]
        found = fill(splicer, frame, needles, spots, length, room)
    for held_back in _HELD_BACK if found is None else ():
        spots = [nearest(hay, depth / 100 * room, room - held_back, tolerance(length)) for depth in depths]
        found = fill(splicer, frame, needles, spots, length, room)
        if found is None:
            continue
        strays = [
            abs(hay.tokens_before(s.byte) - d / 100 * found.hay_tokens) for s, d in zip(spots, depths, strict=True)
        ]
        if max(strays) <= tolerance(length) or room == found.hay_tokens:
            break
        room = found.hay_tokens  # now that it is known to the token, place the needles again
    if found is None:
        raise LengthError(
            f"No text of exactly {length} tokens could be put together at depth {cell.depth_percent:g} % with the "
            f"tokenizer {hay.tokenizer.name!r}. Use another length, or --length-mode evalscope."
        )
    placements = tuple(
        Placement(
            needle=number,
            depth_percent=round(depth, 3),
            achieved_depth_percent=round(100 * hay.tokens_before(spot.byte) / found.hay_tokens, 3),
            tokens_before=hay.tokens_before(spot.byte),
            boundary=spot.boundary,
        )
        for number, (depth, spot) in enumerate(zip(depths, spots, strict=True))
    )
    return Prompt(
        cell=cell,
        replicate=replicate,
        length_mode="exact",
        needles=tuple(needles),
        placements=placements,
        question=question,
        frame=frame,
        haystack=hay,
        edits=tuple(context_edits(hay, needles, spots, found.end, found.filler)),
        runs=tuple(found.runs),
        n_tokens=sum(map(len, found.runs)),
        hay_tokens=found.hay_tokens,
        filler_tokens=found.filler_tokens,
    )


def spread(depth_percent: float, count: int) -> list[float]:
    """Depths of several needles: the first at its own, the others at equal steps behind it."""
    step = (100 - depth_percent) / count
    return [depth_percent + number * step for number in range(count)]


def whole_edits(frame: Frame, context_edits: Sequence[Edit]) -> list[Edit]:
    """The edits that turn a haystack into the rendered prompt, from those that turn it into the context."""
    *inside, last = context_edits
    edits = [Edit(start=0, end=0, text=frame.before), *inside]
    edits.append(Edit(start=last.start, end=None, text=last.text + frame.after))
    return edits


def fill(
    splicer: Splicer,
    frame: Frame,
    needles: Sequence[Needle],
    spots: Sequence[Spot],
    length: int,
    room: int,
) -> Fitted | None:
    """Where the text ends, what fills it up, and the prompt's tokens; None where the needles stand in the way."""
    hay = splicer.haystack
    lowest = max(spot.byte for spot in spots)

    def runs_with(end: int, filler: str) -> list[Run]:
        return splicer.splice(whole_edits(frame, context_edits(hay, needles, spots, end, filler)))

    token = room
    for _ in range(4):  # the guess `room` is off by what joins add or save
        end = _character_end(hay, token)
        if end < lowest:
            return None
        difference = length - sum(map(len, runs_with(end, "")))
        if difference == 0:
            break
        token = max(1, min(len(hay), token + difference))
    best: Fitted | None = None
    for finder in (word_ends, character_ends):
        for end in islice(_ends(hay, token, finder), _TRIED_CUTS):
            if end < lowest:
                break
            runs = runs_with(end, "")
            missing = length - sum(map(len, runs))
            if missing < 0:
                continue
            filled = ("", runs) if missing == 0 else _fill(runs_with, hay, end, runs, missing)
            if filled is None:
                continue
            if best is None or missing < best.filler_tokens:
                best = Fitted(end, *filled, hay.tokens_before(end), missing)
            break  # the next cuts are shorter still
        if best is not None and best.filler_tokens <= _MUCH_FILLER:
            break
    return best


def _fill(
    runs_with: Callable[[int, str], list[Run]], hay: Haystack, end: int, runs: list[Run], missing: int
) -> tuple[str, list[Run]] | None:
    """Words that add exactly `missing` tokens behind `end`."""
    before, _ = hay.window(end - 4, end)
    native = _FILLER_CHARACTERS if before and before[-1] > "\u2e7f" else _FILLER_WORDS
    start = sum(map(len, runs))
    filler = ""
    added = 0
    straight = "".join((native * (missing // len(native) + 1))[:missing])
    found: list[Run] = runs_with(end, straight)
    if sum(map(len, found)) == start + missing:
        return straight, found
    position = 0
    while added < missing:
        for word in (*native[position % len(native) :], *native, *_FILLER_ANY):
            found = runs_with(end, filler + word)
            if sum(map(len, found)) == start + added + 1:
                filler += word
                added += 1
                position += 1
                break
        else:
            return None
    return filler, found


def context_edits(hay: Haystack, needles: Sequence[Needle], spots: Sequence[Spot], end: int, filler: str) -> list[Edit]:
    edits: list[Edit] = []
    for needle, spot in zip(needles, spots, strict=True):
        before, _ = hay.window(spot.byte - 8, spot.byte)
        behind = hay.data[spot.byte : min(end, spot.byte + 8)].decode(errors="ignore") or filler
        text = needle.text
        previous = edits[-1].text if edits and edits[-1].start == spot.byte else before
        if previous and not previous[-1].isspace() and not text[0].isspace() and not _is_wide(previous[-1], text[0]):
            text = " " + text
        if behind and not behind[0].isspace() and not text[-1].isspace() and not _is_wide(text[-1], behind[0]):
            text += " "
        edits.append(Edit(start=spot.byte, end=spot.byte, text=text))
    edits.append(Edit(start=end, end=None, text=filler))
    return edits


def _is_wide(before: str, after: str) -> bool:
    """Whether text of a script without spaces meets: then none is put between."""
    return before > "\u2e7f" and after > "\u2e7f"


def _character_end(hay: Haystack, token: int) -> int:
    """The end of `token` tokens, moved back to a whole character."""
    token = max(0, min(len(hay), token))
    while token > 0 and not hay.is_character_start(hay.start_of(token)):
        token -= 1
    return hay.start_of(token)


def _ends(hay: Haystack, token: int, finder: _Finder) -> Iterator[int]:
    """Places to end the text at, from about `token` tokens down: those of `finder` where a token ends."""
    high = hay.start_of(min(len(hay), token))
    text, base = hay.window(hay.start_of(max(0, token - _REACH_TOKENS)), high + 16)
    places = {place for place in bytes_of(text, base, finder) if place <= high and hay.is_joint(place)}
    yield from sorted(places, reverse=True)


def nearest(hay: Haystack, target: float, highest: int, allowed: float) -> Spot:
    """The sentence end nearest to `target` tokens; where that is farther than `allowed`, a clause or word end."""
    limit = hay.start_of(max(0, min(len(hay), highest)))
    middle = hay.start_of(round(min(target, highest)))
    low_token, high_token = int(target - allowed), int(target + allowed) + 1
    lowest = hay.start_of(max(0, low_token))
    topmost = min(limit, hay.start_of(min(len(hay), high_token)))
    for boundary, finder in _BOUNDARIES:
        radius = 320
        while True:
            low, high = max(lowest, middle - radius), min(topmost, middle + radius)
            at_start = boundary == "sentence"
            place = _closest(hay, finder, low, high, target, allowed, start_counts=at_start)
            if place is not None:
                # Equal bytes are not equal tokens: look as far as this place's distance reaches on the other side, too.
                off = abs(hay.tokens_before(place) - target)
                low = max(lowest, min(low, hay.start_of(max(0, int(target - off)))))
                high = min(topmost, max(high, hay.start_of(min(len(hay), int(target + off) + 1))))
                nearer = _closest(hay, finder, low, high, target, allowed, start_counts=at_start)
                return Spot(place if nearer is None else nearer, boundary)
            if low <= lowest and high >= topmost:
                break
            radius *= 6
    for finder in (word_ends, character_ends):
        place = _closest(hay, finder, middle - 320, min(limit, middle + 320), target, allowed, start_counts=False)
        if place is not None:
            return Spot(place, "word")
    return Spot(_character_end(hay, round(min(target, highest))), "word")


def _closest(
    hay: Haystack, finder: _Finder, low: int, high: int, target: float, allowed: float, *, start_counts: bool
) -> int | None:
    text, base = hay.window(low - 64, high + 16)  # context for abbreviations and what follows a full stop
    places = [place for place in bytes_of(text, base, finder) if low <= place <= high]
    if start_counts and low <= 0:
        places.append(0)
    best: tuple[float, int] | None = None
    for place in places:
        distance = abs(hay.tokens_before(place) - target)
        if distance <= allowed and (best is None or distance < best[0]):
            best = (distance, place)
    return None if best is None else best[1]


def bytes_of(text: str, base: int, finder: _Finder) -> Iterator[int]:
    """The places that `finder` names in `text`, as bytes of the haystack."""
    byte, last = base, 0
    for index in sorted(finder(text)):
        byte += len(text[last:index].encode())
        last = index
        yield byte
