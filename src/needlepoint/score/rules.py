"""What an answer is worth, by rules: value, outcome, the reason, and the span that decided. Free, and always the same.

The main path, from top to bottom: was it a measurement (`outcomes`), what of it is visible (`reasoning`), what was
expected (`expected`), what the answer says of it (`findings`), and what that is worth, which is decided here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from ..types import Outcome, Reply, Score, Trial
from .denials import denials_in, denials_of_the_fact, is_plain, refusal
from .expected import Fact, facts_of
from .findings import Finding, find, retracted
from .folding import fold
from .outcomes import unmeasured
from .reasoning import visible
from .sentences import Span, in_quotes
from .stance import asks, commits, hedge
from .values import Mention, Said

SCORER = "rules"
CONCEDED = 0.75
"""The text doesn't tell, the answer says, and offers the fact in its own words all the same."""
UNDONE = 0.5
"""The fact stands there, and the answer says that it is none."""
_LEAST_PRECISION = 0.5
_LONG_COPY = 3_000
_NEAR_AN_END = 600
_SHOWN = 48
_NEAR = 160
_MOST_KEYS = 100


def score(trial: Trial, reply: Reply) -> Score:
    """The outcome of one trial. Reasoning is not looked at, only the visible answer."""
    broken = unmeasured(trial, reply)
    if broken is not None:
        return broken
    text = visible(reply.text)
    if not text.strip():
        return _nothing_visible(reply)
    facts = facts_of(trial)
    if not facts:
        return _score("unjudged", None, "what answer is expected is not known")
    said = Said(fold(text))
    verdict = _one(facts[0], said) if len(facts) == 1 else _several(facts, said)
    outcome, value, reason, span = verdict
    return _score(outcome, value, reason, None if span is None else said.folded.span(*span))


def found_each(trial: Trial, reply: Reply) -> list[bool]:
    """Which of the expected answers a reply states, in their order."""
    facts = facts_of(trial)
    text = visible(reply.text)
    if not text.strip():
        return [False] * len(facts)
    said = Said(fold(text))
    findings = [find(fact, said) for fact in facts]
    return _settled(facts, findings, said)


Verdict = tuple[Outcome, float, str, Span | None]


def _nothing_visible(reply: Reply) -> Score:
    if reply.text.strip():
        if reply.finish == "length":
            return _score("out_of_room", None, "the answer limit was reached while still reasoning")
        return _score("wrong", 0.0, "the answer is reasoning alone, without a visible answer")
    return _score("wrong", 0.0, "the answer is empty")


# --- one fact ---------------------------------------------------------------------------------------------------------


def _one(fact: Fact, said: Said) -> Verdict:
    text = said.text
    found = find(fact, said)
    if not found.stated:
        return _not_stated(found, said, fact.about)
    denials = denials_of_the_fact(text, fact.about)
    if denials:
        found = find(fact, said, every=True)
        live = tuple(one for one in found.stated if not _is_denied(one, text, fact.about))
        if not live:
            reason = "the answer names the fact only to say that the text does not tell it"
            return "not_found", 0.0, reason, (found.stated[0].start, found.stated[0].end)
        found = replace(found, stated=live)
    last = found.stated[-1]
    span = (last.start, last.end)
    if found.beside:
        return "wrong", 0.0, f"the answer lists {found.beside} other things beside the expected one", span
    if (undone := _undone(found.stated, denials, text, fact.about)) is not None:
        return undone
    precision, told = _precision(1, 1, found.others)
    if precision < _LEAST_PRECISION:
        return "wrong", 0.0, f"the answer lists {told} beside the expected one", span
    if precision < 1:
        return "partial", precision, f"the answer states the expected value and {told}", span
    if all(asks(text, one.start, one.end) for one in found.stated):
        return "partial", UNDONE, "the answer asks whether it is the expected value", span
    if _is_buried(found.stated, text):
        return (
            "partial",
            UNDONE,
            f"the fact stands in the middle of {len(text):,} characters, pointed out nowhere",
            span,
        )
    hedged = hedge(text, *span)
    what = "fact" if fact.value is None else "value"
    return "correct", 1.0, f"the answer states the expected {what}{', if unsurely' if hedged else ''}", span


