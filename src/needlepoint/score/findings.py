"""What an answer says of one expected fact: where it is stated, what else stands in its place, what is taken back."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from .expected import Fact
from .lists import bullets_beside, things_beside
from .sentences import Span, sentence
from .stance import asks, corrections, final_answer, is_negated
from .values import DateValue, Mention, Said

_CLOSE = 80
_MANY_THINGS = 3
_MOST_THINGS = 1_000
_ASIDES = 2
_EACH_END = 40
_SUBJECT = 12
_SUBJECT_ZH = 5
_JOINT = re.compile(r"[,;()，；（）]|\b(?:while|whereas|but)\b")
_OFFERED = re.compile(r"\b(?:or|could|also|might|maybe|perhaps|alternatively|possibly|either)\b|或|也可能|可能")


@dataclass(frozen=True, slots=True)
class Finding:
    """`stated`: where the fact stands, as the answer's own last word on it; `others`: values that stand beside it.

    `share` is how much of a fact is said where not all of it is, `denied` where it is named only to be denied, and
    `beside` how many other things a list has beside the fact.
    """

    stated: tuple[Mention, ...] = ()
    others: tuple[Mention, ...] = ()
    share: float = 0.0
    part: Span | None = None
    denied: Span | None = None
    beside: int = 0


def find(fact: Fact, said: Said, *, every: bool = False) -> Finding:
    """`every`: look for paraphrases, too, where the fact is quoted word by word already."""
    if fact.value is not None:
        return _value(fact, said)
    return _wording(fact, said, every=every)


# --- values -----------------------------------------------------------------------------------------------------------


def _value(fact: Fact, said: Said) -> Finding:
    assert fact.value is not None
    text = said.text
    named = _thinned(fact.value.stated(said))
    others = _not_in(named, _thinned([one for one in fact.value.others(said) if one.value not in fact.known]))
    stated = [one for one in named if not is_negated(text, one.start, one.end)]
    others = [one for one in others if not is_negated(text, one.start, one.end)]
    if stated and others:
        stated, others = last_word(text, stated, others)
    if not stated:
        part = fact.value.parts(said) if isinstance(fact.value, DateValue) and not named else None
        return Finding(
            others=tuple(others),
            denied=(named[-1].start, named[-1].end) if named else None,
            share=0.5 if part and not others else 0.0,
            part=(part.start, part.end) if part else None,
        )
    return Finding(stated=tuple(stated), others=tuple(_without_asides(fact, said, stated, others)))


def _thinned(mentions: list[Mention]) -> list[Mention]:
    """The first and the last of many: an answer that goes round in circles says nothing new in between."""
    return mentions if len(mentions) <= 2 * _EACH_END else [*mentions[:_EACH_END], *mentions[-_EACH_END:]]


def _not_in(named: Sequence[Mention], others: Sequence[Mention]) -> list[Mention]:
    """What stands outside of what is named."""
    return [one for one in others if not any(one.start < each.end and each.start < one.end for each in named)]


def last_word(text: str, stated: list[Mention], others: list[Mention]) -> tuple[list[Mention], list[Mention]]:
    """What counts of several values: those behind the last correction, else those that a final answer names."""
    both = [*stated, *others]
    first, last = min(one.start for one in both), max(one.start for one in both)
    turns = [turn for turn in corrections(text) if first < turn[0] and turn[1] <= last]
    if turns:
        cut = turns[-1][1]
        return [one for one in stated if one.start >= cut], [one for one in others if one.start >= cut]
    if (final := final_answer(text)) is not None:
        begin, end = final
        told = [one for one in both if begin <= one.start and one.end <= end]
        if told:
            return [one for one in stated if one in told], [one for one in others if one in told]
    return stated, others


def _without_asides(fact: Fact, said: Said, stated: Sequence[Mention], others: list[Mention]) -> list[Mention]:
    """Without what is said of something else: the clause of the value names the key, those of the others don't."""
    if not others or not fact.key or len({one.value for one in others}) > _ASIDES:
        return others
    keys = said.words.find(fact.key)
    if not keys:
        return others
    own = {_clause(said.text, one) for one in stated}
    if not any(begin <= key[0] and key[1] <= end for begin, end in own for key in keys):
        return others
    left = []
    for one in others:
        begin, end = span = _clause(said.text, one)
        about_it = span in own or any(begin <= key[0] and key[1] <= end for key in keys)
        beside = said.text[begin : one.start] + said.text[one.end : end]
        if about_it or _OFFERED.search(beside) or len(beside) < (_SUBJECT_ZH if said.has_cjk else _SUBJECT):
            left.append(one)
    return left


def _clause(text: str, one: Mention) -> Span:
    """The part of its sentence that a value stands in, between commas, brackets and conjunctions."""
    begin, end = sentence(text, one.start, one.end)
    for match in _JOINT.finditer(text, begin, one.start):
        begin = match.end()
    stop = _JOINT.search(text, one.end, end)
    return begin, stop.start() if stop else end


def retracted(text: str, one: Mention, candidates: Sequence[Mention]) -> bool:
    """Whether another value is put in the place of this one, right behind it: "1234567, no, 7654321"."""
    for start, end in corrections(text):
        if 0 <= start - one.end <= _CLOSE and any(
            end <= each.start <= end + _CLOSE and each.value != one.value for each in candidates
        ):
            return True
    return False


# --- wordings ---------------------------------------------------------------------------------------------------------


def _wording(fact: Fact, said: Said, *, every: bool) -> Finding:
    assert fact.wording is not None
    text = said.text
    named = _thinned(fact.wording.quoted(said))
    if not named or every:
        named = sorted(_apart([*named, *_thinned(fact.wording.stated(said))]), key=lambda one: one.start)
    stated = [one for one in named if not is_negated(text, one.start, one.end)]
    if not stated:
        if named:
            return Finding(denied=(named[-1].start, named[-1].end))
        part = fact.wording.partly(said)
        if part is None or is_negated(text, part.start, part.end):
            return Finding()
        return Finding(share=part.share, part=(part.start, part.end))
    told = [one for one in stated if not asks(text, one.start, one.end)]
    if not told:
        return Finding(share=0.5, part=(stated[-1].start, stated[-1].end))
    others = []
    if (number := fact.wording.number) is not None:
        others = [one for one in _thinned(number.others(said)) if not is_negated(text, one.start, one.end)]
        others = _not_in(told, others)
    beside = _MOST_THINGS
    for one in told:
        beside = min(beside, _things(said, one))
        if not beside:
            break
    return Finding(stated=tuple(told), others=tuple(others), beside=beside if beside >= _MANY_THINGS else 0)


def _things(said: Said, one: Mention) -> int:
    return max(len(bullets_beside(said.text, one.start, one.end)), things_beside(said.text, one.start, one.end))


def _apart(mentions: Sequence[Mention]) -> list[Mention]:
    """Mentions that don't overlap, the earlier of each pair."""
    found: list[Mention] = []
    for one in mentions:
        if not any(one.start < each.end and each.start < one.end for each in found):
            found.append(one)
    return found
