"""Lists in an answer: what else stands beside the thing that was asked for.

Whoever names ten things and the right one among them has not answered. Items of a bulleted or numbered list count, and
those that commas and "or" set side by side in one sentence. All on folded text, as spans of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from .sentences import Span, sentence

_BULLET = re.compile(r"(?m)^[ \t]*(?:[-*•·–]|\(?\d{1,3}[.):、]|[a-z][.)])[ \t]*(?=\S)(.*)$")
_JOINT = re.compile(r"\s*(?:,\s*(?:or|and)\s+|,|;|\s/\s|、|\s+or\s+|\s+and\s+|\||或者|或|以及|和)\s*")
_OR = re.compile(r"\bor\b|或|/")
_OPENING = re.compile(r":|\b(?:is|are|was|were|be|either|include|includes|including|among)\b|[是为]")
_FUNCTION = frozenset(
    "a an the of to in on at by for from with is are was were be been as that this it its according based text passage "
    "context document so then which who where when not no but also i you he she they we".split()
)
_WORD = re.compile(r"[^\W_]+")
_AROUND = " \"'*`().!?。\n"
_MANY = 3
_NEAR = 40


def bullets_beside(text: str, start: int, end: int) -> list[Span]:
    """The other items of the bulleted list of which one item holds all of `start` to `end`."""
    items = [match.span(1) for match in _BULLET.finditer(text)]
    if not any(begin <= start and end <= stop for begin, stop in items):
        return []
    named = text[start:end]
    return _different(text, (one for one in items if named not in text[slice(*one)]))


def words_beside(text: str, start: int, end: int) -> list[Span]:
    """The things of about the same shape that "or", or several commas, set beside the few words `start` to `end`."""
    begin, stop = sentence(text, start, end)
    n_words = len(_WORD.findall(text[start:end]))
    before, after = _pieces(text, begin, start)[::-1], _pieces(text, end, stop)
    beside = []
    for side in (before, after):
        if not text[slice(*side[0])].strip(_AROUND):
            beside += _run(text, side[1:], n_words)
    named = text[start:end]
    others = _different(text, (one for one in beside if text[slice(*one)] != named))
    chosen = _OR.search(text, max(begin, start - _NEAR), start) or _OR.search(text, end, min(stop, end + _NEAR))
    return others if chosen or len(others) >= _MANY else []


def _pieces(text: str, begin: int, stop: int) -> list[Span]:
    """What stands between the joints of an enumeration; the first piece without what leads up to it."""
    found = []
    at = begin
    for match in _JOINT.finditer(text, begin, stop):
        found.append((at, match.start()))
        at = match.end()
    found.append((at, stop))
    opened = begin
    for opening in _OPENING.finditer(text, *found[0]):
        opened = opening.end()
    return [(min(opened, found[0][1]), found[0][1]), *found[1:]]


def _run(text: str, pieces: list[Span], n_words: int) -> list[Span]:
    found = []
    for begin, stop in pieces:
        words = _WORD.findall(text[begin:stop])
        if not words or len(words) > n_words + 1 or _FUNCTION.intersection(words):
            break
        while text[begin] in _AROUND:
            begin += 1
        while text[stop - 1] in _AROUND:
            stop -= 1
        found.append((begin, stop))
    return found


def _different(text: str, spans: Iterable[Span]) -> list[Span]:
    return list({text[slice(*one)].strip(): one for one in spans}.values())


_INTRODUCED = re.compile(
    r":|\b(?:things|activities|options|places|ideas|include|includes|including|such as|among|either)\b|包括|比如"
)
_LONGEST = 9


def things_beside(text: str, start: int, end: int) -> int:
    """How many other things of any wording a sentence lists beside the one from `start` to `end`: see A, do B, or C."""
    begin, stop = sentence(text, start, end)
    before, after = text[begin:start], text[end:stop]
    introduced = _INTRODUCED.search(before) is not None
    if not introduced and not _OR.search(after):
        return 0
    pieces = [*re.split(r"[,;、]", before)[:-1], *re.split(r"[,;、]", after)[1:]]
    return sum(0 < len(_WORD.findall(piece)) <= _LONGEST for piece in pieces)
