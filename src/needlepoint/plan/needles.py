"""Needles: the facts to hide, and the question that asks for them.

Three sources: fixed sets (`seed`, `native`), what the user gives, and facts drawn from a seed. Pure: whether a word
already occurs in the haystack is asked through a function, and randomness comes in as a `random.Random`.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final, Literal

from needlepoint.errors import UsageError, did_you_mean
from needlepoint.plan.phrases import CHINESE, ENGLISH, Form, Tongue
from needlepoint.types import Needle

Language = Literal["en", "zh", "other"]

SEED_NEEDLE: Final = (
    "\nThe best thing to do in San Francisco is eat a sandwich and sit in Dolores Park on a sunny day.\n"
)
SEED_QUESTION: Final = "What is the best thing to do in San Francisco?"
NATIVE_ZH_NEEDLE: Final = "\n在青岛，最惬意的事莫过于挑一个晴朗的日子，坐在小鱼山公园的长椅上吃一个肉夹馍。\n"
NATIVE_ZH_QUESTION: Final = "在青岛，最惬意的事是什么？"

FIXED_SETS: Final = ("seed", "native")
DRAWN_KINDS: Final = ("number", "word", "uuid", "date")
NEEDLE_SETS: Final = (*FIXED_SETS, *DRAWN_KINDS)

MAX_GIVEN = 100
MAX_DRAWN = 1_000
MAX_CHARACTERS = 20_000
_TRIES = 200  # for each needle; a key that a haystack contains is a rare accident, so this ends only on purpose


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The needles of one prompt and the question that asks for all of them. `kind` names the set they come from."""

    needles: tuple[Needle, ...]
    question: str
    kind: str


def target(facts: Facts) -> str:
    """What EvalScope calls the target of a sample: the needles, joined by a newline."""
    return "\n".join(needle.text for needle in facts.needles)


def fixed_facts(name: str, language: Language) -> Facts:
    """The set `seed` (English everywhere, as published) or `native` (the language's own; English where it has none)."""
    if name not in FIXED_SETS:
        hint = did_you_mean(name, FIXED_SETS)
        raise UsageError(f"{_clip(name)} is not a fixed needle set.{hint}\nAccepted: {', '.join(FIXED_SETS)}.")
    if name == "native" and language == "zh":
        needle = Needle(
            text=NATIVE_ZH_NEEDLE, answers=("坐在小鱼山公园的长椅上吃一个肉夹馍",), key="在青岛，最惬意的事"
        )
        return Facts(needles=(needle,), question=NATIVE_ZH_QUESTION, kind=name)
    answer, key = "eat a sandwich and sit in Dolores Park", "the best thing to do in San Francisco"
    return Facts(needles=(Needle(text=SEED_NEEDLE, answers=(answer,), key=key),), question=SEED_QUESTION, kind=name)


# --- what the user gives ----------------------------------------------------------------------------------------------


def given_facts(
    needles: Sequence[str],
    question: str,
    *,
    unique: bool = True,
    needle_flag: str = "needles",
    question_flag: str = "retrieval_question",
) -> Facts:
    """The user's own needles, byte for byte. The answer that each stands for is its own stripped text.

    `unique` refuses equal needles, which could not be told apart; EvalScope takes them.
    """
    if isinstance(needles, str | bytes) or not isinstance(needles, Sequence):
        raise UsageError(f"{needle_flag} {_clip(needles)} is not a list of texts. Give a list, such as [{_EXAMPLE!r}].")
    if not needles:
        raise UsageError(f"{needle_flag} is empty. Give at least one text, such as {_EXAMPLE!r}.")
    if len(needles) > MAX_GIVEN:
        raise UsageError(f"{needle_flag} has {len(needles):,} entries; at most {MAX_GIVEN} are accepted. Give fewer.")
    first_at: dict[str, int] = {}
    made = []
    for number, text in enumerate(needles, start=1):
        _check_text(text, f"{needle_flag} (entry {number})")
        bare = text.strip()
        if (earlier := first_at.setdefault(bare, number)) != number and unique:
            raise UsageError(f"{needle_flag}: entries {earlier} and {number} are equal: {_clip(bare)}. Remove one.")
        made.append(Needle(text=text, answers=(bare,)))
    _check_text(question, question_flag)
    return Facts(needles=tuple(made), question=question, kind="given")


