"""A text made safe to count: one normal form, one kind of line break, nothing that reads as a control token.

Used by the exact length mode only; the parity mode takes texts as they are.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

_LINE_BREAKS = re.compile(r"\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_REMOVED = re.compile(
    r"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ufeff\ufffd\u2060\ufff9-\ufffb\ud800-\udfff\ufdd0-\ufdef]"
)
_NONCHARACTERS = re.compile(
    "[" + "".join(chr(plane << 16 | 0xFFFE) + chr(plane << 16 | 0xFFFF) for plane in range(17)) + "]"
)
_BLANKS = re.compile(r"[ \t\xa0\u1680\u2000-\u200a\u202f\u205f\u3000]+")
_BLANK_AT_BREAK = re.compile(r" ?\n ?")
_MANY_BREAKS = re.compile(r"\n{3,}")
_LOOKALIKE = re.compile(r"<(?=[|｜/]?[A-Za-z_▁][^<>\n]{0,60}>)|<(?=[|｜][^<>\n]{1,60}[|｜]>)")


def clean(text: str, special_tokens: Iterable[str] = ()) -> str:
    """`text` in NFC with plain line breaks and blanks, without control characters or spelled-out control tokens."""
    if not text.isascii():
        text = unicodedata.normalize("NFC", _NONCHARACTERS.sub("", text))
    text = _REMOVED.sub("", _LINE_BREAKS.sub("\n", text))
    text = _MANY_BREAKS.sub("\n\n", _BLANK_AT_BREAK.sub("\n", _BLANKS.sub(" ", text)))
    return defuse(text, special_tokens)


def defuse(text: str, special_tokens: Iterable[str] = ()) -> str:
    """Break what a server would read as a control token, by one space behind its first character."""
    if "<" in text:
        text = _LOOKALIKE.sub("< ", text)
    for spelling in special_tokens:
        if len(spelling) > 1 and not spelling.isspace() and spelling in text:
            text = text.replace(spelling, f"{spelling[0]} {spelling[1:]}")
    return text


def lookalike(text: str, special_tokens: Iterable[str]) -> str | None:
    """The first control token that `text` spells out, or None."""
    return next((spelling for spelling in special_tokens if len(spelling) > 1 and spelling in text), None)
