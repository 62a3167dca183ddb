"""Text fitted to pixels: Vega doesn't break lines. Pure, so widths are estimates, on the safe side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..labels import Lang
from ..words import cut, width_of

_LETTER, _BOLD_FROM = 0.53, 14


def pixels(text: str, size: float) -> float:
    """About how wide a text is; Chinese letters count twice."""
    return width_of(text) * size * (_LETTER + 0.05 * (size >= _BOLD_FROM))


def headline(title: str, width: float, lang: Lang = "en", clauses: Sequence[str] = ()) -> dict[str, Any]:
    """A Vega-Lite title with, where there are clauses, a subtitle; both fitted to `width`."""
    head: dict[str, Any] = {"text": fitted([title], width, 15, lang, joined="")}
    return {**head, "subtitle": fitted(clauses, width, 11.5, lang)} if clauses else head


def fitted(
    clauses: Sequence[str], width: float, size: float, lang: Lang = "en", *, joined: str | None = None
) -> list[str]:
    """Clauses joined to as few lines as fit; a clause that is too long alone is broken between words, then cut."""
    between = joined if joined is not None else ("；" if lang == "zh" else "; ")
    lines: list[str] = []
    for clause in clauses:
        if lines and pixels(lines[-1] + between + clause, size) <= width:
            lines[-1] += between + clause
            continue
        if lines:
            lines[-1] += between.rstrip()
        lines += _broken(clause, width, size)
    return lines


def _broken(text: str, width: float, size: float, most: int = 3) -> list[str]:
    lines = [""]
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and pixels(longer, size) > width:
            lines.append(word)
        else:
            lines[-1] = longer
    if len(lines) > most:
        lines = [*lines[: most - 1], " ".join(lines[most - 1 :])]
    room = int(width / pixels("0", size))
    return [cut(line, room) for line in lines]
