"""Where a text can be cut: sentence ends, clauses, words, characters; and cuts that no tokenizer merges across.

Everything works on short windows of text, so a cell costs the same in a book as in a page. Pure functions.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

_CLOSERS = "\"'”’»›)\\]}」』】》〉）］｝〕〗"
_ENDS = re.compile(
    rf"(?:[.!?…‽]+[{_CLOSERS}]*(?=\s|\Z))"  # Latin and kin: needs a space behind
    rf"|(?:[。！？｡．][。！？｡．…]*[{_CLOSERS}]*)"  # Chinese, Japanese: ends by itself
    rf"|(?:[؟۔।॥։።᙮᠃᥄᱾꓿][{_CLOSERS}]*)"  # Arabic, Indic, Armenian, Ethiopic and others
)
_CLAUSES = re.compile(rf"(?:[,;:—–][{_CLOSERS}]*(?=\s|\Z))|(?:[，、；：،؛][{_CLOSERS}]*)|(?:\n+)")
_WORDS = re.compile(r"(?<=\S)(?=\s)")
_CHUNK_CUTS = re.compile(r"(?<=\S)(?= [^\W\d_])|(?<=\S\n)(?=[^\W\d_])")
_INITIAL = re.compile(r"(?:^|[\s(\"'“‘])(?:[A-Z]|[A-Z](?:\.[A-Z])+)$")
_LAST_WORD = re.compile(r"([A-Za-z][A-Za-z.]*)$")
_ABBREVIATIONS = frozenset(
    "mr mrs ms dr prof st rev hon gen col maj capt lt sgt gov sen rep messrs jr sr vs cf etc eg e.g ie i.e al fig no "
    "nos vol vols pp ed eds inc ltd co corp dept est approx ca viz a.m p.m jan feb mar apr jun jul aug sep sept oct "
    "nov dec art sec ch".split()
)
CHUNK_CHARS = 65_536


def sentence_ends(text: str) -> Iterator[int]:
    """Indexes just behind the end of a sentence, closing quotes and brackets included.

    A full stop does not end a sentence behind an abbreviation or an initial, or before a small letter.
    """
    for match in _ENDS.finditer(text):
        if match[0][0] == "." and not _is_full_stop(text, match.start(), match.end(), match[0]):
            continue
        yield match.end()


def _is_full_stop(text: str, start: int, end: int, mark: str) -> bool:
    behind = text[end : end + 8].lstrip()
    if behind and behind[0].islower():
        return False
    if mark != ".":  # an ellipsis, or closed by a quote or bracket
        return True
    before = text[max(0, start - 16) : start]
    if _INITIAL.search(before):
        return False
    word = _LAST_WORD.search(before)
    return word is None or word[1].lower() not in _ABBREVIATIONS


def clause_ends(text: str) -> Iterator[int]:
    """Indexes just behind a comma, semicolon, colon, dash or line break."""
    for match in _CLAUSES.finditer(text):
        yield match.end()


def word_ends(text: str) -> Iterator[int]:
    """Indexes behind a word: before white space, or between characters of scripts that put no spaces."""
    for match in re.finditer(_WORDS, text):
        yield match.start()
    for index in range(1, len(text)):
        if _unspaced(text[index - 1]) and _unspaced(text[index]):
            yield index


def character_ends(text: str) -> Iterator[int]:
    """Indexes between two user-perceived characters: never inside an emoji or before a combining mark."""
    for index in range(1, len(text)):
        if not _joins(text[index - 1], text[index]):
            yield index


def _unspaced(char: str) -> bool:
    code = ord(char)
    return (
        0x2E80 <= code <= 0x9FFF or 0xF900 <= code <= 0xFAFF or 0x20000 <= code <= 0x3FFFF or 0xFF01 <= code <= 0xFF60
    )


def _joins(before: str, after: str) -> bool:
    if after < "\u0300":
        return before == "\r" and after == "\n"
    return (
        before == "\u200d"
        or after in "\u200d\u200c\ufe0e\ufe0f\u20e3"
        or unicodedata.category(after) in ("Mn", "Mc", "Me")
        or 0x1F3FB <= ord(after) <= 0x1F3FF
        or (0x1F1E6 <= ord(before) <= 0x1F1FF and 0x1F1E6 <= ord(after) <= 0x1F1FF)
    )


def chunks(text: str, size: int = CHUNK_CHARS) -> Iterator[str]:
    """`text` in runs of about `size` characters whose tokens can be counted apart.

    Cuts stand before a space and a letter, or behind a single line break and before a letter, where no byte-level
    tokenizer merges (of several line breaks GPT-2's rule takes the last one apart); a text without such places stays
    whole.
    """
    start = 0
    while len(text) - start > size:
        cut = safe_cut(text, start + max(1, size // 2), start + size)
        if cut is None:
            cut = safe_cut(text, start + size, len(text), first=True)
        if cut is None:
            break
        yield text[start:cut]
        start = cut
    if start < len(text):
        yield text[start:]


def safe_cut(text: str, low: int, high: int, *, first: bool = False) -> int | None:
    """The last (or first) index in `low..high` where tokens of both sides never merge, or None."""
    if first:
        match = _CHUNK_CUTS.search(text, low, high)
        return match.start() if match else None
    step = 2_000
    stop = high
    while stop > low:
        begin = max(low, stop - step)
        found = None
        for match in _CHUNK_CUTS.finditer(text, max(0, begin - 2), min(len(text), stop + 2)):
            if begin <= match.start() <= stop:
                found = match.start()
        if found is not None:
            return found
        stop = begin
    return None
