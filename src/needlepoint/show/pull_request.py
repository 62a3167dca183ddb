"""A comparison as Markdown, as GitHub and GitLab show it: for a job's summary or a pull request. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..learn.change import Comparison, Flip
from ..learn.gate import Gate, Shortfall
from ..learn.parts import Part, Parts
from .markdown import code, escaped
from .verdict import (
    chance_words,
    details,
    flip_place,
    gate_words,
    most_telling,
    nats,
    part_name,
    points,
    verdict,
)
from .words import in_nats, percent

_LONGEST_ANSWER = 240


def comparison_markdown(
    comparisons: Sequence[tuple[Comparison, Sequence[Shortfall]]], *, gate: Gate | None = None, most_flips: int = 20
) -> str:
    """A section for each comparison."""
    return "\n".join(line for found, short in comparisons for line in _section(found, short, gate, most_flips))


def _section(found: Comparison, shortfalls: Sequence[Shortfall], gate: Gate | None, most_flips: int) -> Iterator[str]:
    mark = "" if gate is None else "❌ " if shortfalls else "✅ "
    yield f"### {mark}{code(found.other)} against {code(found.one)}"
    yield ""
    yield f"**{escaped(verdict(found))}**"
    yield ""
    if (told := gate_words(gate, shortfalls, found)) is not None:
        yield escaped(told)
        yield ""
    if found.whole is not None:
        yield from _table(found.parts, found.paired)
        yield ""
    for line in details(found):
        yield f"- {escaped(line)}"
    yield ""
    if found.logprob_margin is not None:
        yield from _table(found.logprob_margin.parts, found.paired, of_margins=True)
        yield ""
    yield from _flips(found, most_flips)


def _table(parts: Parts, paired: bool, *, of_margins: bool = False) -> Iterator[str]:
    first, unit, crossed = ("margins", "nats", ("fell", "rose")) if of_margins else ("", "points", ("lost", "gained"))
    heads = [first, "questions", "A", "B", unit, "95 % interval", "p", *(crossed if paired else ())]
    yield f"| {' | '.join(heads)} |"
    yield f"|---|{'---:|' * (len(heads) - 1)}"
    for subset in parts.subsets:
        yield _row(subset, paired, of_margins)
        for part in parts.lengths:
            if part.where.subset == subset.where.subset:
                yield _row(part, paired, of_margins)
    if parts.whole is not None and len(parts.subsets) != 1:
        yield _row(parts.whole, paired, of_margins)


def _row(part: Part, paired: bool, of_margins: bool) -> str:
    level, change = (in_nats, nats) if of_margins else (percent, points)
    strong = "**" if part.is_notable and part.where.context_length is not None else ""
    cells = [
        code(part_name(part)),
        f"{part.n:,}",
        level(part.one),
        level(part.other),
        f"{strong}{change(part.difference)}{strong}",
        f"{change(part.interval[0])} to {change(part.interval[1])}",
        chance_words(part.p_value).removeprefix("p = ").removeprefix("p "),
    ]
    if paired:
        cells += [f"{part.lost or 0:,}", f"{part.gained or 0:,}"]
    return f"| {' | '.join(cells).replace('| < ', '| &lt; ')} |"


def _flips(found: Comparison, most: int) -> Iterator[str]:
    told = most_telling(found, most)
    if not told:
        return
    some = f", {len(told):,} of them here" if len(told) < len(found.flips) else ""
    yield "<details>"
    yield f"<summary>Flipped: {len(found.lost):,} lost, {len(found.gained):,} gained{some}</summary>"
    yield ""
    yield "| | where | A | B |"
    yield "|---|---|---|---|"
    for flip in told:
        yield _flip(flip)
    yield ""
    yield "</details>"
    yield ""


def _flip(flip: Flip) -> str:
    sides = [f"{escaped(side.outcome)}: {code(side.answer, _LONGEST_ANSWER)}" for side in (flip.one, flip.other)]
    return f"| {'lost' if flip.change < 0 else 'gained'} | {code(flip_place(flip))} | {' | '.join(sides)} |"
