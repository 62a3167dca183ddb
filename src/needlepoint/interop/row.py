"""One published result in our words, and how its values are read. Knows no tool and no file."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

from ..plan.needles import SEED_NEEDLE, SEED_QUESTION, fixed_facts
from ..score.imported import Scale
from ..types import Failure, Needle, Usage

DepthUnit = Literal["percent", "fraction"]
NO_SUBSET = "default"
_LONGEST_TOKENS = 10**9
_LONGEST_NAME = 200
_SHOWN = 40
_NUMBER = re.compile(r"([+-]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*([kKmM%]?)(?:\s*tokens)?")
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+")
_MISSING = frozenset({"", "nan", "none", "null", "n/a", "na", "-", "–"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One result as a file tells it; what it doesn't tell is None, and `assumed` names what was filled in.

    `scale` and `depth_unit` are None where only all the rows together can tell. `text` is None where only a score was
    published. `again` tells attempts at one cell apart (a version, a seed, an index). `where` is for messages.
    """

    tool: str
    where: str
    context_length: int
    depth: float
    depth_unit: DepthUnit | None = "percent"
    model: str | None = None
    run: str | None = None
    subset: str = NO_SUBSET
    raw: float | None = None
    scale: Scale | None = None
    why: str | None = None
    text: str | None = None
    reasoning: str | None = None
    finish: str | None = None
    error: Failure | None = None
    usage: Usage = field(default_factory=Usage)
    total_s: float | None = None
    cost: float | None = None
    needles: tuple[Needle, ...] = ()
    answers: tuple[str, ...] = ()
    question: str = ""
    corpus: str | None = None
    achieved_depth_percent: float | None = None
    length_mode: str | None = None
    prompt_sha256: str | None = None
    again: str | None = None
    at: str | None = None
    assumed: tuple[str, ...] = ()


class WrongValue(ValueError):
    """A value of a row cannot be what it is meant to be; the message says which and why."""


# --- values -----------------------------------------------------------------------------------------------------------


def length_of(value: object, name: str) -> int:
    """Tokens: 4000, 4000.0, "4k", "1,000", "128K tokens"."""
    number, unit = _number(value, name, "a context length, such as 4000 or 4k")
    number *= {"": 1, "k": 1_000, "m": 1_000_000}.get(unit.lower(), math.nan)
    if not math.isfinite(number) or number != int(number) or not 1 <= number <= _LONGEST_TOKENS:
        raise WrongValue(f"{name} is {shown(value)}, which is no context length in tokens, such as 4000 or 4k")
    return int(number)


def depth_of(value: object, name: str) -> tuple[float, DepthUnit | None]:
    """A depth and its unit, which only a percent sign tells."""
    number, unit = _number(value, name, "a depth, such as 50 or 0.5")
    if unit not in {"", "%"} or not 0 <= number <= 100:
        raise WrongValue(f"{name} is {shown(value)}, which is no depth from 0 to 100 percent")
    return number, "percent" if unit == "%" else None


def score_of(value: object, name: str = "score") -> float | None:
    """A score; None where it is missing, NaN or said to be missing. True is 1."""
    if value is None or (isinstance(value, str) and value.strip().lower() in _MISSING):
        return None
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, float) and math.isnan(value):
        return None
    number, unit = _number(value, name, "a score")
    if unit not in {"", "%"}:
        raise WrongValue(f"{name} is {shown(value)}, not a score")
    return number


def text_of(value: object, name: str) -> str | None:
    """A text, or None where there is none."""
    if value is None or isinstance(value, str):
        return value
    raise WrongValue(f"{name} is {shown(value)}, not a text")


def name_of(value: object, name: str) -> str | None:
    """A short name; None where it is missing or blank."""
    text = text_of(value, name)
    if text is None or not text.strip():
        return None
    if len(text) > _LONGEST_NAME:
        raise WrongValue(f"{name} has {len(text):,} characters, which is no name")
    return text.strip()


def count_of(value: object) -> int | None:
    """A count of tokens, or None for anything else: nothing rests on it."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 62 else None


def seconds_of(value: object) -> float | None:
    """Seconds or money, or None for anything else: nothing rests on it."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e15:
        return None
    return float(value)


def key_of(value: object) -> str | None:
    """What tells attempts apart (a version, a seed, a time), as text."""
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return str(value)[:_LONGEST_NAME]
    return None


def mapping_of(value: object) -> Mapping[str, Any]:
    """A nested object; empty where there is none."""
    return value if isinstance(value, Mapping) else {}


def _number(value: object, name: str, what: str) -> tuple[float, str]:
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isfinite(number):
            return number, ""
    if isinstance(value, str):
        text = value.strip()
        if _THOUSANDS.fullmatch(text):
            text = text.replace(",", "")
        if (match := _NUMBER.fullmatch(text)) and math.isfinite(number := float(match[1])):
            return number, match[2]
    raise WrongValue(f"{name} is missing" if value is None else f"{name} is {shown(value)}, not {what}")


def shown(value: object) -> str:
    """A value for a message."""
    try:
        text = repr(value) if isinstance(value, str | int | float | bool) else type(value).__name__
    except ValueError:  # an integer of thousands of digits
        text = "a very large number"
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


# --- facts ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Facts:
    """What was hidden and asked for, as far as it is told."""

    needles: tuple[Needle, ...]
    question: str
    assumed: tuple[str, ...] = ()

    @property
    def answers(self) -> tuple[str, ...]:
        return tuple(answer for needle in self.needles for answer in needle.answers)


def facts_of(needles: object, question: str | None, *, else_seed: bool) -> Facts:
    """The facts of needles that are told by their texts alone, and of a question that may not be told.

    The benchmark's own needle is known: its answer is the phrase in it, and its question is the one that belongs to
    it. Any other needle's answer is its own text. `else_seed` takes the benchmark's where none is told.
    """
    return _facts_of(_texts(needles), question, else_seed)


@lru_cache(maxsize=256)
def _facts_of(texts: tuple[str, ...], question: str | None, else_seed: bool) -> Facts:
    """The same rows share the same facts: thousands of results mostly ask one thing."""
    assumed: tuple[str, ...] = ()
    if not texts and else_seed:
        texts, assumed = (SEED_NEEDLE,), ("needle",)
    known = [" ".join(text.split()) == " ".join(SEED_NEEDLE.split()) for text in texts]
    seed = fixed_facts("seed", "en").needles[0]
    made = tuple(
        Needle(text=text, answers=seed.answers, key=seed.key) if is_seed else Needle(text=text, answers=(text.strip(),))
        for text, is_seed in zip(texts, known, strict=True)
    )
    if not question and any(known):
        return Facts(made, SEED_QUESTION, (*assumed, "question"))
    return Facts(made, question or "", assumed)


def holds_seed(text: str) -> bool:
    """Whether the benchmark's own needle stands in a text."""
    return SEED_NEEDLE.strip() in text


def _texts(needles: object) -> tuple[str, ...]:
    if isinstance(needles, str):
        needles = [needles]
    if not isinstance(needles, Sequence):
        return ()
    return tuple(text for text in needles if isinstance(text, str) and text.strip())
