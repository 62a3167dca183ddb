"""What an answer does with what it names: denies it, takes it back, corrects it, asks it, or gives it as the answer.

Patterns over folded text, in English and Chinese; no knowledge of needles.
"""

from __future__ import annotations

import re

from .sentences import Span, sentence

_AS_ANSWER = re.compile(
    r"\b(?:as|is|be) (?:the|my|an|our) (?:final )?answer|\bthe answer is\b|\brestate it\b|"
    r"\bso (?:based|the|according)|\btherefore\b|\bthus\b|\bin that case\b|"
    r"\bi (?:will|would|'ll) (?:take|use|go with|summari[sz]e|say)|因此|所以|可见|由此"
)


def commits(text: str, start: int, end: int) -> bool:
    """Whether a folded text between two places announces that an answer follows after all."""
    return _AS_ANSWER.search(text, start, end) is not None


# --- taking it back ---------------------------------------------------------------------------------------------------

_NOT_BEFORE = re.compile(
    r"(?:\bnot|n't|\bnever|\brather than|\binstead of|\bno longer|\bother than|\bwrong(?:ly)?|\bneither|\bnor)"
    r"(?: to| be| the| a| an| in fact| actually| simply)?(?: \w+ (?:number|code|name|is|was|of))?\s*[:\"'*`(]*$"
    r"|(?:不是|并非|而非|不应是|不等于|不该是|绝非|並非|不要|别)\s*[:\"'*`(「“]*$"
)
_NOT_ONLY = re.compile(r"\b(?:if|why|whether or) not\W*$")
_HINTS_BEFORE = ("not", "n't", "never", "rather", "instead", "longer", "other", "wrong", "nor", "neither", *"不非别")
_HINTS_AFTER = ("not", "n't", "wrong", "incorrect", "false", "mistake", *"错不误")
_TURN = r"[^.!?\n。]{0,40}[.!?。…-]+\s*(?:oh,? |no,? |wait,? |hmm,? |sorry,? |actually,? )*(?:that|this|it)"
_NOT_AFTER = re.compile(
    r"[\"'*`)」”,]*\s*(?:(?:is|was|are|would be|seems|looks)\s*(?:not|n't)\b(?! only)|"
    r"(?:is|was|are) (?:wrong|incorrect|false)|isn't\b|wasn't\b|(?:是错|不对|不正确|有误|不是|并不))"
    rf"|{_TURN}(?:'s| is| was)?(?: not|n't) (?:it|right|correct|true)"
    rf"|{_TURN}(?:'s| is| was) (?:wrong|incorrect|false|a mistake)"
)


def is_negated(text: str, start: int, end: int) -> bool:
    """Whether what stands at a place is named only to say that it isn't so, or is taken back right behind."""
    before = text[max(0, start - 60) : start]
    if any(hint in before for hint in _HINTS_BEFORE):
        match = _NOT_BEFORE.search(before)
        if match and not _NOT_ONLY.search(before[: match.end()]):
            return True
    behind = text[end : end + 90]
    return any(hint in behind for hint in _HINTS_AFTER) and _NOT_AFTER.match(text, end) is not None


_CORRECTION = re.compile(
    r"\b(?:actually|wait|correction|corrected|i meant?|scratch that|"
    r"let me (?:correct|re-?check|re-?read|re-?consider|double)|on second thought|"
    r"i misspoke|my (?:mistake|apologies|bad)|sorry|or rather|oops|i was wrong|i made (?:a|an) (?:mistake|error)|"
    r"upon (?:re-?reading|closer|review|reflection|re-?checking)|looking again|checking again)\b"
    r"|(?:^|[.!?,\n-]\s*)no[,:.]|更正|纠正|不对|等等|抱歉|准确地说|应该是|重新看|说错|改正|订正|其实|仔细看"
)


def corrections(text: str) -> list[Span]:
    """Where a folded text turns to say better what it said before."""
    return [match.span() for match in _CORRECTION.finditer(text)]


_FINAL = re.compile(
    r"\bfinal answer\b|\banswer(?: to the question)?(?:\*\*)?\s*(?:is|:)|\\boxed\{|<answer>|\"answer\"\s*:"
    r"|最终答案|答案(?:是|为|应是|:)|最终回答"
)


def final_answer(text: str) -> Span | None:
    """What stands behind the last mark of a final answer, to the end of its sentence or line."""
    marks = list(_FINAL.finditer(text))
    if not marks:
        return None
    last = marks[-1]
    begin = last.end()
    while begin < len(text) and text[begin] in " \n\t:*\"'`":
        begin += 1
    return last.start(), sentence(text, begin, begin)[1]


_HEDGE = re.compile(
    r"\b(?:maybe|perhaps|possibly|probably|might be|may be|could be|i think|i believe|i guess|i'm not sure|not certain|"
    r"likely|seems to be|appears to be|if i recall)\b|也许|可能|大概|或许|我猜|不确定|似乎"
)


def hedge(text: str, start: int, end: int) -> bool:
    """Whether the sentence around a place is unsure of itself."""
    return _HEDGE.search(text, *sentence(text, start, end)) is not None


def asks(text: str, start: int, end: int) -> bool:
    """Whether the sentence around a place is a question."""
    return text[slice(*sentence(text, start, end))].rstrip(" \n\"')*").endswith(("?", "？"))
