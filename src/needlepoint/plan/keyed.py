"""Facts for the layout `woven`: many in one text, each with a key of its own and a question that asks for it alone.

`distinct` facts are of unlike families: a register number here, a date there, a call sign elsewhere. `confusable` ones
are all said in one and the same way, and only their keys tell them apart: the harder case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Final

from ..errors import UsageError
from ..types import Needle
from .needles import Language, draw_one, question_of
from .phrases import CHINESE, ENGLISH, Form

WOVEN_SETS: Final = ("distinct", "confusable")
_KINDS: Final = ("number", "word", "date")
_TRIES = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedFact:
    """One needle and the question that asks for it by its key."""

    needle: Needle
    question: str


def keyed_facts(
    family: str, language: Language, rng: Random, occurs: Callable[[str], bool], fits: Callable[[str], bool]
) -> Iterator[KeyedFact]:
    """Facts without end; no key or value occurs in the text (`occurs`) or in another of them, each text `fits`."""
    tongue = CHINESE if language == "zh" else ENGLISH
    forms: list[tuple[str, Form]] = [(kind, form) for kind in _KINDS for form in tongue.forms[kind]]
    if family == "confusable":
        form = rng.choice(tongue.forms["number"])
        forms = [("number", replace(form, sentences=form.sentences[:1]))]
    needles: list[Needle] = []
    while True:
        rng.shuffle(forms)
        before = len(needles)
        for kind, form in forms:
            for _ in range(_TRIES):
                needle = draw_one(kind, tongue, form, rng, occurs, needles)
                if fits(needle.text):
                    needles.append(needle)
                    yield KeyedFact(needle=needle, question=question_of(tongue, form, [needle]))
                    break
        if len(needles) == before:
            raise UsageError("The needles of this layout are too long for the shortest context. Ask for longer ones.")
