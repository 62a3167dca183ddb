"""From a tokenizer's pieces to where each token ends in the text.

Knows how vocabularies spell bytes and how a run of pieces lies over a text; knows nothing of servers and files.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from itertools import accumulate
from typing import Literal

Spelling = Literal["byte-level", "sentencepiece", "plain"]

_WHITESPACE = b" \t\n\v\f\r"
_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_CONTROL_LOOK = re.compile(r"<[^<>\s]{1,60}>|\[/?[A-Z][A-Z_]{1,30}\]")


def _byte_alphabet() -> dict[str, int]:
    """The 256 printable letters by which byte-level vocabularies (GPT-2 and its heirs) spell the 256 bytes."""
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in set(shown)]
    return {chr(byte): byte for byte in shown} | {chr(256 + i): byte for i, byte in enumerate(hidden)}


_BYTE_OF = _byte_alphabet()


def byte_level(token: str) -> bytes:
    """The bytes that a byte-level token stands for; a token outside the alphabet stands for itself."""
    try:
        return bytes(map(_BYTE_OF.__getitem__, token))
    except KeyError:
        return token.encode("utf-8", "replace")


def sentencepiece(token: str) -> bytes:
    """The bytes that a SentencePiece token stands for: `▁` is a space, `<0xE4>` a byte."""
    byte = _BYTE_TOKEN.fullmatch(token)
    if byte:
        return bytes([int(byte[1], 16)])
    return token.replace("▁", " ").encode("utf-8", "replace")


def piece(token: str, spelling: Spelling, controls: AbstractSet[str] = frozenset()) -> bytes:
    """The bytes of one token as a vocabulary spells it. Control tokens always stand for themselves."""
    if spelling == "plain" or token in controls:
        return token.encode("utf-8", "replace")
    return byte_level(token) if spelling == "byte-level" else sentencepiece(token)


def control_lookalikes(texts: Iterable[str]) -> set[str]:
    """What in these texts is written like a control token, as `<|im_end|>`, `</s>`, `[INST]` are."""
    found = {match[0] for text in texts for match in _CONTROL_LOOK.finditer(text)}
    return {look for look in found if not _BYTE_TOKEN.fullmatch(look)}


class MisalignedError(Exception):
    """The pieces are not the text's bytes; `near` shows the text where they first differ."""

    def __init__(self, data: bytes, at: int) -> None:
        while 0 < at < len(data) and data[at] & 0xC0 == 0x80:
            at -= 1
        self.near = data[at : at + 48].decode("utf-8", "replace")[:16]
        super().__init__(f"the pieces leave the text at byte {at}")


def ends_of(pieces: Sequence[bytes], data: bytes, controls: AbstractSet[bytes] = frozenset()) -> array[int]:
    """Where each piece ends in `data`; the last end is `len(data)`. Raises MisalignedError.

    Two liberties that tokenizers take are followed, both only where plain joining fails: a dummy space that stands
    before a stretch of ordinary text (at the start, behind a control token) counts as no byte, and white space that a
    control token swallows counts as that token's.
    """
    ends = array("I", accumulate(map(len, pieces)))
    if b"".join(pieces) == data:
        return ends
    return _ends_by_stretch(pieces, data, controls)


def _ends_by_stretch(pieces: Sequence[bytes], data: bytes, controls: AbstractSet[bytes]) -> array[int]:
    ends: array[int] = array("I")
    at = i = 0
    while i < len(pieces):
        if pieces[i] in controls:
            if not data.startswith(pieces[i], at):
                at = _behind_whitespace(data, at)
                if not data.startswith(pieces[i], at):
                    raise MisalignedError(data, at)
            at += len(pieces[i])
            ends.append(at)
            i += 1
            continue
        stop = i
        while stop < len(pieces) and pieces[stop] not in controls:
            stop += 1
        stretch = b"".join(pieces[i:stop])
        start, dummy = _lay(stretch, data, at, behind_control=i > 0)
        if i > 0:
            ends[-1] = start
        ends.extend(max(start, start + end - dummy) for end in accumulate(map(len, pieces[i:stop])))
        at = start + len(stretch) - dummy
        i = stop
    if at < len(data) and pieces and pieces[-1] in controls and not data[at:].strip(_WHITESPACE):
        ends[-1] = at = len(data)
    if at != len(data):
        raise MisalignedError(data, at)
    return ends


def _lay(stretch: bytes, data: bytes, at: int, *, behind_control: bool) -> tuple[int, int]:
    """Where in `data` the stretch begins, and how many dummy bytes (0 or 1) it has in front."""
    for start in (at, _behind_whitespace(data, at)) if behind_control else (at,):
        for dummy in (0, 1) if stretch[:1] == b" " else (0,):
            if data.startswith(stretch[dummy:], start):
                return start, dummy
    same = 0
    for same, (ours, theirs) in enumerate(zip(stretch, data[at : at + len(stretch)], strict=False)):  # noqa: B007
        if ours != theirs:
            break
    raise MisalignedError(data, at + same)


def _behind_whitespace(data: bytes, at: int) -> int:
    while at < len(data) and data[at] in _WHITESPACE:
        at += 1
    return at
