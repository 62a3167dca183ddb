"""Where an answer says that the text does not tell, and where it declines to answer. All on folded text.

Patterns of the sentences that models write, in English and Chinese, and in a few other tongues for "the text does not
say"; no knowledge of needles.
"""

from __future__ import annotations

import re

from .sentences import Span, sentence

# --- the text does not say --------------------------------------------------------------------------------------------

_TELL = (
    "(?:mention|state|say|specif|provid|contain|includ|discuss|address|indicat|give|tell|reveal|answer|describ|list|"
    "identif|refer|offer|have|appear|find|found|cover|disclos|record|report|explain|suggest|know|talk|present|detail|"
    "clear|available|determine|sure|name)"
)
_TELL_AT_ALL = (
    rf"(?:{_TELL}|locat|confirm|infer|giv|conclud|recommend|assess|draw|see|verif|speculat|respond|provid|answer)"
)
_SOURCE = r"\b[^.\n]{0,40}\b(?:information|context|details?|text|passage|document|about|mention\w*|to do with)"
_NOT = re.compile(
    rf"(?:not|n't|never)\s+(?!only\b)(?:(?:\w+\s+){{0,3}}?{_TELL}\w*|any\b|"
    rf"(?:in|within|part of) (?:the|this)\b|enough{_SOURCE})"
)
_CAN_NOT = re.compile(
    rf"(?:not|n't|unable to|able to|impossible to|refrain from)\s+(?:\w+\s+){{0,3}}?{_TELL_AT_ALL}\w*"
)
_NO = re.compile(
    r"no\s+(?:\w+\s+){0,3}?(?:mention|information|reference|indication|answer|evidence|details?|statement|data|record|"
    r"clue|way to|such|idea)\b(?!,? (?:other|else))"
    r"|no\s+(?:\w+\s+){1,4}?(?:is|are|was|were) (?:given|mentioned|stated|provided|specified|found|listed|named|told)\b"
)
_LITTLE = re.compile(rf"(?:nothing|nowhere|insufficient){_SOURCE}")
_STATES = re.compile(r"(?:unknown|unclear|missing|absent|unrelated)\b")
_MARKS = (
    ("not ", None),
    ("n't ", None),
    ("never ", None),
    ("no ", _NO),
    ("unable to", _CAN_NOT),
    ("impossible to", _CAN_NOT),
    ("refrain from", _CAN_NOT),
    ("nothing", _LITTLE),
    ("nowhere", _LITTLE),
    ("insufficient", _LITTLE),
    ("unknown", _STATES),
    ("unclear", _STATES),
    ("missing", _STATES),
    ("absent", _STATES),
    ("unrelated", _STATES),
)
"""What English denials hold, each with what has to follow. Looked up one by one: far quicker than one long pattern."""
_DENIAL_ZH = re.compile(
    r"(?:没有|未|并未|没|无|不曾|並未|沒有)[^。！？\n,;；]{0,12}?(?:提到|提及|说明|找到|提供|说|写明|写|记载|给出|包含|"
    r"涉及|描述|信息|答案|内容|指出|线索|說明|資訊|記載)"
    r"|(?:无法|不能|难以|無法)[^。！？\n,;；]{0,8}?(?:确定|回答|得知|判断|找到|给出|得出|提供|知道|推断|確定|判斷)"
    r"|找不到|不知道|不清楚|不详|不得而知|不明确"
)
_DENIAL_ELSE = re.compile(
    r"(?:記載|言及|記述|説明|情報|書かれて|述べられて|見つ)[^。\n]{0,8}(?:ありません|ない|いません|せん)"
    r"|(?:언급|정보|내용|나와|찾을)[^.\n]{0,12}(?:없|않)"
    r"|\bno (?:se )?(?:menciona|indica|especifica|dice|proporciona|contiene|encuentra|hay)"
    r"|\bn(?:e |')(?:\w+ )?(?:mentionne|precise|indique|dit|contient|fournit|est)\w* (?:pas|aucun)"
    r"|\b(?:nicht|kein\w*) (?:\w+ )?(?:erwahnt|genannt|angegeben|enthalten|information\w*|hinweis)"
    r"|\berwahnt (?:\w+ )?(?:nicht|kein)|\bnao (?:se )?(?:menciona|indica|especifica|diz|fornece|contem|ha)"
    r"|\bне (?:упомина|указ|сообща|содерж|говорит)"
)
_HINT_ELSE = re.compile(r" pas| aucun|nicht|kein|nao |no se |no (?:men|ind|esp|dic|pro|con|enc|hay)")
_OF_SOMETHING_ELSE = re.compile(
    r"\b(?:other|others|otherwise|further|additional|else|more|different\w*|alternat\w*|equivoca\w*|qualif\w*|"
    r"contradict\w*|contrary|outside|external|overrid\w*|beyond|conditions?|caveats?|opinions?|any reason|instead|"
    r"assumptions?|elaborat\w*)\b|其他|其它|更多|进一步|额外|另外|别的"
)
_OF_THE_REST = re.compile(r"\b(?:rest of|remainder of|apart from|aside from|besides|elsewhere|other than)\b[^.!?\n]*$")
_CLAUSE_END = re.compile(r"[.!?;。！？；\n]|, (?:but|so|and|which)\b|\bhowever\b")


def denials_in(text: str) -> list[Span]:
    """Where a folded text says that the answer isn't told or can't be given."""
    found = _english(text)
    if not text.isascii():
        found += [match.span() for match in _DENIAL_ZH.finditer(text)]
    if not text.isascii() or _HINT_ELSE.search(text):
        found += [match.span() for match in _DENIAL_ELSE.finditer(text)]
    return sorted(found)


