"""What a trial expects of an answer: one fact for each expected answer, read once for all trials that ask the same."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from ..types import Needle, Trial
from .folding import fold, phrase_of
from .values import Said, Value, value_of
from .wording import Wording, wording_of


@dataclass(frozen=True, slots=True)
class Fact:
    """One expected answer: a value or a wording. `known` are values that question and needles name themselves."""

    answer: str
    key: str
    """What the question asks by, as `Words.find` takes it; empty where it isn't known."""
    value: Value | None
    wording: Wording | None
    known: frozenset[str]
    about: str
    """Question and answer, folded: what a denial of this fact speaks of."""


def facts_of(trial: Trial) -> tuple[Fact, ...]:
    return _facts(trial.answers, trial.needles, trial.question)


@lru_cache(maxsize=4_096)
def _facts(answers: tuple[str, ...], needles: tuple[Needle, ...], question: str) -> tuple[Fact, ...]:
    if not answers:
        answers = tuple(needle.text.strip() for needle in needles)
    facts = [_fact(answer, needles, question) for answer in answers]
    return tuple(fact for fact in facts if fact is not None)


_ASKS_A_NUMBER = re.compile(
    r"\bhow (?:many|much|old|long|tall|high|far|deep|wide|heavy)\b"
    r"|\b(?:number|code|passcode|password|pin|id|year|price|cost|age|temperature|population|distance|score|"
    r"percentage)s?\b|多少|几|密码|编号|号码|口令|哪一年|多长|多高|多远"
)


def _fact(answer: str, needles: Sequence[Needle], question: str) -> Fact | None:
    own = next((needle for needle in needles if answer in needle.answers or answer in needle.text), None)
    key = phrase_of(own.key) if own is not None and own.key is not None else ""
    asked = fold(question).text
    about = f"{asked}\n{fold(answer).text}"
    value = value_of(answer, fold)
    if value is None:
        is_declared = own is None or answer.strip() != own.text.strip()
        others = [needle.text for needle in needles if needle is not own]  # what all of them say tells none apart
        wording = wording_of(answer, "\n".join([question, *others]), is_declared=is_declared)
        if wording is None:
            return None
        if not is_declared and wording.number is not None and _ASKS_A_NUMBER.search(asked):
            value = wording.number
        else:
            return Fact(answer, key, None, wording, frozenset(), about)
    named = "\n".join([question, *(needle.text for needle in needles)])
    known = {one.value for one in value.others(Said(fold(named)))}
    return Fact(answer, key, value, None, frozenset(known), about)
