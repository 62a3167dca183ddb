"""The tokens of an edited text, without encoding it again.

A prompt is a haystack with a few edits: the head in front, needles inside, everything from some place on replaced by
the tail. Around each edit a short window is encoded anew; its tokens are joined to the haystack's own where both agree
on several tokens in a row. Where they don't agree yet, the window grows. For byte-pair vocabularies this is exact: a
place where both encodings have a token boundary is one that no merge has crossed, so each side stands by itself.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from ..types import Encoding
from .haystack import Haystack

_WINDOW_BYTES = 96
_AGREEING = 4
_REMEMBERED = 4_096


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """Replace the bytes `start..end` of the haystack by `text`; `end` None cuts off everything behind `start`."""

    start: int
    end: int | None
    text: str


@dataclass(frozen=True, slots=True)
class Run:
    """Tokens `start..end` of the haystack, or, where `ids` is given, these."""

    start: int
    end: int
    ids: array[int] | None = None

    def __len__(self) -> int:
        return self.end - self.start if self.ids is None else len(self.ids)


_Joined = tuple[int, list[Run], int | None]
"""Around some edits: (haystack tokens before, runs, first haystack token behind or None at the end)."""


class Splicer:
    """Counts edited versions of one haystack. Remembers encoded windows, since grids share most of them."""

    __slots__ = ("_joined", "_remembered", "_window", "encoded_bytes", "haystack")

    def __init__(self, haystack: Haystack) -> None:
        self.haystack = haystack
        self.encoded_bytes = 0
        self._window = _WINDOW_BYTES
        self._remembered: dict[str, Encoding] = {}
        self._joined: dict[tuple[object, ...], _Joined | None] = {}

    def count(self, text: str) -> int:
        """Tokens of a text that stands around or in many prompts; remembered."""
        return len(self._encode(text))

    def splice(self, edits: Sequence[Edit]) -> list[Run]:
        """The token runs of the haystack under `edits`, which are in order and do not overlap."""
        assert edits[-1].end is None, "a prompt ends somewhere: the widest window is then the whole text"
        window = self._window
        while True:
            runs = self._try(edits, window)
            if runs is not None:
                return runs
            window *= 4

    def encode_whole(self) -> None:
        """From now on encode whole prompts: slow, and right whatever the tokenizer does."""
        self._window = len(self.haystack.data) + 1

    def _try(self, edits: Sequence[Edit], window: int) -> list[Run] | None:
        runs: list[Run] = []
        at = 0  # haystack tokens up to here are in `runs`
        for group in _groups(edits, window):
            joined = self._join_once(group, window, at)
            if joined is None:
                return None
            before, inside, after = joined
            if before > at:
                runs.append(Run(at, before))
            runs += inside
            if after is None:
                return runs
            at = after
        runs.append(Run(at, len(self.haystack)))
        return runs

    def _join_once(self, group: Sequence[Edit], window: int, at: int) -> _Joined | None:
        """`_join`, remembered where the text goes on behind the edits: many prompts have the same ones."""
        if group[-1].end is None:
            return self._join(group, window, at)
        key = (window, at, *group)
        if key not in self._joined:
            if len(self._joined) >= _REMEMBERED:
                self._joined.clear()
            self._joined[key] = self._join(group, window, at)
        return self._joined[key]

    def _join(self, group: Sequence[Edit], window: int, at: int) -> _Joined | None:
        """The tokens around some edits, or None: look wider. What is the haystack's own, is told as such."""
        hay = self.haystack
        first, last = group[0], group[-1]
        # Tokens of no width can stand at the very start: a window that reaches it takes them in.
        left_token = max(at, hay.tokens_before(first.start - window) if first.start > window else 0)
        while left_token > at and not hay.is_character_start(hay.start_of(left_token)):
            left_token -= 1
        left = hay.start_of(left_token)
        if left > first.start:
            return None
        right_token: int | None = None
        right = 0
        if last.end is not None:
            right_token = min(len(hay), hay.tokens_before(last.end + window) + 1)
            while right_token < len(hay) and not hay.is_character_start(hay.start_of(right_token)):
                right_token += 1
            right = hay.start_of(right_token)
        parts: list[str] = []
        stretches: list[tuple[int, int, int]] = []
        place, size = left, 0
        for edit in group:
            kept = hay.data[place : edit.start]
            stretches.append((size, size + len(kept), place))
            parts += (kept.decode(), edit.text)
            size += len(kept) + len(edit.text.encode())
            place = edit.end if edit.end is not None else edit.start
        if right_token is not None:
            parts.append(hay.data[place:right].decode())
        found = self._encode("".join(parts))
        head = self._head(found, left_token, left, first.start)
        if head is None:
            return None
        before, begin = head
        if right_token is None:
            return self._told(found, before, begin, len(found), stretches[1:], None)
        assert last.end is not None
        length = found.ends[-1] if found.ends else 0
        tail = self._tail(found, right_token, right - length, last.end)
        if tail is None or tail[0] < begin:
            return None
        stop, after = tail
        while stop > begin and found.ids[stop - 1] == hay.ids[after - 1] and hay.start_of(after - 1) >= last.end:
            stop, after = stop - 1, after - 1
        return self._told(found, before, begin, stop, stretches[1:], after)

    def _told(
        self,
        found: Encoding,
        before: int,
        begin: int,
        stop: int,
        stretches: Sequence[tuple[int, int, int]],
        after: int | None,
    ) -> _Joined:
        """The window's tokens `begin..stop`, with those that are the haystack's own as runs of it.

        Equal prefixes are then equal runs, however wide the windows were and wherever they began.
        """
        hay = self.haystack
        while begin < stop and before < len(hay) and found.ids[begin] == hay.ids[before]:
            before, begin = before + 1, begin + 1
        runs: list[Run] = []
        at = begin
        for (
            low,
            high,
            place,
        ) in stretches:  # the text between two edits: (from, to) in the window, where in the haystack
            own = self._own(found, max(at, bisect_left(found.ends, low) + 1), stop, high, place - low)
            if own is not None:
                first, token, count = own
                if first > at:
                    runs.append(Run(0, 0, found.ids[at:first]))
                runs.append(Run(token, token + count))
                at = first + count
        if stop > at or not runs:
            runs.append(Run(0, 0, found.ids[at:stop]))
        return before, runs, after

    def _own(self, found: Encoding, index: int, stop: int, high: int, shift: int) -> tuple[int, int, int] | None:
        """The longest run of the window's tokens from `index` to byte `high` that are the haystack's, too."""
        hay = self.haystack
        best: tuple[int, int, int] | None = None
        first = token = count = 0
        while index < stop and found.ends[index] <= high:
            start = (found.ends[index - 1] if index else 0) + shift
            at = hay.tokens_before(start)
            same = at < len(hay) and hay.start_of(at) == start and hay.ends[at] == found.ends[index] + shift
            if same and hay.ids[at] == found.ids[index]:
                if not count:
                    first, token = index, at
                count += 1
                if best is None or count > best[2]:
                    best = first, token, count
            else:
                count = 0
            index += 1
        return best

    def _head(self, found: Encoding, token: int, left: int, start: int) -> tuple[int, int] | None:
        """Where the window's tokens begin to be the haystack's: (haystack tokens kept, window tokens dropped)."""
        if token == 0:
            return 0, 0
        hay = self.haystack
        agreed = 0
        index = 0
        while index < len(found.ids):
            end = left + found.ends[index]
            if end > start:
                return None
            while hay.ends[token] < end:
                token += 1
                agreed = 0
            if hay.ends[token] == end and hay.ids[token] == found.ids[index]:
                agreed += 1
                token += 1
                if agreed == _AGREEING:
                    return token, index + 1
            else:
                agreed = 0
            index += 1
        return None

    def _tail(self, found: Encoding, token: int, shift: int, end: int) -> tuple[int, int] | None:
        """Where the window's tokens stop being needed: (window tokens kept, first haystack token behind)."""
        hay = self.haystack
        index = len(found.ids) - 1
        kept: tuple[int, int] | None = None
        agreed = 0
        last = token - 1
        while index >= 0 and last >= 0:
            here = found.ends[index] + shift
            if here <= end:
                break
            if hay.ends[last] > here:
                last -= 1
                agreed = 0
                continue
            if hay.ends[last] == here and hay.ids[last] == found.ids[index] and hay.start_of(last) >= end:
                agreed += 1
                last -= 1
                if agreed >= _AGREEING:
                    kept = index, last + 1
            elif kept is not None:
                break
            else:
                agreed = 0
            index -= 1
        return kept

    def _encode(self, text: str) -> Encoding:
        found = self._remembered.get(text)
        if found is None:
            self.encoded_bytes += len(text.encode())
            found = self.haystack.tokenizer.encode(text, special=True)
            if len(self._remembered) >= _REMEMBERED:
                self._remembered.clear()
            self._remembered[text] = found
        return found


def _groups(edits: Sequence[Edit], window: int) -> list[list[Edit]]:
    """Edits whose windows would touch are encoded together."""
    groups: list[list[Edit]] = []
    for edit in edits:
        if groups:
            end = groups[-1][-1].end
            assert end is not None, "nothing can follow the edit that cuts the text off"
            if edit.start - end < 3 * window:
                groups[-1].append(edit)
                continue
        groups.append([edit])
    return groups