def _english(text: str) -> list[Span]:
    found = []
    for mark, pattern in _MARKS:
        at = text.find(mark)
        while at >= 0:
            before = text[max(0, at - 6) : at]
            can = before.endswith(("can", "can ", "could ", "couldn"))
            if mark == "n't " or can or not before[-1:].isalpha():
                match = (pattern or (_CAN_NOT if can else _NOT)).match(text, at)
                if match is not None:
                    found.append(match.span())
            at = text.find(mark, at + 1)
    return found


_ASKING_WORD = re.compile(r"\b(?:who|when|where|why|how)\b")
_ANY_WORD = re.compile(r"[^\W\d_]{3,}")
_ABOUT_IT = re.compile(
    r"\b(?:it|this|that|so|such|these|answer\w*|question\w*|information|enough|definit\w*|determin\w*|certain\w*|"
    r"explicit\w*|clear\w*|specif\w*|mention(?:ed)?$)\b|[\u3000-\u9fff]"
)


def denials_of_the_fact(text: str, about: str) -> list[Span]:
    """Those of `denials_in` that are of what folded question and answer are `about`: "no other activities are
    mentioned" is not, and neither is "but the text does not say who built it"."""
    return [
        span
        for span in denials_in(text)
        if _is_of_the_fact(_clause(text, *span), about)
        and not _OF_THE_REST.search(text, max(0, span[0] - _BEFORE_MARK), span[0])
    ]


_PLAINLY = re.compile(r"(?:not|n't|unable to|able to)\b[^.]{0,24}\b(?:answer|determin)|[\u3000-\u9fff]")
_ROOTS_OF_IT = 2


def is_plain(text: str, span: Span, about: str) -> bool:
    """Whether a denial names what was asked, or says that there is no answer: no mere remark behind one."""
    clause = _clause(text, *span)
    if _PLAINLY.match(clause) or not clause.isascii():
        return True
    roots = {word[:_ROOT] for word in _ANY_WORD.findall(about)} - _LITTLE_ROOTS
    return len(roots.intersection(word[:_ROOT] for word in _ANY_WORD.findall(clause))) >= min(_ROOTS_OF_IT, len(roots))


_LITTLE_ROOTS = {
    "the",
    "what",
    "which",
    "who",
    "when",
    "where",
    "how",
    "and",
    "for",
    "with",
    "from",
    "are",
    "was",
    "did",
}


def _is_of_the_fact(clause: str, about: str) -> bool:
    if _OF_SOMETHING_ELSE.search(clause):
        return False
    if any(match[0] not in about for match in _ASKING_WORD.finditer(clause)):
        return False
    if not about or _ABOUT_IT.search(clause):
        return True
    words = _ANY_WORD.findall(clause)
    return len(words) <= _FEW or any(word[:_ROOT] in about for word in words[1:])


_FEW = 3
_ROOT = 5


def _clause(text: str, start: int, end: int) -> str:
    stop = _CLAUSE_END.search(text, end)
    return text[start : min(stop.start() if stop else len(text), end + 60)]


# --- refusals ---------------------------------------------------------------------------------------------------------

_CANNOT = (
    r"(?:can(?:no|')t|can not|cannot|won't|will not|am unable to|'m unable to|am not able to|'m not able to|decline to|"
    r"refuse to|unable to)"
)
_REFUSAL = re.compile(
    rf"\b(?:i|we)\s*(?:\w+ )?{_CANNOT}\s+(?:\w+ )?"
    r"(?:help|assist|comply|fulfil|share|disclose|reveal|engage|discuss|continue|do (?:that|this)|process|support|"
    r"participate|provide (?:that|this|such|any|personal|sensitive|private|confidential)|"
    r"answer (?:that|this|such)|respond to (?:that|this|such))"
    rf"|\bsorry[^.!?\n]{{0,30}}\b{_CANNOT}\s+(?:\w+ )?(?:help|assist|comply|share|provide|answer|do)"
    r"|\bi (?:must|have to|need to) (?:respectfully )?(?:decline|refuse)\b|\bi (?:respectfully )?decline\b"
    r"|\bas an ai\b[^.\n]{0,60}\b(?:can(?:no|')t|cannot|unable|not able)"
    r"|\bagainst (?:my|our|the) (?:guidelines|polic|programming|rules)"
    r"|(?:抱歉|对不起|很遗憾|對不起)[^。\n]{0,20}(?:不能|无法|不便|無法)[^。\n]{0,6}"
    r"(?:帮|协助|提供|回答|透露|分享|满足|協助|继续)"
    r"|我(?:不能|无法|拒绝)(?:透露|协助|帮助|分享|继续|满足|回答(?:这个|该|此))"
)
_REFUSAL_MARKS = (
    *("can't", "cannot", "can not", "won't", "will not", "unable to", "not able to", "declin", "refus", "as an ai"),
    *("against my", "against our", "against the", "抱歉", "对不起", "對不起", "很遗憾", "我不能", "我无法", "我拒绝"),
)
_BEFORE_MARK = 50
_BEHIND_MARK = 90
_ABOUT_THE_TEXT = re.compile(
    r"\b(?:context|text|passage|document|article|story|essay|mention\w*|provided|given|based on|information about|"
    r"contain\w*)\b|文中|文本|文章|原文|上下文|文档|材料|提到|提及|找到|根据"
)


def refusal(text: str) -> Span | None:
    """Where a folded text declines to answer, for reasons of its own: not since the text didn't tell."""
    for mark in _REFUSAL_MARKS:
        at = text.find(mark)
        while at >= 0:
            match = _REFUSAL.search(text, max(0, at - _BEFORE_MARK), at + _BEHIND_MARK)
            if match and not _ABOUT_THE_TEXT.search(text[slice(*sentence(text, *match.span()))]):
                return match.span()
            at = text.find(mark, at + _BEHIND_MARK)
    return None
