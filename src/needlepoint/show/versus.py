"""Runs against each other, in the terminal: a table by length, the verdict, and flipped answers side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..learn.change import Comparison, Side
from ..learn.gate import Gate, Shortfall
from ..learn.parts import Part, Parts
from ..plan.grid import format_length
from .console import out_console
from .verdict import details, flip_place, gate_words, most_telling, nats, points, verdict
from .words import ascii_only, cut, in_nats, one_line, percent, width_of

if TYPE_CHECKING:
    from rich.console import Console

_HEADS = ("", "Questions", "A", "B", "Points", "95% interval", "p", "Lost", "Gained")
_MARGIN_HEADS = ("Margins, in nats", "Questions", "A", "B", "Change", "95% interval", "p", "Fell", "Rose")
_LONGEST_NAME = 28
_MINUS = {ord("−"): "-", ord("→"): "->"}


def show_comparisons(
    comparisons: Sequence[tuple[Comparison, Sequence[Shortfall]]],
    *,
    gate: Gate | None = None,
    most_flips: int = 6,
    console: Console | None = None,
) -> None:
    """Every comparison on stdout, or the console that is given."""
    from rich.text import Text

    console = console or out_console()
    utf8 = console.encoding.startswith("utf")

    def say(line: str = "", style: str = "") -> None:
        console.print(Text(line if utf8 else ascii_only(line.translate(_MINUS)), style=style), soft_wrap=True)

    for number, (found, shortfalls) in enumerate(comparisons):
        if number:
            say()
        say(f"A  {one_line(found.one)}")
        say(f"B  {one_line(found.other)}")
        say()
        for line, style in _table(found.parts, found.paired):
            say(line, style)
        say()
        say(verdict(found), "bold red" if found.is_worse else "bold green" if found.is_better else "bold")
        for line in details(found):
            say(line)
        if found.logprob_margin is not None:
            say()
            for line, style in _table(found.logprob_margin.parts, found.paired, of_margins=True):
                say(line, style)
        _flips(found, most_flips, console.width, say)
        if (told := gate_words(gate, shortfalls, found)) is not None:
            say()
            say(told, "bold red" if shortfalls else "bold green")


def _table(parts: Parts, paired: bool, *, of_margins: bool = False) -> list[tuple[str, str]]:
    """Lines with their styles: each subset with its lengths, then all together."""
    if parts.whole is None:
        return []
    rows: list[tuple[Sequence[str], str]] = [(_MARGIN_HEADS if of_margins else _HEADS, "bold")]
    for subset in parts.subsets:
        name = cut(one_line(subset.where.subset or ""), _LONGEST_NAME)
        rows.append((_cells(name, subset, of_margins), _style(subset)))
        for part in parts.lengths:
            if part.where.subset == subset.where.subset:
                length = format_length(part.where.context_length or 0)
                rows.append((_cells(f"  {length}", part, of_margins), _style(part)))
    if len(parts.subsets) != 1:
        rows.append((_cells("overall", parts.whole, of_margins), _style(parts.whole)))
    keep = [place for place in range(len(_HEADS)) if place < 7 or paired]
    widths = [max(width_of(row[place]) for row, _ in rows) for place in keep]
    return [
        ("  ".join(_padded(row[place], wide, place) for place, wide in zip(keep, widths, strict=True)).rstrip(), style)
        for row, style in rows
    ]


def _cells(name: str, part: Part, of_margins: bool) -> tuple[str, ...]:
    level, change = (in_nats, nats) if of_margins else (percent, points)
    ends = f"{change(part.interval[0])} to {change(part.interval[1])}"
    chance = "<0.001" if part.p_value < 0.001 else f"{part.p_value:.3f}"
    mark = "*" if part.where.context_length is not None and part.is_notable else ""
    flips = [f"{count or 0:,}" for count in (part.lost, part.gained)]
    sides = level(part.one), level(part.other)
    return (name, f"{part.n:,}", *sides, change(part.difference), ends, chance + mark, *flips)


def _style(part: Part) -> str:
    notable = part.is_notable if part.where.context_length is not None else part.is_worse or part.is_better
    return "" if not notable else "red" if part.difference < 0 else "green"


def _padded(text: str, wide: int, place: int) -> str:
    blanks = " " * (wide - width_of(text))
    return text + blanks if place == 0 else blanks + text


def _flips(found: Comparison, most: int, width: int, say: Callable[..., None]) -> None:
    told = most_telling(found, most)
    if not told:
        return
    say()
    some = f", {len(told):,} of them" if len(told) < len(found.flips) else ""
    say(f"Flipped: {len(found.lost):,} lost, {len(found.gained):,} gained{some}")
    for flip in told:
        say(f"  {'lost' if flip.change < 0 else 'gained'}: {flip_place(flip)}")
        for name, side in (("A", flip.one), ("B", flip.other)):
            say(f"    {name} {_answer(side, width - 6)}")


def _answer(side: Side, width: int) -> str:
    said = one_line(side.answer[:2_000])
    return f"{side.outcome.replace('_', ' ')}: {cut(said, max(30, width - 12)) or '(nothing)'}"