_POINTED_AT = re.compile(
    r"\b(?:only|closest|nearest|sole|single)\b[^.\n]{0,80}$|\b(?:only|closest) (?:mention|reference|sentence)"
    r"|唯一|仅仅?提到|只提到|只有一处"
)

_CLAUSE = re.compile(r"[,;.:!?\n]|\bbut\b|\bhowever\b")


def _undone(stated: Sequence[Mention], denials: Sequence[Span], text: str, about: str) -> Verdict | None:
    """The verdict where an answer names the fact and says that the text does not tell it; None where it answers."""
    denials = [one for one in denials if not any(each.start <= one[0] < each.end for each in stated)]
    if denials and stated[0].start < denials[0][0]:
        denials = [one for one in denials if is_plain(text, one, about)]
    if not denials:
        return None
    (first, _), (begin, end) = denials[0], denials[-1]
    is_own = [not _is_pointed_at(one, text, denials) for one in stated]
    opens_with_it = is_own[0] and stated[0].start < first
    for one, own in zip(stated, is_own, strict=True):
        if one.start >= end and (own or opens_with_it or commits(text, end, one.start)):
            return None
    last = stated[-1]
    for one, own in zip(stated, is_own, strict=True):
        if own and one.start >= first:
            reason = "the answer says that the text does not tell, and offers the fact all the same"
            return "partial", CONCEDED, reason, (one.start, one.end)
    where = "then" if last.start < begin else "but only as a mention, for it"
    return (
        "partial",
        UNDONE,
        f"the answer names the fact, {where} says that the text does not tell",
        (last.start, last.end),
    )


def _is_denied(one: Mention, text: str, about: str) -> bool:
    """Whether a fact is named in the very clause that says that the text does not tell it."""
    clause = _CLAUSE.split(text[max(0, one.start - _NEAR) : one.start])[-1]
    return bool(denials_of_the_fact(clause, about))


def _is_pointed_at(one: Mention, text: str, denials: Sequence[Span]) -> bool:
    """Whether an answer only shows that the fact stands there: as a quote, or as the only mention of something."""
    if in_quotes(text, one.start, one.end):
        return True
    begin = max([one.start - _NEAR, 0, *(end for _, end in denials if end <= one.start)])
    return _POINTED_AT.search(text[begin : one.start]) is not None


def _not_stated(found: Finding, said: Said, about: str) -> Verdict:
    text = said.text
    denials = denials_in(text)
    if found.share and not any(is_plain(text, one, about) for one in denials_of_the_fact(text, about)):
        return "partial", found.share, "the answer states a part of the expected fact", found.part
    if found.denied is not None:
        return "wrong", 0.0, "the answer names the expected value only to deny it, or takes it back", found.denied
    if (refused := refusal(text)) is not None and not found.others:
        return "refused", 0.0, "the model declines to answer", refused
    if denials and not any(one.start > denials[-1][1] for one in found.others):
        return "not_found", 0.0, "the answer says that the text does not tell", denials[0]
    if found.others:
        one = found.others[-1]
        return "wrong", 0.0, f"the answer states {_shown(text[one.start : one.end])} instead", (one.start, one.end)
    return "wrong", 0.0, "the answer does not state the expected fact", None


def _is_buried(stated: Sequence[Mention], text: str) -> bool:
    """Whether the fact is named once, far from both ends of a long text: copied with it, not answered."""
    if len(text) < _LONG_COPY or len(stated) > 1:
        return False
    return stated[0].start > _NEAR_AN_END and stated[0].end < len(text) - _NEAR_AN_END


