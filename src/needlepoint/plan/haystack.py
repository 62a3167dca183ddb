"""A corpus as one endless text, encoded once: the base that every prompt of a grid is cut from.

`Haystack` holds the text as UTF-8 and its tokens with their byte ends. It knows nothing of needles or prompts.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from unicodedata import normalize

from ..errors import CorpusError
from ..text.boundaries import safe_cut
from ..types import Tokenizer

_SAMPLE_CHARS = 20_000
_MARGIN_TOKENS = 256


class Haystack:
    """Text of at least `n_tokens`, from character `offset` of `text` on, repeated with `joint` where it runs out.

    Only as much text as asked is cleaned and encoded. Positions are bytes; `ends[i]` is the end of token i.
    """

    __slots__ = ("clean", "data", "ends", "fingerprint", "ids", "repeats_after", "tokenizer")

    def __init__(
        self,
        text: str,
        tokenizer: Tokenizer,
        n_tokens: int,
        *,
        fingerprint: str,
        offset: int = 0,
        joint: str = "\n",
        clean: Callable[[str], str] | None = None,
    ) -> None:
        if not text.strip():
            raise CorpusError("The haystack text is empty.")
        self.tokenizer = tokenizer
        self.clean = clean
        self.fingerprint = fingerprint
        self.repeats_after: int | None = None
        self.data = b""
        self.ids: array[int] = array("I")
        self.ends: array[int] = array("I")
        self._grow(_Endless(text, offset, joint), n_tokens + _MARGIN_TOKENS)

    def _grow(self, source: _Endless, n_tokens: int) -> None:
        taken = 0
        want = min(_SAMPLE_CHARS, 8 * n_tokens + 200)
        parts: list[bytes] = []
        size = 0
        while (missing := n_tokens - len(self.ids)) > 0:
            raw = source.take(taken, want)
            # Behind the last safe cut the tokens depend on what follows: leave that for the next turn.
            cut = safe_cut(raw, len(raw) // 2, len(raw))
            piece = self._prepared(raw[:cut], first=not taken)
            encoding = self.tokenizer.encode(piece, special=self.clean is None)
            if cut is None and len(encoding) < missing:
                if want > 40 * source.period and not encoding.ids:
                    raise CorpusError("The haystack text holds nothing that can be counted in tokens.")
                want *= 2
                continue
            taken += len(raw) if cut is None else cut
            data = piece.encode()
            self.ids.extend(encoding.ids)
            self.ends.extend(array("I", (size + end for end in encoding.ends)) if size else encoding.ends)
            parts.append(data)
            size += len(data)
            if taken > source.period and self.repeats_after is None:
                self.repeats_after = round(len(self.ids) * source.period / taken)
            per_token = taken / max(1, len(self.ids))
            want = int((n_tokens - len(self.ids)) * per_token * 1.03) + 2_000
        self.data = b"".join(parts)

    def _prepared(self, raw: str, *, first: bool) -> str:
        if self.clean is None:
            return normalize("NFC", raw) if self.tokenizer.nfc and not raw.isascii() else raw
        piece = self.clean(raw)
        return piece.lstrip() if first else piece

    def __len__(self) -> int:
        return len(self.ids)

    def tokens_before(self, byte: int) -> int:
        """How many whole tokens end at or before `byte`."""
        return bisect_right(self.ends, byte)

    def start_of(self, token: int) -> int:
        """The byte where token number `token` begins."""
        return self.ends[token - 1] if token > 0 else 0

    def is_joint(self, byte: int) -> bool:
        """Whether a token ends at `byte`, or the text begins there."""
        if byte == 0:
            return True
        at = bisect_left(self.ends, byte)
        return at < len(self.ends) and self.ends[at] == byte

    def is_character_start(self, byte: int) -> bool:
        return byte >= len(self.data) or self.data[byte] & 0xC0 != 0x80

    def window(self, low: int, high: int) -> tuple[str, int]:
        """The text between two bytes, shrunk to whole characters, and the byte where it begins."""
        low = max(0, low)
        high = min(len(self.data), high)
        while low < high and self.data[low] & 0xC0 == 0x80:
            low += 1
        while high > low and high < len(self.data) and self.data[high] & 0xC0 == 0x80:
            high -= 1
        return self.data[low:high].decode("utf-8"), low


class _Endless:
    """Characters of a text that starts over, `joint` between, from an offset on."""

    def __init__(self, text: str, offset: int, joint: str) -> None:
        self.text = text
        self.offset = offset
        self.joint = joint
        self.period = len(text) + len(joint)

    def take(self, start: int, count: int) -> str:
        at = (self.offset + start) % self.period
        parts: list[str] = []
        while count > 0:
            if at < len(self.text):
                part = self.text[at : at + count]
            else:
                part = self.joint[at - len(self.text) : at - len(self.text) + count]
            parts.append(part)
            count -= len(part)
            at = (at + len(part)) % self.period
        return "".join(parts)