_EXAMPLE = "The bakery in Brenholt opens at six."


def _check_text(text: object, name: str) -> None:
    if not isinstance(text, str):
        raise UsageError(f"{name}: {_clip(text)} is not a text. Put it in quotation marks.")
    if not text.strip():
        raise UsageError(f"{name} is empty: {_clip(text)}. Give a sentence.")
    if len(text) > MAX_CHARACTERS:
        raise UsageError(
            f"{name} has {len(text):,} characters; at most {MAX_CHARACTERS:,} are accepted. "
            f"A needle is a sentence, not a haystack."
        )
    for at, char in enumerate(text):
        if unicodedata.category(char) in ("Cc", "Cs") and char not in "\t\n\r":
            what = "a control character" if unicodedata.category(char) == "Cc" else "half of a surrogate pair"
            raise UsageError(f"{name} contains {what}, U+{ord(char):04X}, at character {at}. Remove it.")


def _clip(value: object, longest: int = 60) -> str:
    try:
        text = repr(value)
    except ValueError:  # an integer of thousands of digits
        text = f"({type(value).__name__})"
    return text if len(text) <= longest else text[: longest - 1] + "…"


# --- what is drawn ----------------------------------------------------------------------------------------------------


def draw_facts(kind: str, count: int, language: Language, rng: Random, occurs: Callable[[str], bool]) -> Facts:
    """`count` fresh facts of one kind (`DRAWN_KINDS`) and the question that asks for all of them by their keys.

    No value and no key occurs in the haystack (`occurs`), in another needle or in the question. Equal `rng` states and
    equal answers of `occurs` give equal facts. Languages without an own vocabulary get English.
    """
    if kind not in DRAWN_KINDS:
        raise UsageError(
            f"{_clip(kind)} is not a kind of needle that can be drawn.{did_you_mean(str(kind), DRAWN_KINDS)}\n"
            f"Accepted: {', '.join(DRAWN_KINDS)}."
        )
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MAX_DRAWN:
        raise UsageError(f"The number of needles {_clip(count)} is not accepted. Accepted: 1 to {MAX_DRAWN:,}.")
    tongue = CHINESE if language == "zh" else ENGLISH
    form = rng.choice(tongue.forms[kind])
    needles: list[Needle] = []
    for _ in range(count):
        needles.append(draw_one(kind, tongue, form, rng, occurs, needles))
    return Facts(needles=tuple(needles), question=question_of(tongue, form, needles), kind=kind)


def draw_one(
    kind: str,
    tongue: Tongue,
    form: Form,
    rng: Random,
    occurs: Callable[[str], bool],
    earlier: Sequence[Needle],
) -> Needle:
    """A fact of this form that nothing in the haystack (`occurs`) or in `earlier` can be mistaken for."""
    for _ in range(_TRIES):
        key = tongue.keys[form.subject](rng)
        value = tongue.values[kind](rng)
        subject = form.article + key
        pattern = rng.choice(form.sentences)
        shown = tongue.quotes.format(value) if kind == "word" else value
        text = pattern.format(key=subject, Key=subject[0].upper() + subject[1:], value=shown)
        needle = Needle(text=text, answers=(value,), key=key)
        alone = question_of(tongue, form, [needle])
        if value in alone or text.count(value) != 1 or any(_confusable(needle, other) for other in earlier):
            continue
        if occurs(key) or occurs(value):
            continue
        return needle
    raise UsageError(
        f"No {kind} needle could be drawn that the haystack does not contain already ({_TRIES} tries).\n"
        f"Use another corpus or another needle set: {', '.join(NEEDLE_SETS)}."
    )


def _confusable(one: Needle, other: Needle) -> bool:
    """Whether a key or a value of one stands in the other's sentence, or the other way round."""
    assert one.key is not None and other.key is not None
    return any(part in other.text for part in (one.key, *one.answers)) or any(
        part in one.text for part in (other.key, *other.answers)
    )


def question_of(tongue: Tongue, form: Form, needles: Sequence[Needle]) -> str:
    """Asks for all of these needles by their keys."""
    subjects = [f"{form.article}{needle.key}" for needle in needles]
    pattern = form.ask_one if len(subjects) == 1 else form.ask_many
    return pattern.format(keys=tongue.listed(subjects))
