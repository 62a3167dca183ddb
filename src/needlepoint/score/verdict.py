"""What a judge said, read strictly: one grade that can mean only one thing, or a reason why there is none.

Pure. Nothing is guessed: a number somewhere in a sentence is no verdict, "INCORRECT" does not contain "CORRECT", a
grade off the scale is not moved onto it, and two grades that differ cancel each other out.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

RubricName = Literal["binary", "0-1", "1-10"]
RUBRICS: Final = get_args(RubricName)
_TINY = 1e-6
_GRADE_TOLERANCE = 0.011  # two thirds may come as 0.67 or 0.66
_MOST_CHARACTERS = 200_000
_MOST_BRACES = 100
_WORD = re.compile(r"\W*(correct|incorrect|right|wrong)\W*", re.IGNORECASE)
_SAID = re.compile(
    r"\b(?:verdict|judge?ment|grade|conclusion|answer is|therefore|so)\b\W{0,12}(?:is\W+)?"
    r"(not\W+)?(correct|incorrect|right|wrong)\b",
    re.IGNORECASE,
)
_OF_TEN = re.compile(r"\s*(?:score|rating|grade)?\W{0,3}(\d{1,3})(?:\.0)?\s*(?:/|out of)\s*10\W*", re.IGNORECASE)
_BRACKETS = re.compile(r"\[\[\s*(-?\d+(?:\.\d+)?)\s*\]\]")
_FENCED = re.compile(r"```[a-zA-Z]*[ \t]*\n?(.*?)```", re.DOTALL)
_RIGHT = frozenset(("correct", "right", "true", "yes", "pass"))
_WRONG = frozenset(("incorrect", "wrong", "false", "no", "fail"))
_WORD_FIELDS = ("verdict", "correct", "is_correct", "result", "label", "grade", "rating")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One grade on the rubric's own scale. `case` is the code that the judge gave back, if it did."""

    grade: float
    reason: str
    case: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """Why a reply of a judge is no verdict."""

    problem: str


def worth(grade: float, rubric: RubricName) -> float:
    """A grade as a score from 0 to 1. The scale of 1 to 10 is divided by ten, as it is elsewhere: it ends at 0.1."""
    return grade / 10 if rubric == "1-10" else min(1.0, max(0.0, grade))


def scale_of(rubric: RubricName) -> tuple[float, float]:
    return (1.0, 10.0) if rubric == "1-10" else (0.0, 1.0)


def read_verdict(text: str, rubric: RubricName, *, n_facts: int = 1) -> Verdict | Unreadable:
    """The verdict in a judge's visible reply: a JSON object with a `score`, bare, fenced or in prose.

    Beside JSON only what can't be misread counts: a reply that is one word (CORRECT, INCORRECT), and on the scale of 1
    to 10 a reply that is `8/10`, or one `[[8]]`.
    """
    if not text.strip():
        return Unreadable(problem="the reply is empty")
    if len(text) > _MOST_CHARACTERS:
        return Unreadable(problem=f"the reply rambles on for {len(text):,} characters")
    objects, prose = _objects(text)
    if len(objects) >= _MOST_BRACES or prose.count("{") >= _MOST_BRACES:
        return Unreadable(problem="it rambles in braces")
    if any(found is None for found in objects):
        return Unreadable(problem="a verdict gives one field twice, with different values")
    verdicts = [found for found in objects if found is not None and "score" in found]
    if not verdicts:
        return _bare(text, rubric, n_facts)
    grades = []
    for found in verdicts:
        grade = _grade(found["score"], rubric, n_facts)
        if isinstance(grade, Unreadable):
            return grade
        grades.append(grade)
    if max(grades) - min(grades) > _TINY:
        return Unreadable(problem=f"it gives several grades that differ: {', '.join(f'{one:g}' for one in grades)}")
    good = _is_good(grades[0], rubric)
    reasons = [_reason(found) for found in verdicts]
    for said in [*_words_of(verdicts), *_words_in(prose), *(said for one in reasons for said in _words_in(one))]:
        if good is not None and said is not good:
            return Unreadable(problem=f"it contradicts itself: a grade of {grades[0]:g}, and the opposite in words")
    case = verdicts[-1].get("case")
    return Verdict(grade=grades[0], reason=_reason(verdicts[-1]), case=case if isinstance(case, str) else None)


