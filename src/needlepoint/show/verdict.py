"""A comparison of two runs in words: the same sentences for the terminal, Markdown and JUnit. Pure.

A is the first run, the one that the other (B) is measured by.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from ..learn.change import Comparison, CoverageChange, Flip, MarginChange
from ..learn.gate import Gate, Shortfall, points_of
from ..learn.parts import Part, Parts
from ..plan.grid import format_length
from .words import depth_label, in_nats, one_line, percent

_MOST_PLACES = 6
_FINE = 0.01
"""Whoever fails on any drop is content to see this one."""


def verdict(found: Comparison) -> str:
    """`Worse: 95.0% → 90.0%, −5.0 points (95%: −7.6 to −2.4), p < 0.001; 24 lost, 4 gained of 400 questions.`"""
    whole = found.whole
    if whole is None:
        return "Not one question was measured by both: there is nothing to compare."
    says = "Worse" if found.is_worse else "Better" if found.is_better else "No sign of a change"
    change = f"{percent(whole.one)} → {percent(whole.other)}, {points(whole.difference)} points"
    ends = f"95%: {points(whole.interval[0])} to {points(whole.interval[1])}"
    chance = chance_words(found.p_value) + (", for all runs together" if found.p_adjusted is not None else "")
    return f"{says}: {change} ({ends}), {chance}{_flipped(whole)}."


def _flipped(whole: Part) -> str:
    if whole.lost is None or whole.gained is None:
        return ""
    if not whole.lost and not whole.gained:
        return f"; not one of {whole.n:,} questions flipped"
    return f"; {whole.lost:,} lost, {whole.gained:,} gained of {whole.n:,} questions"


def details(found: Comparison) -> Iterator[str]:
    """What stands below a verdict: what it speaks of, coverage, likeness, what could have been seen, where."""
    yield unit_words(found)
    yield coverage_words(found.coverage)
    if found.equivalence is not None:
        yield equivalence_words(found)
    if found.sight is not None:
        yield sight_words(found)
    yield from _places(found.parts, points, "")
    if found.logprob_margin is not None:
        yield margin_words(found.logprob_margin)
        yield from _places(found.logprob_margin.parts, nats, " by their margins")
    for note in found.notes:
        yield f"Note: {one_line(note)}"


def unit_words(found: Comparison) -> str:
    whole = found.whole
    texts = f"{found.texts:,} text{'' if found.texts == 1 else 's'}"
    if whole is None:
        return f"Scored by {one_line(found.scorer)}."
    how = {
        "mcnemar_mid_p": "McNemar's mid-p test on questions",
        "sign_flips": "sign flips of texts" if whole.over == "texts" else "sign flips of questions",
        "student_t": "Student's t",
        "two_samples": "two separate samples",
    }[whole.method]
    speaks = "it speaks of other texts, too" if whole.over == "texts" else f"it speaks of these {texts} only"
    return f"By {how}, scored by {one_line(found.scorer)}; {speaks}."


def coverage_words(found: CoverageChange) -> str:
    """`Coverage: 398 of 400 trials, 2 fewer than before (2 overflow; english 32k: 2 of 40).`"""
    told = f"Coverage: A measured {found.one:,} and B {found.other:,} of {found.asked:,} trials"
    if not found.lost:
        return f"{told}; none is lost."
    why = ", ".join(f"{n:,} {one_line(name).replace('_', ' ')}" for name, n in found.reasons.items())
    places = [
        f"{one_line(at.subset)} {format_length(at.context_length)} {at.lost:,} of {at.of:,}" for at in found.lengths
    ]
    where = "; ".join(_few(places))
    inside = "; ".join(part for part in (why, where) if part)
    return f"{told}; {found.lost:,} lost{f' ({inside})' if inside else ''}."


def equivalence_words(found: Comparison) -> str:
    alike = found.equivalence
    assert alike is not None
    ends = f"the 90% interval is {points(alike.interval[0])} to {points(alike.interval[1])}"
    margin = points_of(alike.margin)
    if alike.is_equivalent:
        return f"Equivalent within {margin}: {ends}."
    if alike.is_not_worse:
        return f"Not worse by {margin} or more, but not shown to be alike: {ends}."
    return f"Not shown to be equivalent within {margin}: {ends}."


def sight_words(found: Comparison) -> str:
    sight = found.sight
    assert sight is not None
    n = f"These {sight.n:,} questions"
    often = f"in {sight.power:.0%} of runs"
    if sight.drop is None:
        told = f"{n} are too few to see any drop {often}"
    else:
        told = f"{n} can see a drop of {sight.drop * 100:.1f} points {often}"
    if sight.churn:
        told += f", with {percent(sight.churn)} of answers flipping either way as here"
    if sight.wanted is not None:
        needed = "more than can be asked" if sight.needed is None else f"{_rounded_up(sight.needed):,}"
        told += f"; {points_of(sight.wanted)} would take {needed}"
    return f"{told}."


def margin_words(found: MarginChange) -> str:
    """`Margins fell: 8.21 → 7.90, −0.31 nats (95%: −0.42 to −0.20), p < 0.001, by Student's t of questions; ...`"""
    whole = found.whole
    says = "Margins fell" if found.is_worse else "Margins rose" if found.is_better else "No sign that margins moved"
    change = f"{in_nats(whole.one)} → {in_nats(whole.other)}, {nats(whole.difference)} nats"
    chance = chance_words(found.p_value) + (", for all runs together" if found.p_adjusted is not None else "")
    told = f"{says}: {change} (95%: {nats(whole.interval[0])} to {nats(whole.interval[1])}), {chance}"
    crossed = f"the right value fell behind in {whole.lost or 0:,}, came ahead in {whole.gained or 0:,}"
    how = "Student's t" if whole.method == "student_t" else "sign flips"
    unit = "texts" if whole.over == "texts" else "questions"
    return f"{told}, by {how} of {unit}; {crossed} of {whole.n:,} questions."


def _rounded_up(n: int) -> int:
    """Two figures: a plan needs no more."""
    unit = int(10 ** max(0, len(str(n)) - 2))
    return -(-n // unit) * unit


def gate_words(gate: Gate | None, shortfalls: Iterable[Shortfall], found: Comparison) -> str | None:
    """Whether the bar held, and whether these trials could have told; None where none was set."""
    if gate is None:
        return None
    missed = [short.says for short in shortfalls]
    if missed:
        return f"FAILED: {'; '.join(missed)}."
    return f"PASSED: {gate.too_much()} would have failed, where more than chance; coverage holds.{_unseen(gate, found)}"


def _unseen(gate: Gate, found: Comparison) -> str:
    """A bar that holds says little where nobody could have seen it fall."""
    if gate.fail_if_worse is None:
        return ""
    drop = None if found.sight is None else found.sight.drop
    if drop is not None and drop <= max(gate.fail_if_worse, _FINE):
        return ""
    return (
        " A drop of any size could go unseen here."
        if drop is None
        else (f" Drops below {drop * 100:.1f} points often go unseen here.")
    )


def flip_place(flip: Flip) -> str:
    """`english 4k at 50%, replicate 1`."""
    place = f"{one_line(flip.subset)} {format_length(flip.context_length)} at {depth_label(flip.depth_percent)}"
    if flip.replicate:
        place += f", replicate {flip.replicate}"
    return f"{place}, repeat {flip.repeat}" if flip.repeat else place


def most_telling(found: Comparison, most: int) -> list[Flip]:
    """The worst of what was lost, and some of what was gained."""
    gained = found.gained[: max(most - len(found.lost), most // 3)]
    return [*found.lost[: most - len(gained)], *gained]


def points(share: float) -> str:
    """A difference in points of a hundred: `+3.1`, `−12.0`, `0.0`."""
    return f"{round(share * 100, 1) + 0.0:+.1f}".replace("+0.0", "0.0").replace("-", "−")


def nats(margin: float) -> str:
    """A difference of margins: `+0.31`, `−2.04`, `+0.0021`, `0.00`."""
    digits = 2 if abs(margin) >= 0.095 else 4
    shown = f"{margin:+,.{digits}f}".replace("-", "−")
    return "0.00" if not round(margin, digits) else shown


def chance_words(p_value: float | None) -> str:
    if p_value is None:
        return "p not known"
    return "p < 0.001" if p_value < 0.001 else f"p = {p_value:.2g}"


def part_name(part: Part) -> str:
    """`english 4k at 50%`, as much of it as the part has."""
    where = part.where
    told = [one_line(where.subset)] if where.subset is not None else []
    if where.context_length is not None:
        told.append(format_length(where.context_length))
    if where.depth_percent is not None:
        told.append(f"at {depth_label(where.depth_percent)}")
    return " ".join(told) or "overall"


def _places(found: Parts, shown: Callable[[float], str], by: str) -> Iterator[str]:
    for kind, parts in (("Lengths", found.lengths), ("Depths", found.depths), ("Cells", found.cells)):
        notable = sorted((part for part in parts if part.is_notable), key=lambda part: part.p_value)
        if told := "; ".join(_few([f"{part_name(part)} {shown(part.difference)}" for part in notable])):
            yield f"{kind} that stand out{by} among {len(parts):,} (q < 0.05): {told}."


def _few(told: list[str]) -> list[str]:
    more = len(told) - _MOST_PLACES
    return told if more <= 0 else [*told[:_MOST_PLACES], f"and {more:,} more"]
