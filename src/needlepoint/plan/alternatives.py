"""What a fact's value could have been: the texts whose log-probabilities are compared with the right one's.

Values of the same kind, drawn by the right one, so that who asks the same fact compares with the same values; and those
of other needles in the same prompt, which a model that mixes facts up would say. Pure.
"""

from __future__ import annotations

import re
from random import Random
from typing import Final

from ..errors import UsageError
from ..types import Alternatives
from .needles import NATIVE_ZH_NEEDLE, SEED_NEEDLE
from .phrases import CHINESE, ENGLISH
from .prompt import Prompt

DRAWN = 8
_FIXED: Final[dict[str, tuple[str, ...]]] = {
    SEED_NEEDLE: (
        "walk across the Golden Gate Bridge",
        "ride a cable car down to the bay",
        "drink coffee and watch people in North Beach",
        "fly a kite and have a picnic at Crissy Field",
        "take the ferry and spend an hour in Sausalito",
        "look at the paintings and rest in the De Young Museum",
    ),
    NATIVE_ZH_NEEDLE: (
        "走在栈桥的石板上看一群海鸥",
        "站在信号山公园的顶上吹一阵海风",
        "躺在石老人海滩的沙子上听一下午海浪",
        "坐在八大关路边的树下喝一杯绿茶",
        "走进中山公园的小路里看一树樱花",
    ),
}
_KINDS: Final = (
    ("number", re.compile(r"\d{7}")),
    ("uuid", re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")),
    ("date", re.compile(r"\d{1,2} [A-Z][a-z]+ \d{4}|\d{4}年\d{1,2}月\d{1,2}日")),
)


def alternatives_of(prompt: Prompt) -> Alternatives:
    """The right value of the prompt's fact and wrong ones, with the words that lead to a value where they come first.

    UsageError where there is no one value.
    """
    if len(prompt.needles) != 1:
        raise UsageError("--metric logprob compares the value of one fact. Ask for one needle, not several.")
    (needle,) = prompt.needles
    gold = needle.answers[0] if needle.answers else needle.text.strip()
    rivals = _FIXED.get(needle.text)
    if rivals is None:
        if gold == needle.text.strip():
            raise UsageError(
                "--metric logprob needs facts whose value is known: take --needle-set seed, native, number, word, uuid "
                "or date instead of --needle."
            )
        rivals = tuple(_drawn(prompt, gold))
    lead, at = "", needle.text.find(gold)
    before = needle.text[:at]
    if needle.key is not None and needle.key.lower() in before.lower():
        lead = before.lstrip("\n")
    space = lead[len(lead.rstrip(" ")) :]  # goes with the value, as vocabularies have it
    return Alternatives(
        lead=lead.rstrip(" ") if space else lead,
        gold=space + gold,
        rivals=tuple(space + rival for rival in rivals),
    )


def _drawn(prompt: Prompt, gold: str) -> list[str]:
    """Values of the other needles in the text, as far as they are of this kind, and drawn ones."""
    kind, pattern = next((one for one in _KINDS if one[1].fullmatch(gold)), ("word", None))
    tongue = ENGLISH if prompt.needles[0].text.isascii() else CHINESE
    found: dict[str, None] = {}
    if pattern is not None:
        found = {match[0]: None for edit in prompt.edits for match in pattern.finditer(edit.text) if match[0] != gold}
    rng = Random(f"alternatives:{gold}")
    left = DRAWN
    while left:
        value = tongue.values[kind](rng)
        if value != gold and value not in found:
            found[value] = None
            left -= 1
    return list(found)
