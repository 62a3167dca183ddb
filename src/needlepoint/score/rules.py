"""The first rule: the expected key phrase stands in the answer.

Compared without case, width, accents of punctuation and white space, so that wording around the phrase does not matter.
"""

from __future__ import annotations

import re
import unicodedata

from ..types import Reply, Score, Trial
from .outcomes import unmeasured

SCORER = "rules"
_NOT_FOUND = re.compile(
    r"\b(?:not|n't|no)\b[^.]{0,60}\b(?:mention|state|say|contain|provide|found|find|specif|information|answer)"
    r"|(?:没有|未|并未|无法|找不到)[^。]{0,20}(?:提到|提及|说明|找到|提供|信息|答案|内容)",
    re.IGNORECASE,
)
_REFUSED = re.compile(
    r"\bI(?:'m| am)? (?:sorry|unable|can(?:no|')t)\b[^.]{0,40}\b(?:help|assist|comply|answer that|do that)"
    r"|(?:抱歉|对不起)[^。]{0,20}(?:不能|无法)(?:帮|协助|提供|回答)",
    re.IGNORECASE,
)


def score(trial: Trial, reply: Reply) -> Score:
    """The outcome of one trial. Reasoning is not looked at, only the visible answer."""
    broken = unmeasured(trial, reply)
    if broken is not None:
        return broken
    spans = [find_phrase(reply.text, answer) for answer in trial.answers]
    found = [span for span in spans if span is not None]
    if trial.answers and len(found) == len(trial.answers):
        return _valid("correct", 1.0, "the answer states the expected phrase", found[0])
    if found:
        share = len(found) / len(trial.answers)
        return _valid("partial", share, f"the answer states {len(found)} of {len(trial.answers)} phrases", found[0])
    if not reply.text.strip():
        return _valid("wrong", 0.0, "the answer is empty", None)
    if match := _REFUSED.search(reply.text):
        return _valid("refused", 0.0, "the model declines to answer", match.span())
    if match := _NOT_FOUND.search(reply.text):
        return _valid("not_found", 0.0, "the answer says that the text does not tell", match.span())
    return _valid("wrong", 0.0, "the answer does not state the expected phrase", None)


def find_phrase(text: str, phrase: str) -> tuple[int, int] | None:
    """Where `text` states `phrase`, as a span of `text`; numbers and words only as a whole."""
    wanted = _folded(phrase)[0].strip()
    if not wanted:
        return None
    folded, places = _folded(text)
    start = folded.find(wanted)
    while start >= 0:
        end = start + len(wanted)
        if _is_apart(folded, start, end):
            return places[start], places[end - 1] + 1
        start = folded.find(wanted, start + 1)
    return None


def _is_apart(text: str, start: int, end: int) -> bool:
    """Whether the match isn't a part of a longer word or number."""
    before = text[start - 1] if start else " "
    after = text[end] if end < len(text) else " "
    return not (_joins(before, text[start]) or _joins(text[end - 1], after))


def _joins(one: str, other: str) -> bool:
    if one.isdigit() and other.isdigit():
        return True
    return one.isascii() and other.isascii() and one.isalnum() and other.isalnum()


def _folded(text: str) -> tuple[str, list[int]]:
    """`text` without case, width and punctuation, blanks single; and which character each came from."""
    out: list[str] = []
    places: list[int] = []
    for place, char in enumerate(text):
        for folded in unicodedata.normalize("NFKC", char).casefold():
            if folded.isspace() or unicodedata.category(folded)[0] in "PZ":
                if folded in "'’" and out and out[-1].isalnum():
                    continue
                if out and out[-1] != " ":
                    out.append(" ")
                    places.append(place)
            else:
                out.append(folded)
                places.append(place)
    return "".join(out), places


def _valid(outcome: str, value: float, reason: str, span: tuple[int, int] | None) -> Score:
    return Score(outcome=outcome, score=value, reason=reason, span=span, scorer=SCORER)  # type: ignore[arg-type]