def _bare(text: str, rubric: RubricName, n_facts: int) -> Verdict | Unreadable:
    """A reply without a JSON verdict, where it still says one thing only."""
    if (word := _WORD.fullmatch(text)) is not None and rubric != "1-10":
        right = word[1].lower() in _RIGHT
        if right or n_facts == 1:
            return Verdict(grade=float(right), reason=f"the judge says: {word[1]}")
    if rubric == "1-10":
        numbers = {float(found) for found in _BRACKETS.findall(text)}
        if (match := _OF_TEN.fullmatch(text)) is not None:
            numbers.add(float(match[1]))
        if len(numbers) > 1:
            return Unreadable(problem="it gives several grades that differ")
        if numbers:
            grade = _grade(numbers.pop(), rubric, n_facts)
            return grade if isinstance(grade, Unreadable) else Verdict(grade=grade, reason=_shortened(text))
    return Unreadable(problem=f"it holds no verdict: {_shortened(text, 80)!r}")


def _grade(value: Any, rubric: RubricName, n_facts: int) -> float | Unreadable:
    """A grade on the rubric's scale; nothing is rounded onto it or read from a text."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return Unreadable(problem=f"its score is {_shortened(json.dumps(value), 40)}, which is no number")
    if isinstance(value, float) and not math.isfinite(value):
        return Unreadable(problem=f"its score is {value}, which is no grade")
    low, high = scale_of(rubric)
    if not low - _TINY <= value <= high + _TINY:
        return Unreadable(problem=f"its score {_shortened(str(value), 40)} is not from {low:g} to {high:g}")
    if rubric == "0-1":
        return float(value)
    if rubric == "1-10":
        if abs(value - round(value)) > _TINY:
            return Unreadable(problem=f"its score {value:g} is no whole number from 1 to 10")
        return float(round(value))
    nearest = round(value * n_facts) / n_facts
    if abs(value - nearest) > (_TINY if n_facts == 1 else _GRADE_TOLERANCE):
        steps = "0 or 1" if n_facts == 1 else f"a multiple of 1/{n_facts}"
        return Unreadable(problem=f"its score {value:g} is not {steps}")
    return nearest


def _is_good(grade: float, rubric: RubricName) -> bool | None:
    """Whether a grade is a plain yes (True) or no (False); None in the middle, where words may say either."""
    share = (grade - 1) / 9 if rubric == "1-10" else grade
    return True if share > 0.75 else False if share < 0.25 else None


def _objects(text: str) -> tuple[list[dict[str, Any] | None], str]:
    """(the JSON objects in `text`, those inside of others left out, None for one that contradicts itself; the rest)."""
    found: list[dict[str, Any] | None] = []
    prose: list[str] = []
    decoder = json.JSONDecoder(object_pairs_hook=_pairs)
    for block in _blocks(text):
        at = 0
        while (start := block.find("{", at)) >= 0 and len(prose) < _MOST_BRACES:
            prose.append(block[at:start])
            try:
                value, at = decoder.raw_decode(block, start)
            except _TwiceError:
                found.append(None)
                at = len(block)
            except (ValueError, RecursionError):
                at = start + 1
            else:
                found.append(value)
        prose.append(block[at:])
    return found, " ".join(prose)


def _blocks(text: str) -> Iterator[str]:
    """`text`, with the insides of code fences apart from what stands around them."""
    at = 0
    for fence in _FENCED.finditer(text):
        yield text[at : fence.start()]
        yield fence[1]
        at = fence.end()
    yield text[at:]


class _TwiceError(Exception):
    """A JSON object has one name twice, with different values."""


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found and (found[name] != value or type(found[name]) is not type(value)):
            raise _TwiceError
        found[name] = value
    return found


def _words_of(verdicts: list[dict[str, Any]]) -> Iterator[bool]:
    """What verdicts say in words, beside their grade."""
    for verdict in verdicts:
        for name in _WORD_FIELDS:
            said = verdict.get(name)
            if isinstance(said, bool):
                yield said
            elif isinstance(said, str) and (word := said.strip(" .!*\"'").lower()) in _RIGHT | _WRONG:
                yield word in _RIGHT


def _words_in(prose: str) -> Iterator[bool]:
    """What the text around a verdict says plainly: a lone word, or one that it leads up to."""
    if (word := _WORD.fullmatch(prose)) is not None:
        yield word[1].lower() in _RIGHT
        return
    for match in _SAID.finditer(prose):
        yield (match[2].lower() in _RIGHT) is (match[1] is None)


def _reason(verdict: dict[str, Any]) -> str:
    for name in ("reason", "reasoning", "explanation", "rationale"):
        if isinstance(said := verdict.get(name), str) and said.strip():
            return _shortened(said)
    return "the judge gives no reason"


def _shortened(text: str, most: int = 300) -> str:
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 1] + "…"
