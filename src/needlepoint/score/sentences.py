"""Sentences, lines and quotes of a folded text, as spans of it."""

from __future__ import annotations

import re

Span = tuple[int, int]

_END = re.compile(r"[.!?]+[\"')\]*_]*(?=\s|$)|[。！？][\"')」』]*|\n\s*")
_TERMINAL = re.compile(r"\b(?:no|nr|mr|mrs|dr|st|e\.g|i\.e|vs|approx)\.$|(?:^|\n)\s*\d{1,2}\.$")


def sentences(text: str) -> list[Span]:
    """The sentences and lines of a folded text; a colon before a line break does not end one."""
    found = []
    begin = 0
    for match in _END.finditer(text):
        if match[0][0] == "." and _TERMINAL.search(text, max(0, match.start() - 8), match.start() + 1):
            continue
        if match[0][0] == "\n" and text[: match.start()].rstrip()[-1:] in (":", ",") and len(match[0].strip()) == 0:
            continue
        if text[begin : match.end()].strip():
            found.append((begin, match.end()))
        begin = match.end()
    if text[begin:].strip():
        found.append((begin, len(text)))
    return found


def sentence(text: str, start: int, end: int) -> Span:
    """The sentence or line around a place."""
    begin = 0
    for match in _END.finditer(text, max(0, start - 600), start):
        if not (match[0][0] == "." and _TERMINAL.search(text, max(0, match.start() - 8), match.start() + 1)):
            begin = match.end()
    stop = _END.search(text, end)
    return max(begin, start - 600), stop.end() if stop else len(text)


def in_quotes(text: str, start: int, end: int) -> bool:
    """Whether a place stands between quotation marks, on its own paragraph."""
    begin = text.rfind("\n", 0, start) + 1
    stop = text.find("\n", end)
    stop = len(text) if stop < 0 else stop
    return text.count('"', begin, start) % 2 == 1 and text.count('"', end, stop) % 2 == 1