# --- several facts ----------------------------------------------------------------------------------------------------


def _several(facts: Sequence[Fact], said: Said) -> Verdict:
    findings = [find(fact, said) for fact in facts]
    settled = _settled(facts, findings, said)
    stated = [found.stated[-1] for found, is_found in zip(findings, settled, strict=True) if is_found]
    expected = [one for found in findings for one in found.stated]
    others = [
        one
        for found in findings
        for one in found.others
        if not any(one.value == each.value or (one.start < each.end and each.start < one.end) for each in expected)
    ]
    others = [one for one in others if not retracted(said.text, one, [*stated, *others])]
    if not stated:
        if any(found.stated for found in findings):
            one = next(found.stated[-1] for found in findings if found.stated)
            return "wrong", 0.0, "the answer gives the values to the wrong keys", (one.start, one.end)
        parts = [found.share for found in findings if found.share]
        if parts:
            part = next(found.part for found in findings if found.share)
            return "partial", sum(parts) / len(facts), "the answer states a part of the expected facts", part
        return _not_stated(Finding(others=tuple(others)), said, facts[0].about)
    n = len(facts)
    value = (len(stated) + sum(found.share for found in findings if not found.stated)) / n
    span = (stated[0].start, stated[0].end)
    told = f"the answer states {len(stated)} of {n} expected facts"
    precision, extra = _precision(n, len(stated), others)
    if precision < _LEAST_PRECISION:
        return "wrong", 0.0, f"{told} in a list of many: {extra} beside them", span
    value *= precision
    if value >= 1 - 1e-9:
        return "correct", 1.0, told, span
    return "partial", value, told + (f", and {extra}" if precision < 1 else ""), span


def _settled(facts: Sequence[Fact], findings: Sequence[Finding], said: Said) -> list[bool]:
    """Which facts count as found: stated, not taken back, and not given to another fact's key."""
    candidates = [one for found in findings for one in (*found.stated, *found.others)]
    pairs = _pairs(facts, findings, said)
    settled = []
    for place, found in enumerate(findings):
        live = [one for one in found.stated if not retracted(said.text, one, candidates)]
        own = [key for key, value in pairs if value == place]
        settled.append(bool(live) and (not own or place in own))
    return settled


def _pairs(facts: Sequence[Fact], findings: Sequence[Finding], said: Said) -> set[tuple[int, int]]:
    """Which key is given which value, where a sentence or line holds one of each: (fact of the key, of the value)."""
    keys = [
        (start, place)
        for place, fact in enumerate(facts)
        if fact.key
        for start, _ in said.words.find(fact.key)[:_MOST_KEYS]
    ]
    values = [(one.start, place) for place, found in enumerate(findings) for one in found.stated]
    if len({place for _, place in keys}) < len(facts):
        return set()
    found = set()
    for piece in re.finditer(r"[^.;\n。；]+", said.text):
        own_keys = {place for start, place in keys if piece.start() <= start < piece.end()}
        own_values = {place for start, place in values if piece.start() <= start < piece.end()}
        if len(own_keys) == 1 and len(own_values) == 1:
            found.add((own_keys.pop(), own_values.pop()))
    return found


# --- dumping ----------------------------------------------------------------------------------------------------------


def _precision(n_expected: int, n_stated: int, others: Sequence[Mention]) -> tuple[float, str]:
    """How much of what an answer lists was asked for: n / (n + what is too much); and what is too much, in words."""
    n_others = len({one.value for one in others})
    extra = max(0, n_stated + n_others - n_expected)
    told = "another value" if n_others == 1 else f"{n_others} other values"
    return n_expected / (n_expected + extra), told


def _shown(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def _score(outcome: Outcome, value: float | None, reason: str, span: tuple[int, int] | None = None) -> Score:
    value = None if value is None else round(value, 12)
    return Score(outcome=outcome, score=value, reason=reason, span=span, scorer=SCORER)
